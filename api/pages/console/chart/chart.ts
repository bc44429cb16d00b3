import { INTERVAL_SECONDS, type Interval } from '../../../../src/domain/markets/candle.ts';
import { type ChartBand, lineChart } from '../../kit/drawings.ts';
import { type Html, html, NONE, table } from '../../kit/html.ts';
import { withQuery } from '../../kit/lists.ts';
import { shareText } from '../../kit/shown-values.ts';
import { firesWhen } from '../alert-words.ts';
import type { Alert, Candle, Decimal, Firing, Market } from '../answers.ts';
import type { ConsoleRequest } from '../route.ts';
import { CHART_KINDS, type ChartKind, RANGES, type Range, type Series, windowOf } from '../series.ts';
import { amountColumn, fromSeconds, minute, percent, priceColumn } from '../values.ts';
import {
  type ChartLine,
  candidatesOf,
  chosenOf,
  compareForm,
  lineLegend,
  MAX_LINES,
  memberOf,
  readLine,
  readLines,
} from './compare.ts';
import { type Gap, gapList, readGaps, shownGaps } from './gaps.ts';
import type { MarketRequest, View } from './view.ts';

const SHOWN_CANDLES = 30;
const OTHER_LINES = MAX_LINES - 1;

/** The data of a chart. */
export interface Chart {
  interval: Interval;
  /** The start of the range, epoch seconds. */
  start: number;
  /** The first one is the line of the page. */
  lines: ChartLine[];
  candles: Candle[];
  /** Gaps of the candles and of the volume. */
  tradeGaps: Gap[];
  history: Series['history'];
  firings: Firings;
}

/** Reads the line and the candles of the outcome of a page, the compared lines, and their gaps. */
export async function readChart(
  request: MarketRequest & Partial<Pick<ConsoleRequest, 'session'>>,
  { market, outcome, range, kind }: View,
  siblings: readonly Market[],
): Promise<Chart> {
  const window = windowOf(range, market, request.nowMs, kind);
  const { interval, start } = window;
  const firings: Firings = { shown: [], isCut: false };
  if (!outcome) return { interval, start, lines: [], candles: [], tradeGaps: [], history: undefined, firings };
  const gaps = readGaps(request, market, window);
  const { session } = request;
  const compared = chosenOf(request, candidatesOf(market, outcome.outcome_id, siblings), OTHER_LINES);
  const [own, others, { trades }, fired] = await Promise.all([
    readLine(request, memberOf(market, outcome), window, gaps),
    readLines(request, compared, window, new Map([[market.market_id, gaps]])),
    gaps,
    session === undefined ? firings : readFirings({ ...request, session }, market, outcome.outcome_id, start),
  ]);
  const { series, ...line } = own;
  const { candles, history } = series;
  return { interval, start, lines: [line, ...others], candles, tradeGaps: shownGaps(trades), history, firings: fired };
}

/** The data of a chart for its script. The script replaces the parts of the page by `parts`. */
export function chartData({ interval, start, lines, candles, tradeGaps, history, firings }: Chart) {
  const [own, ...others] = lines;
  return {
    interval,
    seconds: INTERVAL_SECONDS[interval],
    start,
    line: own?.line ?? [],
    label: own?.label ?? '',
    outcome_id: own?.outcome_id,
    compared: others.map(({ outcome_id, label, line }) => ({ outcome_id, label, line })),
    candles,
    gaps: { line: own?.gaps ?? [], trades: tradeGaps },
    history,
    firings: firings.shown.map(({ time, price, path, words }) => ({
      time,
      price: price && Number(price),
      path,
      words,
    })),
    parts: {
      lines: lineLegend(lines).toString(),
      gaps: gapsInWords(lines, tradeGaps).toString(),
      firings: firingList(firings).toString(),
    },
  };
}

/** The gaps of the lines and of the trades in words. Prices and trades often miss the same time for the same reason. */
function gapsInWords(lines: readonly ChartLine[], trades: readonly Gap[]): Html {
  const [own, ...others] = lines;
  const all = [
    ...(own?.gaps.map((gap) => ({ ...gap, of: others.length > 0 ? own.label : 'prices' })) ?? []),
    ...trades.map((gap) => ({ ...gap, of: 'trades and volume' })),
    ...others.flatMap(({ label, gaps }) => gaps.map((gap) => ({ ...gap, of: label }))),
  ];
  const seen = new Map<string, (typeof all)[number]>();
  for (const gap of all) {
    const key = `${gap.from} ${gap.to} ${gap.why}`;
    const known = seen.get(key);
    if (known === undefined) seen.set(key, { ...gap });
    else known.of = `${known.of}, ${gap.of}`;
  }
  return gapList([...seen.values()]);
}

