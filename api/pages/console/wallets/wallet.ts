import { shownUrl } from '../../../../src/domain/values/parse-url.ts';
import { readWalletFigures, WALLET_EVENTS, type WalletEventType } from '../../../../src/store/wallets/wallet-reads.ts';
import { lineChart } from '../../kit/drawings.ts';
import { actionButton } from '../../kit/forms.ts';
import { badge, emptyState, facts, type Html, html, NONE, table } from '../../kit/html.ts';
import { BY_AGE, PAGE_ROWS, pager, switches } from '../../kit/lists.ts';
import type { PageDeps } from '../../kit/page-deps.ts';
import { deliveryState, endpointName, shortId } from '../../kit/shown-values.ts';
import { listenersOf, readWebhooks } from '../alert-webhooks.ts';
import type { Decimal, Wallet, WalletBalance, WalletEvent, Webhook } from '../answers.ts';
import { exactData } from '../api-calls.ts';
import { type Names, namesOf } from '../named-outcomes.ts';
import { programExamples, quoted, quotedForPython } from '../program.ts';
import type { ConsoleRequest, ConsoleRouter } from '../route.ts';
import { amount, marketPath, minute, plain, titleOf, venueTitle } from '../values.ts';
import { heldWords, readState, WALLETS_PATH } from './list.ts';

const PATH = `${WALLETS_PATH}/:wallet_id`;
const CRUMBS = html`<p class="crumbs"><a href="${WALLETS_PATH}">Wallets</a></p>`;
/** Balances of one page. */
const MAX_BALANCES = 100;
/** The newest changes that the charts show: so many answers of so many. */
const CHANGES = { reads: 5, limit: 100 };

type WalletDeps = Pick<PageDeps, 'db'>;

/** /wallets/{id}: balances, their changes, the activity, and the way of the events of one wallet. */
export function walletPage(router: ConsoleRouter, deps: WalletDeps): void {
  const [section, scope] = ['wallets', 'wallets'] as const;
  const paramsOf = ({ params }: Pick<ConsoleRequest, 'params'>) => ({ wallet_id: params['wallet_id'] ?? '' });

  router.page({
    path: PATH,
    section,
    scope,
    async load(request) {
      const params = paramsOf(request);
      const call = { operationId: 'getWallet', params };
      const type = WALLET_EVENTS.find((each) => each === request.query.get('type'));
      const cursor = request.query.get('cursor') ?? undefined;
      const activity = { operationId: 'listWalletEvents', params, query: { type, limit: PAGE_ROWS, cursor } };
      const balanceCall = { operationId: 'listWalletBalances', params, query: { limit: MAX_BALANCES } };
      const { data: wallet, text } = await request.api<Wallet>(call);
      const [held, events, changes, webhooks, figures] = await Promise.all([
        request.api<WalletBalance[]>(balanceCall),
        request.api<WalletEvent[]>(activity),
        readChanges(request, params),
        readWebhooks(request),
        readWalletFigures(deps.db, request.session.caller.accountId, [wallet.id]),
      ]);
      const [balances, shown] = [exactData<WalletBalance[]>(held), exactData<WalletEvent[]>(events)];
      const names = await namesOf(deps, request, [
        ...balances.map(({ tokenMint }) => tokenMint),
        ...changes.events.map(({ payload }) => payload.data.tokenMint),
        ...shown.flatMap(({ payload: { data } }) => [
          data.tokenMint,
          ...(data.transfers ?? []).map((each) => each.tokenMint),
        ]),
      ]);
      const known = figures.get(wallet.id);
      const { nowMs } = request;
      const body = html`${facts([
        [
          'Address',
          html`<code class="long">${wallet.address}</code> <button type="button" class="quiet" data-copy="${wallet.address}">Copy</button>`,
        ],
        ['Venue', venueTitle(wallet.venue)],
        ['Balance', heldWords(known)],
        ['Read', readState(known, nowMs)],
        ['Watched since (UTC)', minute(new Date(wallet.createdAt))],
        ['Id', html`<code>${wallet.id}</code>`],
      ])}
${known !== undefined && known.failures > 0 && known.lastError !== null && html`<p class="note">The last read failed: ${known.lastError}</p>`}
<div class="actions">${actionButton(request, {
        action: `${WALLETS_PATH}/${wallet.id}/delete`,
        label: 'Stop watching',
        isDangerous: true,
        confirm: 'Its events end. Events that exist stay, and a later watch begins with new balances.',
      })}</div>
<h2>Where its events go</h2>
${eventWays(webhooks)}
<h2>Balances</h2>
${balanceTable(balances, names, known?.baselineAt ?? null)}
${held.meta.next_cursor && html`<p class="muted">The first ${MAX_BALANCES} tokens. The API has all of them.</p>`}
<h2>Balances over time</h2>
${balanceCharts(changes, { wallet, tokenName: (token, symbol) => tokenWords(token, symbol, names), nowMs })}
<h2>Activity</h2>
<div class="switches">${switches(request, 'type', 'Type', [
        ['', 'All'],
        ['transaction', 'Transactions'],
        ['balance_change', 'Balances'],
      ])}</div>
${activityTable(wallet, shown, names, webhooks)}
${pager(request, events.meta.next_cursor, BY_AGE)}
${programExamples(request, {
  calls: [
    ['this wallet', call],
    ['its balances', balanceCall],
    ['its events', activity],
  ],
  typescript: `const wallet = await client.wallets.get(${quoted(wallet.id)});`,
  python: `wallet = client.wallets.get(${quotedForPython(wallet.id)})`,
  json: text,
})}`;
      return {
        title: wallet.label ?? `Wallet ${wallet.address.slice(0, 6)}…${wallet.address.slice(-4)}`,
        above: CRUMBS,
        body,
      };
    },
  });

  router.action({
    path: `${PATH}/delete`,
    section,
    scope,
    async run(request) {
      await request.api({ operationId: 'deleteWallet', params: paramsOf(request) });
      return { result: 'The wallet is no longer watched.', to: WALLETS_PATH };
    },
  });
}

