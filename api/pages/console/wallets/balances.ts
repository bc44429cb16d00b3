import { lineChart } from '../../kit/drawings.ts';
import { emptyState, type Html, html } from '../../kit/html.ts';
import type { Decimal, Wallet, WalletEvent } from '../answers.ts';
import { amount, minute } from '../values.ts';

/** Tokens with a chart: the last changed ones. */
const MAX_CHARTS = 8;

/** Changes of balances, oldest first. */
export interface ReadChanges {
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
export function balanceCharts(
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
