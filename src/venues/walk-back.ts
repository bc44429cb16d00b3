import { VenueError } from './errors.ts';
import type { VenueHttpSettings } from './http/http.ts';
import { createMemoryLedger } from './http/rate-ledger.ts';
import { budgetFailure, createRequestBudget } from './http/request-budget.ts';
import type { HistoryRequest } from './port.ts';

/** One call of a walk back over the trades of a market. */
export interface WalkBackStep<Row, Position> {
  /** Rows of complete instants inside the request's range; rejected ones without a time may be among them. */
  rows: Row[];
  position: Position | null;
  /** Epoch milliseconds: everything from here to the end of the range was read. It falls from page to page. */
  reachedMs: number;
  more: boolean;
  /** The part that the venue does not serve. The walk continues below it where possible. */
  truncated?: string;
}

/** The reach of a walk that has read everything from this moment on: inside the range of its request. */
export function reachedAt({ fromMs, toMs }: HistoryRequest, ms: number): number {
  return Math.min(toMs, Math.max(fromMs, ms));
}

/** The share of a host's rate for walks back through history: live polls have the rest. */
const SHARE = 0.25;
const MAX_WAIT_MS = 20_000;

/**
 * Rations the requests of walks back through history to a share of the rate of the host's client. The returned function waits for a turn,
 * before the host's own budget does. It throws VenueError `rate_limited` when the wait is too long, `budget_unavailable`, and `aborted` when
 * the signal fires.
 */
export function createHistoryTurns(
  venue: string,
  baseUrl: string,
  ratePerSecond: number,
  { requestsPerSecond = ratePerSecond, openLedger = createMemoryLedger }: VenueHttpSettings = {},
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
