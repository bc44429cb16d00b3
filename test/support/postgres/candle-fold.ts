import { addDecimals, compareDecimals, type Decimal, multiplyDecimals } from '../../../src/domain/values/decimal.ts';
import { compareTrades, type OrderedTrade } from '../laws/trade-order.ts';

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

export interface CandleTrade extends OrderedTrade {
  size: Decimal;
}

/** The start of the bucket that contains a time: epoch seconds, UTC-aligned. */
export function bucketStart(tsMs: number, intervalSeconds: number): number {
  return Math.floor(tsMs / 1000 / intervalSeconds) * intervalSeconds;
}

/**
 * A second implementation of candles: those of one outcome are a pure function of its trades in the order of
 * `compareTrades`. The aggregator does the same in SQL, and tests compare the two.
 */
export function foldTrades(trades: readonly CandleTrade[], intervalSeconds: number): Candle[] {
  const byBucket = new Map<number, Candle>();
  for (const { tsMs, price, size } of [...trades].sort(compareTrades)) {
    const start = bucketStart(tsMs, intervalSeconds);
    const notional = multiplyDecimals(price, size);
    const candle = byBucket.get(start);
    if (!candle) {
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
    if (compareDecimals(price, candle.high) > 0) candle.high = price;
    if (compareDecimals(price, candle.low) < 0) candle.low = price;
    candle.close = price;
    candle.volume = addDecimals(candle.volume, size);
    candle.notional = addDecimals(candle.notional, notional);
    candle.trades += 1;
  }
  return [...byBucket.values()].sort((a, b) => a.start - b.start);
}
