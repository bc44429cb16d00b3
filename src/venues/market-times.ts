import type { UnknownValue } from './parsed-batch.ts';
import { MAX_AHEAD_MS } from './venue-time.ts';

interface PastTimes {
  createdAtMs: number | undefined;
  resolvedAtMs: number | undefined;
}

/**
 * The creation and the resolution of a market, without impossible times: in the future, or a resolution before the creation. Such a time is
 * reported as an unknown value and dropped; its market stays. Openings and closes are plans. Venues do send closes before the opening or
 * the creation, so these times stay as they are.
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
