import type { UnknownValue } from './parsed-batch.ts';

/** Clocks differ by so much at most. */
const MAX_AHEAD_MS = 300_000;

interface PastTimes {
  createdAtMs: number | undefined;
  resolvedAtMs: number | undefined;
}

/**
 * The times of what has happened, without those that cannot be: in the future, or resolved before it was created. Such a time
 * is told among the unknowns and left out, not its market. Openings and closes are plans, and venues do send closes that lie
 * before the opening or the creation: they stay as they are.
 */
export function pastTimes(times: PastTimes, nowMs: number, unknowns: UnknownValue[]): PastTimes {
  const past = (field: keyof PastTimes, fromMs: number): number | undefined => {
    const ms = times[field];
    if (ms === undefined || (ms >= fromMs && ms <= nowMs + MAX_AHEAD_MS)) return ms;
    unknowns.push({ field, value: new Date(ms).toISOString() });
    return undefined;
  };
  const createdAtMs = past('createdAtMs', Number.NEGATIVE_INFINITY);
  return { createdAtMs, resolvedAtMs: past('resolvedAtMs', createdAtMs ?? Number.NEGATIVE_INFINITY) };
}
