import type { EnabledVenue } from './venue-catalog.ts';

/** Consecutive failures of a healthy poll: a single bad answer does not make it unhealthy. */
const TOLERATED_FAILURES = 2;
/** A kind of poll is stale after this many of its intervals, but never before a minute. */
const STALE_AFTER_INTERVALS = 5;
const STALE_AT_LEAST_MS = 60_000;

type PollMs = EnabledVenue['pollMs'];

/** Whether a kind of poll has a cadence. Work on demand (backfills) has none. */
export function isScheduledPoll(kind: string, pollMs: PollMs): kind is keyof PollMs {
  return kind in pollMs;
}

/** Whether the poll had nothing to request since its last success. */
export function isIdlePoll({ lastSuccessAt, idleAt }: { lastSuccessAt: Date | null; idleAt: Date | null }): boolean {
  return idleAt !== null && (lastSuccessAt === null || idleAt > lastSuccessAt);
}

type HealthFacts = Parameters<typeof isPollHealthy>[0];

/** Whether each of these kinds of poll is healthy. A kind without a poll was never tried, which is not healthy. */
export function areHealthy(
  kinds: readonly string[],
  polls: readonly HealthFacts[],
  pollMs: PollMs,
  nowMs: number,
): boolean {
  const isHealthy = (kind: string) => polls.some((poll) => poll.kind === kind && isPollHealthy(poll, pollMs, nowMs));
  return kinds.length > 0 && kinds.every(isHealthy);
}

/** Whether a scheduled poll is neither failing nor late at `nowMs` (epoch milliseconds). A poll without anything to request is not late. */
export function isPollHealthy(
  poll: { kind: string; lastSuccessAt: Date | null; idleAt: Date | null; consecutiveFailures: number },
  pollMs: PollMs,
  nowMs: number,
): boolean {
  const { kind, consecutiveFailures } = poll;
  const ranAt = isIdlePoll(poll) ? poll.idleAt : poll.lastSuccessAt;
  if (ranAt === null || consecutiveFailures > TOLERATED_FAILURES) return false;
  const intervalMs = isScheduledPoll(kind, pollMs) ? pollMs[kind] : 0;
  return nowMs - ranAt.getTime() <= Math.max(STALE_AT_LEAST_MS, STALE_AFTER_INTERVALS * intervalMs);
}
