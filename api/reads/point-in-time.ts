import type { Freshness } from './answer-cache.ts';

/**
 * Records get their timestamp before their transaction commits, so a recent moment may still gain records. Answers for such a moment
 * must not be cached like history.
 */
const SETTLED_AFTER_MS = 10_000;

/** How long an answer for a moment (epoch seconds, absent for now) may be cached. */
export function freshnessAt(asOf: number | undefined, nowMs: number): Freshness {
  return asOf !== undefined && asOf * 1000 <= nowMs - SETTLED_AFTER_MS ? 'history' : 'latest';
}