/** The newest changes of balances, oldest first. */
async function readChanges(request: ConsoleRequest, params: { wallet_id: string }): Promise<ReadChanges> {
  const events: WalletEvent[] = [];
  let cursor: string | undefined;
  for (let read = 0; read < CHANGES.reads; read += 1) {
    const query = { type: 'balance_change', limit: CHANGES.limit, cursor };
    const answer = await request.api<WalletEvent[]>({ operationId: 'listWalletEvents', params, query });
    events.push(...exactData<WalletEvent[]>(answer));
    cursor = answer.meta.next_cursor ?? undefined;
    if (cursor === undefined) break;
  }
  return { events: events.reverse(), isCut: cursor !== undefined };
}

const TYPE_WORDS: Readonly<Record<WalletEventType, string>> = {
  transaction: 'transactions',
  balance_change: 'changed balances',
};

/** The webhooks that get the events. */
function eventWays(webhooks: readonly Webhook[] | undefined): Html {
  const rule = 'Every active webhook of the account that lists the type gets each event.';
  if (webhooks === undefined) return html`<p>${rule} Your key may not read the webhooks.</p>`;
  return html`<p>${rule}</p><ul class="ways">${WALLET_EVENTS.map((type) => {
    const listening = listenersOf(webhooks, type);
    const to =
      listening.length === 0
        ? html`${badge('warn', 'none')} No active webhook lists <code>${type}</code>, so these events are stored and sent nowhere.
<a href="/webhooks/new">Make a webhook</a>, or receive events on this machine with <code>oddswire-cli listen</code>.`
        : html`to ${listening.map(
            ({ id, url, filter }, index) =>
              html`${index > 0 && ', '}<a href="/webhooks/${id}">${shownUrl(url)}</a>${filter !== undefined && ' (when its filter lets it pass)'}`,
          )}`;
    return html`<li><strong>${TYPE_WORDS[type]}</strong> ${to}</li>`;
  })}</ul>`;
}