/** Links to the ranges of a chart, and to its kinds when it has several. Its script follows them without a reload. */
export function chartSwitches(
  request: Pick<ConsoleRequest, 'path' | 'query'>,
  {
    range,
    kind,
    outcomes = [],
    outcome,
  }: { range: Range; kind?: ChartKind; outcomes?: Market['outcomes']; outcome?: string | undefined },
): Html {
  const link = (label: string, isCurrent: boolean, to: Record<string, string>, data: string) =>
    html`<a href="${withQuery(request, to)}" data-switch="${data}"${
      isCurrent && html` aria-current="true"`
    }>${label}</a>`;
  return html`<div class="switches">
<nav class="switch" aria-label="Range">${RANGES.map((each) => link(each, each === range, { range: each }, 'range'))}</nav>${
    kind !== undefined &&
    html`<nav class="switch" aria-label="Chart">${CHART_KINDS.map((each) => link(each, each === kind, { chart: each }, 'chart'))}</nav>`
  }${
    outcomes.length > 1 &&
    html`<nav class="switch" aria-label="Outcome">${outcomes.map((each) =>
      link(each.label || each.outcome_id, each.outcome_id === outcome, { outcome: each.outcome_id }, ''),
    )}</nav>`
  }<span class="chart-buttons"><button type="button" class="zoom" data-zoom aria-pressed="false" hidden>Zoom the axis</button>
<button type="button" class="zoom" data-picture hidden>Picture</button></span></div>`;
}

/** The choice of the compared lines on the page of a market. */
export function marketCompare(
  { query }: Pick<ConsoleRequest, 'query'>,
  { market, outcome }: View,
  siblings: readonly Market[],
  hidden: readonly (readonly [string, string])[],
): Html {
  const candidates = candidatesOf(market, outcome?.outcome_id, siblings);
  return compareForm(candidates, chosenOf({ query }, candidates, OTHER_LINES), { hidden, most: OTHER_LINES });
}

const BAND_CLASSES: Readonly<Record<Gap['kind'], string>> = {
  gap: 'band gap',
  unknown: 'band unknown',
  pending: 'band pending',
};

/** The chart, drawn by the server. Its script draws another one in its place. */
export function chart(
  { range, kind, label }: { range: Range; kind: ChartKind; label: string },
  { lines, tradeGaps, firings }: Pick<Chart, 'lines' | 'tradeGaps' | 'firings'>,
): Html {
  const [own] = lines;
  const gaps = kind === 'line' ? (own?.gaps ?? []) : tradeGaps;
  const bands = gaps.map(({ from, to, kind: of }): ChartBand => ({ from, to, classes: BAND_CLASSES[of] }));
  const marks = firings.shown.flatMap(({ time, price, words }) =>
    price === undefined ? [] : [{ x: time, y: Number(price), title: `${words}, ${percent(price)}` }],
  );
  const drawn = lines.map(({ line }) => line.map(({ time, value, ...gap }) => ({ x: time, y: value, ...gap })));
  const hasPoints = lines.some(({ line }) => line.length > 1);
  return html`<p class="legend muted" data-legend aria-hidden="true"></p>
<div class="chart" id="market-chart" data-range="${range}" data-kind="${kind}" role="img"
 aria-label="${label}, ${range}. The texts and tables below have the figures.">${
   hasPoints
     ? html`<div class="fallback plot"><div class="scale" aria-hidden="true"><span>100 %</span><span>50 %</span><span>0 %</span></div>
${lineChart(drawn, `${label}, ${range}`, { bands, marks })}</div>`
     : html`<p class="empty fallback">No price of this range is stored yet. Choose a longer range.</p>`
 }</div>
<div data-part="lines">${lineLegend(lines)}</div>`;
}

/** The notes below a chart: its gaps and its firings in words. */
export function chartNotes({ lines, tradeGaps, firings }: Pick<Chart, 'lines' | 'tradeGaps' | 'firings'>): Html {
  return html`<div class="chart-notes"><div data-part="gaps">${gapsInWords(lines, tradeGaps)}</div>
<div data-part="firings">${firingList(firings)}</div></div>`;
}

export function completeness({ coverage }: Market, { history: stored }: Pick<Chart, 'history'>): Html {
  const { status = '', covered_to: to } = stored ?? {};
  const words = { complete: 'complete', backfilling: 'being loaded', partial: 'partial' }[status];
  const until = to !== undefined && html`, trades read up to ${minute(fromSeconds(to))} UTC`;
  if (coverage === undefined) return words === undefined ? html`` : html`history ${words}${until}`;
  return html`history ${status !== 'complete' && html`${words}: `}${shareText(coverage.share)} of the venue’s volume since ${minute(
    fromSeconds(coverage.since),
  )}${until}`;
}

