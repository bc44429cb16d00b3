import { addDecimals, compareDecimals, type Decimal, multiplyDecimals, ZERO } from './decimal.ts';

/** The intervals a candle or a volume window can have, in seconds (DESIGN section 4, "Time ranges"). */
export const INTERVAL_SECONDS = { '1m': 60, '5m': 300, '15m': 900, '1h': 3600, '4h': 14_400, '1d': 86_400 } as const;
export type Interval = keyof typeof INTERVAL_SECONDS;
export const INTERVALS = Object.keys(INTERVAL_SECONDS) as Interval[];

/** OHLCV of one outcome over `[start, start + interval)`. `start` is epoch seconds; volume in units, notional = sum of price x size. */
export interface Candle {
  start: number;
  open: Decimal;
  high: Decimal;
  low: Decimal;
  close: Decimal;
  volume: Decimal;
  notional: Decimal;
  trades: number;
}

export interface CandleTrade {
  tsMs: number;
  tradeId: string;
  price: Decimal;
  size: Decimal;
}

/** The start of the bucket that holds a moment: epoch seconds, UTC-aligned. */
export function bucketStart(tsMs: number, intervalSeconds: number): number {
  return Math.floor(tsMs / 1000 / intervalSeconds) * intervalSeconds;
}

/** `tradeId` is compared by code unit, as Postgres does under COLLATE "C" for ASCII ids. */
function inTapeOrder(a: CandleTrade, b: CandleTrade): number {
  if (a.tsMs !== b.tsMs) return a.tsMs - b.tsMs;
  return a.tradeId < b.tradeId ? -1 : a.tradeId > b.tradeId ? 1 : 0;
}

/**
 * The reference rule (DESIGN section 6): candles of one outcome are a pure function of its trades in the order
 * `(ts, trade_id)`. The aggregator does the same in SQL; tests and the audit compare the two.
 */
export function foldTrades(trades: readonly CandleTrade[], intervalSeconds: number): Candle[] {
  const byBucket = new Map<number, Candle>();
  for (const trade of [...trades].sort(inTapeOrder)) {
    const start = bucketStart(trade.tsMs, intervalSeconds);
    const notional = multiplyDecimals(trade.price, trade.size);
    const candle = byBucket.get(start);
    if (!candle) {
      const { price, size } = trade;
      byBucket.set(start, {
        start,
        open: price,
        high: price,
        low: price,
        close: price,
        volume: size,
        notional,
        trades: 1,
      });
      continue;
    }
    if (compareDecimals(trade.price, candle.high) > 0) candle.high = trade.price;
    if (compareDecimals(trade.price, candle.low) < 0) candle.low = trade.price;
    candle.close = trade.price;
    candle.volume = addDecimals(candle.volume, trade.size);
    candle.notional = addDecimals(candle.notional, notional);
    candle.trades += 1;
  }
  return [...byBucket.values()].sort((a, b) => a.start - b.start);
}

/** An empty bucket carried forward from the previous close: for `fill=previous`. */
export function carriedCandle(start: number, close: Decimal): Candle {
  return { start, open: close, high: close, low: close, close, volume: ZERO, notional: ZERO, trades: 0 };
}