/** An outcome with its market, the symbol of another token, or its id. */
function tokenWords(token: string, symbol: string | undefined, names: Names): Html {
  const name = names.get(token);
  if (name === undefined) return symbol === undefined ? shortId(token) : html`<span title="${token}">${symbol}</span>`;
  const { title, siblingLabel, label, venue, marketId } = name;
  const market = titleOf({ title, sibling_label: siblingLabel ?? undefined });
  return html`${label || symbol} of <a href="${marketPath({ venue, market_id: marketId })}">${market}</a>`;
}

function balanceTable(balances: readonly WalletBalance[], names: Names, baselineAt: Date | null): Html {
  return table<WalletBalance>({
    caption: 'Balances of the last complete read',
    columns: [
      { label: 'Token', cell: ({ tokenMint, tokenSymbol }) => tokenWords(tokenMint, tokenSymbol, names) },
      { label: 'Balance', isNumeric: true, cell: ({ balance }) => amount(balance) },
      { label: 'Since (UTC)', cell: ({ changedAt }) => minute(new Date(changedAt)) },
    ],
    rows: balances,
    empty:
      baselineAt === null
        ? 'The balances are not read yet. The first complete read is the baseline, and makes no event.'
        : 'The last complete read listed no balance.',
  });
}

/** `webhooks` is undefined for a key that must not read them, and so no delivery. */
function activityTable(
  { venue }: Wallet,
  events: readonly WalletEvent[],
  names: Names,
  webhooks: readonly Webhook[] | undefined,
): Html {
  const urls = new Map(webhooks?.map(({ id, url }) => [id, url]));
  return table<WalletEvent>({
    caption: 'Events of the wallet, newest first',
    columns: [
      { label: 'Time (UTC)', cell: ({ payload, createdAt }) => minute(new Date(payload.data.timestamp ?? createdAt)) },
      { label: 'What', cell: (event) => activityWords(event, venue, names) },
      { label: 'Amounts', cell: (event) => amountWords(event, names) },
      {
        label: 'Deliveries',
        cell: ({ deliveries = [] }) =>
          deliveries.length === 0
            ? NONE
            : deliveries.map(({ id, webhookId, status }) => {
                const state = deliveryState({ status, attempts: 0 });
                const name = endpointName(urls.get(webhookId) ?? '');
                return webhooks === undefined
                  ? html`${state} `
                  : html`<a href="/webhooks/${webhookId}/deliveries/${id}" title="${name}">${state}<span class="visually-hidden"> to ${name}</span></a> `;
              }),
      },
    ],
    rows: events,
    empty: 'No event yet. Events begin with the watch: earlier transactions make none.',
  });
}

function activityWords({ type, payload: { data } }: WalletEvent, venue: string, names: Names): Html {
  const named = names.has(data.tokenMint ?? '') || (data.transfers ?? []).some(({ tokenMint }) => names.has(tokenMint));
  const market =
    data.marketId !== undefined &&
    !named &&
    html` <span class="where"><a href="${marketPath({ venue, market_id: data.marketId })}">market ${shortId(data.marketId)}</a></span>`;
  if (type === 'balance_change') return html`balance${market}`;
  const words = [data.type, data.type === 'trade' && data.side].filter((each) => each).join(' ');
  return html`${words === '' ? 'transaction' : words}${data.status !== 'confirmed' && data.status !== undefined && ` (${data.status})`}${
    data.transactionId !== undefined && html`<span class="where">${shortId(data.transactionId)}</span>`
  }${market}`;
}

function amountWords({ type, payload: { data } }: WalletEvent, names: Names): Html {
  if (type === 'balance_change') {
    return html`${amount(data.previousBalance)} → ${amount(data.currentBalance)} ${tokenWords(data.tokenMint ?? '', data.tokenSymbol, names)}`;
  }
  return html`<ul class="plain">${(data.transfers ?? []).map(
    ({ tokenMint, tokenSymbol, change }) =>
      html`<li>${signed(change)} ${tokenWords(tokenMint, tokenSymbol, names)}</li>`,
  )}</ul>`;
}

