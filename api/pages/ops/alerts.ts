import { ALERT_STATUSES, type AlertStatus } from '../../../src/domain/alerts/condition.ts';
import { compareDecimals, type Decimal, decimal, subtractDecimals } from '../../../src/domain/values/decimal.ts';
import { decodeMark } from '../../../src/store/marks/detail.ts';
import {
  type DeadLetteredMark,
  listDeadLetters,
  listOpsAlerts,
  type OpsAlert,
  type OpsAlertFilter,
} from '../../../src/store/ops/alerts.ts';
import { anyOf, chosen, textField } from '../kit/filters.ts';
import { choice, field, filterForm } from '../kit/forms.ts';
import { ago, badge, code, type Html, html, longText, NONE, number, type Tone, table, time } from '../kit/html.ts';
import { BY_AGE, PAGE_ROWS, pager } from '../kit/lists.ts';
import type { PageDeps } from '../kit/page-deps.ts';
import { decimalColumn, decimalText, shortId } from '../kit/shown-values.ts';
import type { OpsRouter } from './actions.ts';
import { marketPath } from './links.ts';
import type { Problems } from './problems/read.ts';

const PATH = '/ops/alerts';
const MAX_DEAD_LETTERS = 50;
const TONES: Readonly<Record<AlertStatus, Tone>> = {
  active: 'good',
  paused: 'idle',
  triggered: 'warn',
  expired: 'idle',
};

type AlertDeps = Pick<PageDeps, 'db' | 'cursors' | 'venues'> & { problems: Pick<Problems, 'head'> };

/** /ops/alerts: the alerts of all accounts, newest first, and the dead-lettered marks. */
export function alertsPage(router: OpsRouter, deps: AlertDeps): void {
  router.page({
    path: PATH,
    section: 'alerts',
    async load({ query, nowMs }) {
      const filter = readFilter(query, deps);
      const scope = JSON.stringify([PATH, filter]);
      const cursor = query.get('cursor');
      const [after] = cursor === null ? [] : deps.cursors.decode(scope, cursor);
      const found = await listOpsAlerts(deps.db, filter, PAGE_ROWS, after === undefined ? undefined : BigInt(after));
      const deadLetters = await listDeadLetters(deps.db, MAX_DEAD_LETTERS + 1);
      const body = html`${await deps.problems.head(['alerts'], nowMs, 'Nothing is wrong: alerts are evaluated on time, and none is dead-lettered.')}
<p class="lead">Price alerts of all accounts, newest first, with the distance from the price to the target.</p>
${deadLetters.length > 0 && deadLetterTable(deadLetters, nowMs)}
${filters(filter)}
${alertTable(found.alerts, nowMs)}
${found.searchedSince !== undefined && html`<p class="hint">The search covers alerts since ${time(found.searchedSince)} UTC. Older pages may hold more.</p>`}
${pager({ path: PATH, query }, found.next === undefined ? undefined : deps.cursors.encode(scope, [String(found.next)]), BY_AGE)}`;
      return { title: 'Alerts', body };
    },
  });
}

function readFilter(query: URLSearchParams, deps: Pick<PageDeps, 'venues'>): OpsAlertFilter {
  const id = textField(query, 'id');
  const status = chosen(query, 'status', ALERT_STATUSES);
  const account = textField(query, 'account');
  const tokenMint = textField(query, 'token');
  const marketId = textField(query, 'market');
  return {
    ...(id !== undefined && { id }),
    ...(status !== undefined && { status }),
    ...(account !== undefined && { account }),
    ...(tokenMint !== undefined && { tokenMint }),
    ...(marketId !== undefined && { market: { venues: deps.venues.map(({ venue }) => venue), marketId } }),
  };
}

function filters({ id = '', status, account = '', tokenMint = '', market }: OpsAlertFilter): Html {
  return filterForm(
    PATH,
    html`${choice({ label: 'Status', name: 'status', value: status ?? '', options: anyOf(ALERT_STATUSES) })}
${field({ label: 'Account', name: 'account', value: account, hint: 'name or number' })}
${field({ label: 'Token', name: 'token', value: tokenMint, hint: 'mint or outcome id' })}
${field({ label: 'Market', name: 'market', value: market?.marketId ?? '', hint: 'market id of the venue' })}
${field({ label: 'Alert', name: 'id', value: id, hint: 'id of the alert' })}`,
  );
}

function alertTable(alerts: readonly OpsAlert[], nowMs: number): Html {
  const priceText = decimalColumn(alerts.map(({ price }) => price));
  return table<OpsAlert>({
    caption: 'Alerts, newest first',
    columns: [
      { label: 'Alert', cell: ({ id }) => html`<a href="${PATH}?id=${id}">${shortId(id)}</a>` },
      { label: 'Status', cell: ({ status }) => badge(TONES[status], status) },
      { label: 'Token', cell: subject },
      {
        label: 'Fires',
        cell: ({ condition, target, currency }) =>
          target === null ? html`${condition}` : html`${condition} ${decimalText(target)} ${unit(currency)}`,
      },
      { label: 'Price', cell: priceCell(priceText, nowMs), isNumeric: true },
      { label: 'Distance', cell: distance, isNumeric: true },
      { label: 'Account', cell: owner },
      { label: 'Created', cell: ({ createdAt }) => ago(createdAt, nowMs) },
      { label: 'Fired', cell: fired(nowMs) },
    ],
    rows: alerts,
    empty: 'No alert matches these filters.',
  });
}

