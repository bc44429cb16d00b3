import { VenueError } from './errors.ts';
import { createMemoryLedger, type OpenLedger } from './http/rate-ledger.ts';
import { budgetFailure, createRequestBudget } from './http/request-budget.ts';

/** The share of a host's rate for walks back through history: live polls have the rest. */
const SHARE = 0.25;
const MAX_WAIT_MS = 20_000;

/**
 * Rations the requests of walks back through history. The returned function waits for a turn, before the host's own budget does. It throws
 * VenueError `rate_limited` when the wait is too long, `budget_unavailable`, and `aborted` when the signal fires.
 */
export function createHistoryTurns(
  venue: string,
  {
    baseUrl,
    requestsPerSecond,
    openLedger = createMemoryLedger,
  }: {
    baseUrl: string;
    /** The rate of the host's client. */
    requestsPerSecond: number;
    openLedger?: OpenLedger | undefined;
  },
): (signal: AbortSignal) => Promise<void> {
  const { host } = new URL(baseUrl);
  const perSecond = requestsPerSecond * SHARE;
  const budget = createRequestBudget(
    openLedger({ venue, host, key: `${host}#${venue}-history`, perSecond, burst: 1, isShare: true }),
    perSecond,
  );
  return async (signal) => {
    try {
      await budget.acquire(signal, MAX_WAIT_MS);
    } catch (thrown) {
      const aborted = () =>
        new VenueError(venue, 'aborted', 'the call was aborted', { retryable: true, cause: thrown });
      throw budgetFailure(venue, thrown) ?? aborted();
    }
  };
}
