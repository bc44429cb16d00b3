import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { INTERVAL_SECONDS, INTERVALS } from '../../../src/domain/markets/candle.ts';
import { addDecimals, compareDecimals, decimal, ZERO } from '../../../src/domain/values/decimal.ts';
import { bucketStart, type Candle, type CandleTrade, foldTrades } from '../../support/postgres/candle-fold.ts';

const START_MS = Date.UTC(2026, 0, 31, 23, 30);

const tape = fc
  .array(
    fc.record({
      tsMs: fc.integer({ min: 0, max: 3 * 86_400_000 }).map((offset) => START_MS + offset - (offset % 250)),
      price: fc.integer({ min: 0, max: 1000 }).map((mills) => decimal(mills / 1000)),
      size: fc.integer({ min: 1, max: 1_000_000 }).map((cents) => decimal(cents / 100)),
    }),
    { maxLength: 60 },
  )
  .map((trades) => trades.map((trade, index): CandleTrade => ({ ...trade, tradeId: `t${index}` })));
const interval = fc.constantFrom(...INTERVALS).map((name) => INTERVAL_SECONDS[name]);

function sum(candles: readonly Candle[], field: 'volume' | 'notional') {
  return candles.reduce((total, candle) => addDecimals(total, candle[field]), ZERO);
}

describe('foldTrades', () => {
  it('gives the same candles for every order of trades', () => {
    const shuffled = tape.chain((trades) =>
      fc.tuple(fc.constant(trades), fc.shuffledSubarray(trades, { minLength: trades.length })),
    );
    fc.assert(
      fc.property(shuffled, interval, ([trades, other], seconds) => {
        expect(foldTrades(other, seconds)).toEqual(foldTrades(trades, seconds));
      }),
    );
  });

  it('gives ordered, aligned buckets that contain every trade once', () => {
    fc.assert(
      fc.property(tape, interval, (trades, seconds) => {
        const candles = foldTrades(trades, seconds);
        const starts = candles.map((candle) => candle.start);
        expect(starts).toEqual([...new Set(starts)].sort((a, b) => a - b));
        expect(starts.every((start) => start % seconds === 0)).toBe(true);
        expect(candles.reduce((total, candle) => total + candle.trades, 0)).toBe(trades.length);
        for (const { tsMs } of trades) {
          const start = bucketStart(tsMs, seconds);
          expect(start * 1000 <= tsMs && tsMs < (start + seconds) * 1000).toBe(true);
          expect(starts).toContain(start);
        }
      }),
    );
  });

  it('keeps low <= open, close <= high, and volume is conserved', () => {
    fc.assert(
      fc.property(tape, interval, (trades, seconds) => {
        const candles = foldTrades(trades, seconds);
        for (const { open, high, low, close } of candles) {
          for (const price of [open, close]) {
            expect(compareDecimals(low, price)).not.toBe(1);
            expect(compareDecimals(price, high)).not.toBe(1);
          }
        }
        const volume = trades.reduce((total, trade) => addDecimals(total, trade.size), ZERO);
        expect(sum(candles, 'volume')).toBe(volume);
        expect(sum(candles, 'notional')).toBe(sum(foldTrades(trades, 60), 'notional'));
      }),
    );
  });

  it('folds finer candles to the coarser interval', () => {
    fc.assert(
      fc.property(tape, fc.constantFrom(300, 900, 3600, 14_400, 86_400), (trades, seconds) => {
        const minutes = foldTrades(trades, 60);
        for (const candle of foldTrades(trades, seconds)) {
          const parts = minutes.filter(({ start }) => start >= candle.start && start < candle.start + seconds);
          expect(candle).toEqual({
            start: candle.start,
            open: parts[0]?.open,
            close: parts.at(-1)?.close,
            high: parts
              .map(({ high }) => high)
              .sort(compareDecimals)
              .at(-1),
            low: parts.map(({ low }) => low).sort(compareDecimals)[0],
            volume: sum(parts, 'volume'),
            notional: sum(parts, 'notional'),
            trades: parts.reduce((total, part) => total + part.trades, 0),
          });
        }
      }),
    );
  });

  it('breaks ties of time by trade id, compared by code unit', () => {
    const at = (tradeId: string, price: string) => ({
      tsMs: START_MS,
      tradeId,
      price: decimal(price),
      size: decimal('1'),
    });
    const [candle] = foldTrades([at('b', '0.2'), at('a', '0.3'), at('B', '0.4'), at('9', '0.5')], 60);
    expect(candle).toMatchObject({ open: '0.5', close: '0.2', high: '0.5', low: '0.2', trades: 4, volume: '4' });
  });

  it('puts a trade at a boundary into the next bucket', () => {
    expect(bucketStart(59_999, 60)).toBe(0);
    expect(bucketStart(60_000, 60)).toBe(60);
    expect(bucketStart(-1, 60)).toBe(-60);
  });

  it('does not change its input', () => {
    const trades = Object.freeze(
      [2, 1].map((n) => ({ tsMs: START_MS + n, tradeId: `t${n}`, price: decimal('0.5'), size: decimal('1') })),
    );
    expect(() => foldTrades(trades, 60)).not.toThrow();
  });

  it('returns no candles without trades', () => expect(foldTrades([], 60)).toEqual([]));
});
