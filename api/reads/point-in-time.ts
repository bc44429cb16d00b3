import type { Freshness } from './latest-cache.ts';

/**
 * A record is stamped before its transaction commits: a moment that passed less than this ago may still gain one, so an
 * answer for it must not be kept like history.
 */
const SETTLED_AFTER_MS = 10_000;

/** How long an answer for a moment (epoch seconds, absent for now) may be kept. */
export function freshnessAt(asOf: number | undefined, nowMs: number): Freshness {
  return asOf !== undefined && asOf * 1000 <= nowMs - SETTLED_AFTER_MS ? 'history' : 'latest';
}
