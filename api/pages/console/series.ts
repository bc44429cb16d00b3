import { INTERVAL_SECONDS, type Interval } from '../../../src/domain/markets/candle.ts';
import type { FeedGapBody } from '../../contract/feed.ts';
import type { Candle, Decimal, Market, Snapshot } from './answers.ts';
import type { ApiCall } from './api-calls.ts';
import type { ConsoleRequest } from './route.ts';

/** The ranges of a chart. */
export const RANGES = ['1h', '6h', '1d', '1w', '1m', 'all'] as const;
export type Range = (typeof RANGES)[number];
export const CHART_KINDS = ['line', 'candle'] as const;
export type ChartKind = (typeof CHART_KINDS)[number];

const DAY_SECONDS = 86_400;
/** A candle needs more room than a point of a line: a phone has some hundred pixels for all of them. */
const FIXED: Readonly<Record<Exclude<Range, 'all'>, Record<ChartKind, Interval> & { seconds: number }>> = {
  '1h': { line: '1m', candle: '1m', seconds: 3_600 },
  '6h': { line: '1m', candle: '5m', seconds: 6 * 3_600 },
  '1d': { line: '5m', candle: '15m', seconds: DAY_SECONDS },
  '1w': { line: '1h', candle: '4h', seconds: 7 * DAY_SECONDS },
  '1m': { line: '4h', candle: '1d', seconds: 30 * DAY_SECONDS },
};
/** A market without a known start. */
const UNKNOWN_AGE_DAYS = 90;
/** Up to this age a candle is four hours, and beyond it a day. */
const DAILY_CANDLES_BEYOND_DAYS = 20;
/** The same of the points of a line. */
const DAILY_POINTS_BEYOND_DAYS = 120;
const MAX_DAYS = 4_000;

export interface ChartWindow {
  interval: Interval;
  /** Epoch seconds, both at a boundary of the interval. */
  start: number;
  end: number;
}

/** The window of a range, which ends with the present bucket. */
export function windowOf(
  range: Range,
  market: Pick<Market, 'open_at' | 'created_at'>,
  nowMs: number,
  kind: ChartKind = 'line',
): ChartWindow {
  const now = Math.floor(nowMs / 1_000);
  if (range !== 'all') return aligned(FIXED[range][kind], now - FIXED[range].seconds, now);
  const begun = market.open_at ?? market.created_at ?? now - UNKNOWN_AGE_DAYS * DAY_SECONDS;
  const days = Math.min(MAX_DAYS, Math.max(1, (now - begun) / DAY_SECONDS));
  const mostDays = kind === 'line' ? DAILY_POINTS_BEYOND_DAYS : DAILY_CANDLES_BEYOND_DAYS;
  return aligned(days > mostDays ? '1d' : '4h', now - days * DAY_SECONDS, now);
}

function aligned(interval: Interval, start: number, end: number): ChartWindow {
  const seconds = INTERVAL_SECONDS[interval];
  return { interval, start: Math.floor(start / seconds) * seconds, end: (Math.floor(end / seconds) + 1) * seconds };
}

/** The call that reads the candles of a window. */
export function candleCall(market: Pick<Market, 'venue' | 'market_id'>, outcome: string, window: ChartWindow): ApiCall {
  return seriesCall('listCandles', market, outcome, window);
}

function seriesCall(
  operationId: string,
  { venue, market_id }: Pick<Market, 'venue' | 'market_id'>,
  outcome: string,
  { interval, start, end }: ChartWindow,
): ApiCall {
  return { operationId, params: { venue, market_id }, query: { outcome_id: outcome, interval, start, end } };
}

export interface Point {
  /** Epoch seconds. */
  time: number;
  value: number;
}

/** The part of `meta.history` that the page shows. Times are epoch seconds. */
interface StoredHistory {
  status?: string;
  covered_to?: number;
}

export interface Series {
  interval: Interval;
  line: Point[];
  candles: Candle[];
  /** The line has quoted prices from this time on, and closes of candles before it. Epoch seconds. */
  firstQuote: number;
  /** Gaps of the feed within the window. */
  feedGaps: readonly FeedGapBody[];
  /** Of which time trades are stored. */
  history: StoredHistory | undefined;
}

/**
 * The line and the candles of a window. The line has the closes of candles until the first quoted price, then the quoted prices, and
 * ends with the present price.
 */
export async function readSeries(
  { api, nowMs }: Pick<ConsoleRequest, 'api' | 'nowMs'>,
  market: Pick<Market, 'venue' | 'market_id'>,
  outcome: string,
  window: ChartWindow,
  present: Decimal | undefined,
): Promise<Series> {
  const [candles, snapshots] = await Promise.all([
    api<Candle[]>(candleCall(market, outcome, window)),
    api<Snapshot[]>(seriesCall('listSnapshots', market, outcome, window)),
  ]);
  const quoted = snapshots.data.map(({ timestamp, price }) => ({ time: timestamp, value: Number(price) }));
  const closes = candles.data.map(({ timestamp, close }) => ({ time: timestamp, value: Number(close) }));
  const now = Math.floor(nowMs / 1_000);
  const firstQuote = quoted[0]?.time ?? now;
  const line = [...closes.filter(({ time }) => time < firstQuote), ...quoted].filter(({ time }) => time < now);
  if (present !== undefined) line.push({ time: now, value: Number(present) });
  return {
    interval: window.interval,
    line,
    candles: candles.data,
    firstQuote,
    feedGaps: (snapshots.meta['feed_gaps'] as FeedGapBody[] | undefined) ?? [],
    history: candles.meta['history'] as StoredHistory | undefined,
  };
}
