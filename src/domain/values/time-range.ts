import { OddswireError } from './errors.ts';

/** Buckets of one answer: the default without a range, and the maximum. */
export const DEFAULT_BUCKETS = 300;
export const MAX_BUCKETS = 5_000;
/** The last second of the year 9999: for later times, Postgres and JavaScript print timestamps differently. */
export const MAX_EPOCH_SECONDS = 253_402_300_799;

/** `[start, end)` in epoch seconds. */
export interface TimeRange {
  start: number;
  end: number;
}

/** A range that cannot be served; `path` is the query parameter at fault. */
export class TimeRangeError extends OddswireError {
  readonly path: 'start' | 'end';

  constructor(path: 'start' | 'end', message: string) {
    super('invalid_request', message);
    this.path = path;
  }
}

/** Aligned bucket starts in `[start, end)`. */
function bucketsIn(range: TimeRange, intervalSeconds: number): number {
  return Math.ceil(range.end / intervalSeconds) - Math.ceil(range.start / intervalSeconds);
}

/**
 * The range of a bucketed series. `end` defaults to the end of the bucket that contains `nowSeconds`, `start` to
 * DEFAULT_BUCKETS before `end`. @throws TimeRangeError when the range is empty or has more than MAX_BUCKETS
 */
export function resolveSeriesRange(asked: Partial<TimeRange>, intervalSeconds: number, nowSeconds: number): TimeRange {
  const end = asked.end ?? (Math.floor(nowSeconds / intervalSeconds) + 1) * intervalSeconds;
  const start = asked.start ?? Math.max(0, end - DEFAULT_BUCKETS * intervalSeconds);
  const range = checkedRange(start, end);
  if (bucketsIn(range, intervalSeconds) > MAX_BUCKETS) {
    throw new TimeRangeError('start', `the range has more than ${MAX_BUCKETS} buckets, the maximum of one call`);
  }
  return range;
}

/** @throws TimeRangeError unless start < end */
export function checkedRange(start: number, end: number): TimeRange {
  if (start >= end) throw new TimeRangeError('start', `must be before end (${end})`);
  return { start, end };
}
