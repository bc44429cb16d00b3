import { INTERVALS, type Interval } from '../../../src/domain/markets/candle.ts';
import { decimal, subtractDecimals } from '../../../src/domain/values/decimal.ts';
import type { StoredMarket } from '../../../src/store/catalog/market-reads.ts';
import type { OpsMarketState, OpsOutcome, StoredObservation } from '../../../src/store/ops/markets.ts';
import type { LatestBook, StoredLevel } from '../../../src/store/series/book-reads.ts';
import type { StoredCandle, StoredTrade } from '../../../src/store/series/reads.ts';
import { depthBar } from '../kit/drawings.ts';
import { ago, duration, type Html, html, longText, NONE, number, table, time } from '../kit/html.ts';
import { decimalColumn, decimalText } from '../kit/shown-values.ts';
import { marketPath } from './links.ts';

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

const SHOWN_LEVELS = 12;

/** The book as two depth tables, best prices first, with its age. */
export function bookView(book: LatestBook | null, hasBook: boolean, nowMs: number): Html {
  if (book === null) {
    return html`<p class="empty">${hasBook ? 'No book of this outcome is stored yet.' : 'The venue has no book for this market.'}</p>`;
  }
  const { bids, asks, asOf, unseenMs } = book;
  const [bid, ask] = [bids[0]?.[0], asks[0]?.[0]];
  const shown = [...bids.slice(0, SHOWN_LEVELS), ...asks.slice(0, SHOWN_LEVELS)];
  const largest = Math.max(...shown.map(([, size]) => Number(size)), Number.MIN_VALUE);
  return html`<p class="muted">Last seen ${duration(Math.max(0, unseenMs))} ago. Venue time: ${ago(asOf, nowMs)}.${
    bid !== undefined &&
    ask !== undefined &&
    html` Spread ${decimalText(subtractDecimals(decimal(ask), decimal(bid)))}.`
  }</p>
<div class="columns book"><section class="bids"><h3>Bids</h3>${side('Bids, highest first', bids, largest)}</section>
<section class="asks"><h3>Asks</h3>${side('Asks, lowest first', asks, largest)}</section></div>`;
}

function side(caption: string, levels: readonly StoredLevel[], largest: number): Html {
  const rows = levels.slice(0, SHOWN_LEVELS);
  const priceText = decimalColumn(rows.map(([price]) => price));
  const sizeText = decimalColumn(rows.map(([, size]) => size));
  const more = levels.length - SHOWN_LEVELS;
  return html`${table<StoredLevel>({
    caption,
    columns: [
      { label: 'Price', cell: ([price]) => priceText(price), isNumeric: true },
      { label: 'Size', cell: ([, size]) => sizeText(size), isNumeric: true },
      { label: 'Depth', cell: ([, size]) => depthBar(Number(size) / largest) },
    ],
    rows,
    empty: 'No orders.',
  })}${more > 0 && html`<p class="hint">${number(more)} more levels</p>`}`;
}

/** Trades, newest first. */
export function tradeTable(trades: readonly StoredTrade[], outcomes: readonly OpsOutcome[], nowMs: number): Html {
  const labels = new Map(outcomes.map(({ tokenId, label }) => [tokenId, label]));
  const priceText = decimalColumn(trades.map(({ price }) => price));
  const sizeText = decimalColumn(trades.map(({ size }) => size));
  return table<StoredTrade>({
    caption: 'Trades, newest first',
    columns: [
      { label: 'Time', cell: ({ at }) => ago(at, nowMs) },
      { label: 'Outcome', cell: ({ tokenId }) => longText(labels.get(tokenId)) },
      {
        label: 'Side',
        cell: ({ side }) =>
          side === undefined ? NONE : html`<span class="${side === 'buy' ? 'up' : 'down'}">${side}</span>`,
      },
      { label: 'Price', cell: ({ price }) => priceText(price), isNumeric: true },
      { label: 'Size', cell: ({ size }) => sizeText(size), isNumeric: true },
    ],
    rows: trades,
    empty: 'No trade is stored.',
  });
}

/** The price observations of the alert evaluation, newest first. */
export function observationTable(observations: readonly StoredObservation[]): Html {
  const priceText = decimalColumn(observations.map(({ price }) => price));
  return table<StoredObservation>({
    caption: 'Observed prices, newest first',
    columns: [
      { label: 'Received (UTC)', cell: ({ receivedAt }) => time(receivedAt) },
      {
        label: 'Delay',
        cell: ({ receivedAt, venueAt }) => html`${((receivedAt.getTime() - venueAt.getTime()) / 1000).toFixed(1)} s`,
        isNumeric: true,
      },
      { label: 'Price', cell: ({ price }) => priceText(price), isNumeric: true },
    ],
    rows: observations,
    empty: 'No observation within seven days.',
  });
}
