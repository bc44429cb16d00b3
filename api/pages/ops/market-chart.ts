import { INTERVALS, type Interval } from '../../../src/domain/markets/candle.ts';
import type { StoredMarket } from '../../../src/store/catalog/market-reads.ts';
import type { OpsMarketState, OpsOutcome } from '../../../src/store/ops/markets.ts';
import type { StoredCandle } from '../../../src/store/series/reads.ts';
import { ago, type Html, html, number, table, time } from '../kit/html.ts';
import { decimalColumn, marketPath } from '../kit/shown-values.ts';

const LISTED_CANDLES = 30;

/** The selected outcome and interval of a market. */
export interface MarketView {
  market: StoredMarket;
  state: OpsMarketState;
  /** Undefined: the market has no outcomes. */
  outcome: OpsOutcome | undefined;
  interval: Interval;
}

/** The address of a market page with this outcome and interval, at the chart. */
export function viewPath(market: StoredMarket, outcomeId: string, interval: Interval): string {
  return `${marketPath(market)}?${new URLSearchParams({ outcome: outcomeId, interval }).toString()}#chart`;
}

/** The candles of an outcome: a chart drawn by a script, and a table for screen readers and browsers without scripts. */
export function chart(
  { market, state, interval }: MarketView,
  outcome: OpsOutcome,
  candles: readonly StoredCandle[],
  nowMs: number,
): Html {
  const source = `/ops/data${marketPath(market).slice('/ops'.length)}/candles.json?${new URLSearchParams({ outcome: outcome.outcomeId, interval }).toString()}`;
  const last = candles.at(-1);
  return html`<section id="chart" aria-labelledby="chart-title"><h2 id="chart-title">Price of ${outcome.label}</h2>
<div class="switches">
<nav class="switch" aria-label="Interval">${INTERVALS.map(
    (name) =>
      html`<a href="${viewPath(market, outcome.outcomeId, name)}"${name === interval && html` aria-current="true"`}>${name}</a>`,
  )}</nav>
${
  state.outcomes.length > 1 &&
  html`<nav class="switch" aria-label="Outcome">${state.outcomes.map(
    ({ outcomeId, label }) =>
      html`<a href="${viewPath(market, outcomeId, interval)}"${outcomeId === outcome.outcomeId && html` aria-current="true"`}>${label || outcomeId}</a>`,
  )}</nav>`
}</div>
${
  last === undefined
    ? html`<p class="empty">No candle of this interval exists yet.</p>`
    : html`<div class="card"><div class="chart" id="candle-chart" role="img" data-source="${source}" aria-label="Candles of ${outcome.label}, ${interval} each, the last one closed at ${last.close}. The table below holds the same candles."></div>
<p class="hint" id="candle-status" role="status"></p>
<noscript><p class="hint">The chart needs scripts. The table holds the same candles.</p></noscript></div>`
}
${candles.length > 0 && candleTable(candles, nowMs)}</section>`;
}

function candleTable(candles: readonly StoredCandle[], nowMs: number): Html {
  const rows = candles.slice(-LISTED_CANDLES).reverse();
  const priceText = decimalColumn(rows.flatMap(({ open, high, low, close }) => [open, high, low, close]));
  const volumeText = decimalColumn(rows.map(({ volume }) => volume));
  return html`<details class="more"><summary>The last ${rows.length} candles as a table</summary>${table<StoredCandle>({
    caption: 'Candles, newest first',
    columns: [
      { label: 'From (UTC)', cell: ({ bucket }) => time(new Date(bucket * 1000)) },
      { label: 'Age', cell: ({ bucket }) => ago(new Date(bucket * 1000), nowMs) },
      { label: 'Open', cell: ({ open }) => priceText(open), isNumeric: true },
      { label: 'High', cell: ({ high }) => priceText(high), isNumeric: true },
      { label: 'Low', cell: ({ low }) => priceText(low), isNumeric: true },
      { label: 'Close', cell: ({ close }) => priceText(close), isNumeric: true },
      { label: 'Volume', cell: ({ volume }) => volumeText(volume), isNumeric: true },
      { label: 'Trades', cell: ({ trades }) => number(trades), isNumeric: true },
    ],
    rows,
    empty: 'No candle is stored.',
  })}</details>`;
}
