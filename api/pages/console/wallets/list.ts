import { exampleAddress, readWalletAddress } from '../../../../src/domain/wallets/address.ts';
import { readAccountQuotas } from '../../../../src/store/accounts/quotas.ts';
import { readAccountUsage } from '../../../../src/store/ops/account-usage.ts';
import { readWalletFigures, type WalletFigures } from '../../../../src/store/wallets/wallet-reads.ts';
import { type FormView, formView } from '../../kit/form-view.ts';
import { actionForm } from '../../kit/forms.ts';
import { ago, badge, type Html, html, NONE, number, table } from '../../kit/html.ts';
import { PAGE_ROWS, pager } from '../../kit/lists.ts';
import type { PageDeps } from '../../kit/page-deps.ts';
import type { PageContent } from '../../kit/router.ts';
import { shortId } from '../../kit/shown-values.ts';
import type { Wallet } from '../answers.ts';
import { programExamples } from '../program.ts';
import type { ConsoleRequest, ConsoleRouter } from '../route.ts';
import { venueTitle } from '../values.ts';

export const WALLETS_PATH = '/wallets';
const CHECK_PATH = '/console/wallets/address';

type WalletsDeps = Pick<PageDeps, 'db' | 'venues' | 'quotas'>;

/** /wallets: the watched wallets of the account with their state, and the watch of another one. */
export function walletsPage(router: ConsoleRouter, deps: WalletsDeps): void {
  const [section, scope] = ['wallets', 'wallets'] as const;

  router.page({ path: WALLETS_PATH, section, scope, load: (request) => page(deps, request, formView()) });

  /* Judges an address while it is entered. */
  router.part({
    path: CHECK_PATH,
    scope,
    load: async ({ query }) => addressWords(query.get('venue') ?? '', (query.get('address') ?? '').trim()),
  });

  router.action({
    path: WALLETS_PATH,
    section,
    scope,
    async run(request) {
      const { form } = request;
      const text = (name: string) => (form.get(name) ?? '').trim();
      const body = {
        venue: text('venue'),
        address: text('address'),
        ...(text('label') !== '' && { label: text('label') }),
      };
      const once = form.get('once') ?? '';
      const { data } = await request.api<Wallet>({ operationId: 'createWallet', body, once });
      return { result: 'The wallet is watched. Its events begin now.', to: `${WALLETS_PATH}/${data.id}` };
    },
    rejected: (request, error) => page(deps, request, formView(request.form, error, 'The wallet is not watched.')),
  });
}

async function page(deps: WalletsDeps, request: ConsoleRequest, view: FormView): Promise<PageContent> {
  const { caller, accountName } = request.session;
  const query = { limit: PAGE_ROWS, cursor: request.query.get('cursor') ?? undefined };
  const call = { operationId: 'listWallets', query };
  const { data: wallets, meta, text } = await request.api<Wallet[]>(call);
  const [figures, used, quotas] = await Promise.all([
    readWalletFigures(
      deps.db,
      caller.accountId,
      wallets.map(({ id }) => id),
    ),
    readAccountUsage(deps.db, caller.accountId),
    readAccountQuotas(deps.db, accountName),
  ]);
  const body = html`<p class="lead">Each transaction and each changed balance of a watched wallet is one event.</p>
${newWallet(deps, request, view, { used: used.wallets, limit: quotas?.wallets ?? deps.quotas.wallets })}
${walletTable(wallets, figures, request.nowMs)}
${pager(request, meta.next_cursor)}
${programExamples(request, {
  calls: [['these wallets', call]],
  typescript: 'for await (const wallet of client.wallets.iterate()) console.log(wallet);',
  python: `for wallet in client.wallets.iterate():
    print(wallet)`,
  json: text,
})}`;
  return { title: 'Wallets', body, scripts: ['wallets.js'] };
}