function owner({ accountName, webhookId }: OpsAlert): Html {
  const webhook =
    webhookId === null
      ? html`<span class="muted">default webhook</span>`
      : html`<a href="/ops/webhooks/${webhookId}">${shortId(webhookId)}</a>`;
  return html`${longText(accountName)} ${webhook}`;
}

function unit(currency: string): Html {
  return html`<span class="muted">${currency}</span>`;
}

function subject({ market, tokenMint, symbol, isTracked }: OpsAlert): Html {
  const tracked = !isTracked && html` ${badge('warn', 'not tracked')}`;
  if (market === null) return html`${symbol !== null && html`${symbol} `}${shortId(tokenMint)}${tracked}`;
  return html`<a href="${marketPath(market)}">${longText(market.title)}</a> <span class="muted">${market.label}</span>${tracked}`;
}

function priceCell(priceText: typeof decimalText, nowMs: number) {
  return ({ price, pricedAt }: OpsAlert) =>
    price === null ? NONE : html`${priceText(price)}<br><span class="muted">${ago(pricedAt, nowMs)}</span>`;
}

/** The distance from the latest price to the target, in the currency and as a share of the target. */
function distance({ status, condition, target, price }: OpsAlert): Html {
  const isTarget = condition === 'above' || condition === 'below';
  if (status !== 'active' || price === null || target === null || !isTarget) return NONE;
  const [from, to] = condition === 'above' ? [price, target] : [target, price];
  const left: Decimal = subtractDecimals(decimal(to), decimal(from));
  if (compareDecimals(left, decimal(0)) <= 0) return html`<span class="muted">met</span>`;
  const share = (Number(left) / Number(target)) * 100;
  return html`${decimalText(left)}<br><span class="muted num">${share.toFixed(share < 10 ? 1 : 0)} %</span>`;
}

function fired(nowMs: number) {
  return ({ triggeredAt, triggeredPrice, eventId }: OpsAlert) => {
    if (triggeredAt === null) return NONE;
    const at = html`${ago(triggeredAt, nowMs)}${triggeredPrice !== null && html` at ${decimalText(triggeredPrice)}`}`;
    return eventId === null ? at : html`${at}<br><a href="/ops/deliveries?event=${eventId}">deliveries</a>`;
  };
}

function deadLetterTable(deadLetters: readonly DeadLetteredMark[], nowMs: number): Html {
  const more = deadLetters.length > MAX_DEAD_LETTERS;
  return html`<section aria-labelledby="dead-letters"><h2 id="dead-letters">Dead letters</h2>
<p class="lead">Marks that failed. Other work continues without them. The next start of the process retries them.</p>
${table<DeadLetteredMark>({
  caption: 'Dead-lettered marks, newest first',
  columns: [
    { label: 'Stage', cell: ({ stage }) => code(stage) },
    { label: 'Work', cell: describeMark },
    { label: 'Error', cell: ({ error }) => longText(error) },
    { label: 'Since', cell: ({ since }) => ago(since, nowMs) },
  ],
  rows: deadLetters.slice(0, MAX_DEAD_LETTERS),
  empty: 'No mark is dead-lettered.',
})}
${more && html`<p class="hint">The table shows the newest ${number(MAX_DEAD_LETTERS)} marks.</p>`}</section>`;
}

function describeMark({ stage, detail, key, tokenMint, market }: DeadLetteredMark): Html {
  const token = tokenMint === null ? html`token ${String(key)}` : shortId(tokenMint);
  const of = market === null ? token : html`<a href="${marketPath(market)}">${token}</a>`;
  const meaning = decodeMark(stage, detail);
  switch (meaning.kind) {
    case 'minute':
      return html`minute ${time(new Date(Number(meaning.start) * 1000))} of ${of}`;
    case 'observed':
      return html`prices received ${time(new Date(Number(meaning.atMs)))} of ${of}`;
    case 'alertCreated':
      return html`a new alert on ${of}`;
    case 'marketFinal':
      return html`the final outcome of ${of}`;
    case 'marketChanged':
      return html`a market that changed ${time(new Date(Number(meaning.atMs)))}`;
    case 'gapBegan':
      return html`a gap of a feed, stored ${time(new Date(Number(meaning.atMs)))}`;
    case 'gapEnded':
      return html`the end of a gap of a feed ${time(new Date(Number(meaning.atMs)))}`;
    case 'bookSeen':
      return html`a book of ${of}`;
  }
}
