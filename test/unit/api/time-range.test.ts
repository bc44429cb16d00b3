import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { INTERVAL_SECONDS } from '../../../src/domain/candle.ts';
import {
  bucketsIn,
  DEFAULT_BUCKETS,
  MAX_BUCKETS,
  MAX_EPOCH_SECONDS,
  resolveSeriesRange,
  TimeRangeError,
} from '../../../src/domain/time-range.ts';

const interval = fc.constantFrom(...Object.values(INTERVAL_SECONDS));
const now = fc.integer({ min: 1_600_000_000, max: 2_000_000_000 });
const moment = fc.integer({ min: 0, max: MAX_EPOCH_SECONDS });

describe('resolveSeriesRange', () => {
  it('defaults to the last 300 buckets, the open one included', () => {
    fc.assert(
      fc.property(interval, now, (seconds, nowSeconds) => {
        const range = resolveSeriesRange({}, seconds, nowSeconds);
        expect(bucketsIn(range, seconds)).toBe(DEFAULT_BUCKETS);
        expect(range.end - seconds).toBeLessThanOrEqual(nowSeconds);
        expect(range.end).toBeGreaterThan(nowSeconds);
      }),
    );
  });

  it('keeps what was asked, or says what is wrong', () => {
    fc.assert(
      fc.property(interval, now, fc.option(moment), fc.option(moment), (seconds, nowSeconds, start, end) => {
        const asked = { ...(start !== null && { start }), ...(end !== null && { end }) };
        try {
          const range = resolveSeriesRange(asked, seconds, nowSeconds);
          expect(range).toMatchObject(asked);
          expect(range.start).toBeLessThan(range.end);
          expect(range.start).toBeGreaterThanOrEqual(0);
          expect(bucketsIn(range, seconds)).toBeLessThanOrEqual(MAX_BUCKETS);
        } catch (error) {
          expect(error).toBeInstanceOf(TimeRangeError);
        }
      }),
    );
  });

  it('takes exactly the cap and refuses one bucket more, naming the cap', () => {
    const end = 10_000 * 60;
    expect(resolveSeriesRange({ start: end - MAX_BUCKETS * 60, end }, 60, end)).toEqual({
      start: end - MAX_BUCKETS * 60,
      end,
    });
    expect(() => resolveSeriesRange({ start: end - (MAX_BUCKETS + 1) * 60, end }, 60, end)).toThrow(/5000 buckets/);
  });

  it('refuses an empty range', () => {
    for (const [start, end] of [
      [5, 5],
      [6, 5],
    ] as const) {
      expect(() => resolveSeriesRange({ start, end }, 60, 1_000)).toThrow(TimeRangeError);
    }
  });
});
