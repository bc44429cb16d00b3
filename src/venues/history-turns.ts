import { VenueError } from './errors.ts';
import { BudgetExceededError, createRequestBudget } from './request-budget.ts';

/** The share of a host's rate for walks back through history: live polls have the rest. */
const SHARE = 0.25;
const MAX_WAIT_MS = 20_000;

/**
 * Rations the requests of walks back through history. The returned function waits for a turn, before the host's own budget does. It throws
 * VenueError `rate_limited` when the wait is too long, and `aborted` when the signal fires.
 */
export function createHistoryTurns(
  venue: string,
  hostRequestsPerSecond: number,
): (signal: AbortSignal) => Promise<void> {
  const budget = createRequestBudget({ perSecond: hostRequestsPerSecond * SHARE, burst: 1 });
  return async (signal) => {
    try {
      await budget.acquire(signal, MAX_WAIT_MS);
    } catch (cause) {
      if (cause instanceof BudgetExceededError) {
        const retryAfterMs = Math.ceil(cause.waitMs);
        throw new VenueError(venue, 'rate_limited', cause.message, { retryable: true, retryAfterMs, cause });
      }
      throw new VenueError(venue, 'aborted', 'the call was aborted', { retryable: true, cause });
    }
  };
}
