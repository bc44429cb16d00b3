import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { INTERVAL_SECONDS } from '../../../../src/domain/markets/candle.ts';
import {
  bucketsIn,
  checkedRange,
  DEFAULT_BUCKETS,
  MAX_BUCKETS,
  MAX_EPOCH_SECONDS,
  resolveSeriesRange,
  TimeRangeError,
} from '../../../../src/domain/values/time-range.ts';

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

  it('keeps the requested range, or names the problem', () => {
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

  it('accepts exactly the maximum and rejects one bucket more, naming the maximum', () => {
    const end = 10_000 * 60;
    expect(resolveSeriesRange({ start: end - MAX_BUCKETS * 60, end }, 60, end)).toEqual({
      start: end - MAX_BUCKETS * 60,
      end,
    });
    expect(() => resolveSeriesRange({ start: end - (MAX_BUCKETS + 1) * 60, end }, 60, end)).toThrow(/5000 buckets/);
  });

  it('begins at the epoch at the earliest, and ends after the bucket of now', () => {
    expect(resolveSeriesRange({ end: 600 }, 60, 1_000_000)).toEqual({ start: 0, end: 600 });
    expect(resolveSeriesRange({}, 60, 36_000)).toEqual({ start: 18_060, end: 36_060 });
  });

  it('names the start as the parameter at fault', () => {
    const problem = { code: 'invalid_request', path: 'start' };
    expect(() => checkedRange(7, 7)).toThrow(
      expect.objectContaining({ ...problem, message: 'must be before end (7)' }),
    );
    expect(() => resolveSeriesRange({ start: 0, end: 1e9 }, 60, 0)).toThrow(expect.objectContaining(problem));
    expect(checkedRange(7, 8)).toEqual({ start: 7, end: 8 });
  });

  it('rejects an empty range', () => {
    for (const [start, end] of [
      [5, 5],
      [6, 5],
    ] as const) {
      expect(() => resolveSeriesRange({ start, end }, 60, 1_000)).toThrow(TimeRangeError);
    }
  });
});

describe('bucketsIn', () => {
  it.each([
    [0, 60, 1],
    [0, 61, 2],
    [1, 60, 0],
    [1, 61, 1],
    [59, 121, 2],
    [60, 120, 1],
  ])('counts the aligned starts from %i to before %i: %i', (start, end, buckets) => {
    expect(bucketsIn({ start, end }, 60)).toBe(buckets);
  });
});
