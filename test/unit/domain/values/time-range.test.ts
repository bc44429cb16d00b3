import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { INTERVAL_SECONDS } from '../../../../src/domain/markets/candle.ts';
import {
  checkedRange,
  DEFAULT_BUCKETS,
  MAX_BUCKETS,
  MAX_EPOCH_SECONDS,
  resolveSeriesRange,
  type TimeRange,
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
    for (const more of [
      { start: end - (MAX_BUCKETS + 1) * 60, end },
      { start: end - MAX_BUCKETS * 60, end: end + 1 },
    ])
      expect(() => resolveSeriesRange(more, 60, end)).toThrow(/5000 buckets/);
    for (const fewer of [
      { start: end - (MAX_BUCKETS + 1) * 60 + 1, end },
      { start: end - (MAX_BUCKETS + 1) * 60 + 1, end: end - 59 },
    ])
      expect(resolveSeriesRange(fewer, 60, end)).toEqual(fewer);
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

/** Aligned bucket starts in `[start, end)`, one by one. */
function bucketsIn({ start, end }: TimeRange, seconds: number): number {
  let count = 0;
  for (let at = Math.ceil(start / seconds) * seconds; at < end; at += seconds) count += 1;
  return count;
}