function newWallet(
  { venues }: WalletsDeps,
  request: ConsoleRequest,
  view: FormView,
  { used, limit }: { used: number; limit: number },
): Html {
  const readable = venues.filter(({ capabilities }) => capabilities.wallets).map(({ venue }) => venue as string);
  const [first] = readable;
  if (first === undefined) {
    return html`<p class="note">This server reads the wallets of no venue, so none can be watched. An operator enables them: Polymarket with
<code>polymarket</code> in <code>VENUES</code>, Solana with <code>solana</code> in <code>VENUES</code> and the address of a node in <code>SOLANA_RPC_URL</code>.</p>`;
  }
  const venue = view.value('venue', first);
  return html`<details class="fold" data-new-alert${view.isRejected && html` open`}><summary class="button">Watch a wallet</summary>${actionForm(
    request,
    WALLETS_PATH,
    view.withReasons(html`${view.choice({
      label: 'Venue',
      name: 'venue',
      value: first,
      options: readable.map((each) => [each, venueTitle(each)] as const),
    })}
${view.field({ label: 'Address', name: 'address', isRequired: true })}
<div data-check="${CHECK_PATH}" aria-live="polite">${
      view.isRejected
        ? addressWords(venue, view.value('address').trim())
        : readable.map((each) => addressWords(each, ''))
    }</div>
${view.field({ label: 'Label', name: 'label', hint: 'Optional, for you.' })}
<div class="actions"><button type="submit" class="primary">Watch the wallet</button></div>`),
    'form card',
  )}</details><p class="muted">${number(used)} of ${number(limit)} wallets are watched.${used >= limit && html` ${badge('warn', 'used up')}`}</p>`;
}

/** Says that a text is an address of a venue, or the reason against it with an example. */
function addressWords(venue: string, text: string): Html {
  const example = exampleAddress(venue);
  const right =
    example !== undefined && html`An address of ${venueTitle(venue)} looks like <code class="long">${example}</code>.`;
  if (text === '') return html`<p class="hint">${right}</p>`;
  const read = readWalletAddress(venue, text);
  if (!read.ok) return html`<p class="field-problem">It ${read.problem}. ${right}</p>`;
  return html`<p class="hint">${badge('good', 'an address')} <code class="long">${read.address}</code></p>`;
}

function walletTable(wallets: readonly Wallet[], figures: ReadonlyMap<string, WalletFigures>, nowMs: number): Html {
  return table<Wallet>({
    caption: 'Watched wallets, newest first',
    columns: [
      {
        label: 'Wallet',
        cell: ({ id, address, label }) =>
          html`<a class="row-link" data-row href="${WALLETS_PATH}/${id}">${label ?? shortId(address)}</a>${
            label !== undefined && html`<span class="where">${shortId(address)}</span>`
          }`,
      },
      { label: 'Venue', cell: ({ venue }) => venueTitle(venue) },
      { label: 'Balance', isNumeric: true, cell: ({ id }) => heldWords(figures.get(id)) },
      { label: 'Last activity', cell: ({ id }) => ago(figures.get(id)?.lastEventAt, nowMs) },
      { label: 'Read', cell: ({ id }) => readState(figures.get(id), nowMs) },
      { label: 'Watched', cell: ({ createdAt }) => ago(new Date(createdAt), nowMs) },
    ],
    rows: wallets,
    empty: 'No wallet is watched yet. Watch one: each of its transactions then becomes an event.',
  });
}

/** The number of tokens with a balance; unknown before the first complete read. */
export function heldWords(figures: WalletFigures | undefined): Html {
  if (!figures?.baselineAt) return NONE;
  return html`${number(figures.held)} ${figures.held === 1 ? 'token' : 'tokens'}`;
}

/** When the wallet was read, and whether its reads fail. */
export function readState(figures: WalletFigures | undefined, nowMs: number): Html {
  if (!figures?.polledAt) return html`${badge('idle', 'not read yet')}`;
  const { failures, polledAt } = figures;
  if (failures > 0) return html`${badge('warn', `${failures} ${failures === 1 ? 'failure' : 'failures'} in a row`)}`;
  return ago(polledAt, nowMs);
}