/** An amount with its sign. */
function signed(change: Decimal): Html {
  const text = plain(change);
  const isOut = text.startsWith('-');
  return html`<span class="num ${isOut ? 'down' : 'up'}">${isOut ? '−' : '+'}${amount(text.replace('-', ''))}</span>`;
}

/** Tokens with a chart: the last changed ones. */
const MAX_CHARTS = 8;

/** Changes of balances, oldest first. */
interface ReadChanges {
  events: readonly WalletEvent[];
  /** Whether older changes exist that were not read. */
  isCut: boolean;
}

interface Change {
  atMs: number;
  before: Decimal;
  after: Decimal;
}

/** A chart of steps for each token whose balance changed, from the events of the wallet. */
function balanceCharts(
  { events, isCut }: ReadChanges,
  view: { wallet: Wallet; tokenName(token: string, symbol: string | undefined): Html; nowMs: number },
): Html {
  const { wallet, tokenName, nowMs } = view;
  const [first] = events;
  const watchedMs = Date.parse(wallet.createdAt);
  const fromMs = isCut && first !== undefined ? Date.parse(first.createdAt) : watchedMs;
  const since = html`<p class="muted">The data begin on ${minute(new Date(fromMs))} UTC: ${
    isCut
      ? 'older changes are in the activity.'
      : 'oddswire records a balance from the first complete read after the watch, and changes while their events are kept.'
  }</p>`;
  if (events.length === 0) return html`${since}${emptyState('No balance has changed since then.')}`;
  const tokens = new Map<string, { symbol: string | undefined; changes: Change[] }>();
  for (const { createdAt, payload } of events) {
    const {
      tokenMint = '',
      tokenSymbol: symbol,
      previousBalance: before = 0,
      currentBalance: after = 0,
    } = payload.data;
    const known = tokens.get(tokenMint)?.changes ?? [];
    // The token that changed last comes last.
    tokens.delete(tokenMint);
    tokens.set(tokenMint, { symbol, changes: [...known, { atMs: Date.parse(createdAt), before, after }] });
  }
  const shown = [...tokens].reverse().slice(0, MAX_CHARTS);
  const more = tokens.size - shown.length;
  return html`${since}<div class="balance-charts">${shown.map(([token, { symbol, changes }]) =>
    chart(tokenName(token, symbol), symbol ?? 'a token', changes, fromMs, nowMs),
  )}</div>${more > 0 && html`<p class="muted">${more} more ${more === 1 ? 'token' : 'tokens'} changed before these.</p>`}`;
}

function chart(name: Html, plainName: string, changes: readonly Change[], fromMs: number, nowMs: number): Html {
  const [first, last] = [changes[0], changes.at(-1)];
  if (first === undefined || last === undefined) return html``;
  const highest = Math.max(
    ...changes.flatMap(({ before, after }) => [Number(before), Number(after)]),
    Number.MIN_VALUE,
  );
  const at = (x: number, value: Decimal) => ({ x, y: Math.max(0, Number(value) / highest) });
  const points = [
    at(fromMs, first.before),
    ...changes.flatMap(({ atMs, before, after }) => [at(atMs, before), at(atMs, after)]),
    at(nowMs, last.after),
  ];
  const words = `Balance of ${plainName}: ${changes.length} ${changes.length === 1 ? 'change' : 'changes'}, from ${first.before} to ${last.after}`;
  return html`<figure class="card balance-chart"><figcaption><span>${name}</span> <strong>${amount(last.after)}</strong></figcaption>
<div class="plot"><div class="scale" aria-hidden="true"><span>${amount(String(highest))}</span><span>0</span></div>
${lineChart([points], words, { span: [fromMs, nowMs] })}</div>
<p class="time-scale muted" aria-hidden="true"><span>${minute(new Date(fromMs))}</span><span>${minute(new Date(nowMs))}</span></p></figure>`;
}