export function candleTable(candles: readonly Candle[], interval: string): Html {
  if (candles.length === 0) return html``;
  const rows = candles.slice(-SHOWN_CANDLES).reverse();
  const price = priceColumn(rows.flatMap(({ open, high, low, close }) => [open, high, low, close]));
  const amount = amountColumn(rows.map(({ volume }) => volume));
  return html`<details class="more"><summary>The last ${rows.length} candles of ${interval} as a table</summary>${table<Candle>(
    {
      caption: 'Candles, newest first',
      columns: [
        { label: 'From (UTC)', cell: ({ timestamp }) => minute(fromSeconds(timestamp)) },
        { label: 'Open', isNumeric: true, cell: ({ open }) => price(open) },
        { label: 'High', isNumeric: true, cell: ({ high }) => price(high) },
        { label: 'Low', isNumeric: true, cell: ({ low }) => price(low) },
        { label: 'Close', isNumeric: true, cell: ({ close }) => price(close) },
        { label: 'Volume', isNumeric: true, cell: ({ volume }) => amount(volume) },
        { label: 'Trades', isNumeric: true, cell: ({ trades }) => String(trades) },
      ],
      rows,
      empty: 'No candle is stored.',
    },
  )}</details>`;
}

/** The newest alerts on the market. */
const MAX_ALERTS = 100;
/** Alerts that fire again name their firings in an answer of their own each. */
const MAX_REPEATED = 10;
const MAX_SHOWN = 100;

/** A firing of an alert within the range of a chart. */
interface ShownFiring {
  /** Epoch seconds. */
  time: number;
  /** Absent when the alert does not watch a price. */
  price?: Decimal;
  /** The page of the alert. */
  path: string;
  words: string;
}

interface Firings {
  shown: ShownFiring[];
  /** Whether more alerts fired than were read. */
  isCut: boolean;
}

/** The firings of the account's alerts on an outcome since a time, newest first. None without the scope. */
async function readFirings(
  { api, session }: Pick<ConsoleRequest, 'api' | 'session'>,
  { venue, market_id }: Market,
  outcome: string,
  since: number,
): Promise<Firings> {
  if (!session.caller.scopes.includes('alerts')) return { shown: [], isCut: false };
  const query = { venue, market_id, limit: MAX_ALERTS };
  const { data: alerts, meta } = await api<Alert[]>({ operationId: 'listAlerts', query });
  const fired = alerts.filter(({ triggeredAt }) => triggeredAt !== undefined && secondsOf(triggeredAt) >= since);
  const several = fired.filter(({ repeat, scope }) => repeat || scope !== undefined);
  const read = new Set(several.slice(0, MAX_REPEATED));
  const found = await Promise.all(
    fired.map(async (alert) => {
      const { data } = read.has(alert)
        ? await api<Alert>({ operationId: 'getAlert', params: { alert_id: alert.id } })
        : { data: alert };
      return firingsOf(data)
        .filter(({ tokenMint, marketId, at }) => {
          const isHere = tokenMint === undefined ? (marketId ?? market_id) === market_id : tokenMint === outcome;
          return isHere && secondsOf(at) >= since;
        })
        .map(
          ({ at, price }): ShownFiring => ({
            time: secondsOf(at),
            ...(price !== undefined && { price }),
            path: `/alerts/${alert.id}`,
            words: alert.name ?? firesWhen(alert, true),
          }),
        );
    }),
  );
  const shown = found.flat().sort((a, b) => b.time - a.time);
  const isCut = (meta.next_cursor ?? null) !== null || several.length > read.size || shown.length > MAX_SHOWN;
  return { shown: shown.slice(0, MAX_SHOWN), isCut };
}

/** Of an alert that was read alone, else its last firing. */
function firingsOf({
  firings,
  triggeredAt,
  triggeredPrice,
  tokenMint,
}: Alert): Pick<Firing, 'at' | 'price' | 'tokenMint' | 'marketId'>[] {
  if (firings !== undefined) return firings;
  if (triggeredAt === undefined) return [];
  return [
    {
      at: triggeredAt,
      ...(triggeredPrice !== undefined && { price: triggeredPrice }),
      ...(tokenMint !== undefined && { tokenMint }),
    },
  ];
}

const secondsOf = (iso: string) => Math.floor(Date.parse(iso) / 1_000);

/** The firings in words, for people without the picture. */
function firingList({ shown, isCut }: Firings): Html {
  if (shown.length === 0) return html``;
  return html`<details class="more"><summary>${shown.length === 1 ? 'One firing' : `${shown.length} firings`} of your alerts in this range (squares)</summary>${table<ShownFiring>(
    {
      caption: 'Firings in this range, newest first',
      columns: [
        { label: 'Time (UTC)', cell: ({ time }) => minute(fromSeconds(time)) },
        { label: 'Alert', cell: ({ path, words }) => html`<a href="${path}">${words}</a>` },
        { label: 'Price', isNumeric: true, cell: ({ price }) => percent(price) ?? NONE },
      ],
      rows: shown,
      empty: '',
    },
  )}${isCut && html`<p class="muted">There are more firings; the pages of the alerts have them.</p>`}</details>`;
}

/** Names the chart for screen readers. */
export function priceLabel({ market, outcome }: View): string {
  return `Price of ${outcome === undefined ? 'the outcome' : memberOf(market, outcome).label} in percent`;
}
