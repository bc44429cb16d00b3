import { type Queryable, sql } from '../db/tx.ts';

const POLLS = sql(
  'ops_venue_polls',
  `SELECT venue, kind, last_attempt_at, last_success_at, idle_at, first_success_at, consecutive_failures, last_error,
     failing_since, first_error,
     coalesce(lease_until > clock_timestamp(), false) AS is_in_flight
   FROM poll_state WHERE venue = ANY ($1::text[]) ORDER BY venue, kind`,
);

/** The stored state of the polls of one kind of one venue. */
export interface OpsPoll {
  venue: string;
  kind: string;
  lastAttemptAt: Date | null;
  lastSuccessAt: Date | null;
  /** When the poll last had nothing to request. */
  idleAt: Date | null;
  firstSuccessAt: Date | null;
  consecutiveFailures: number;
  /** The error of the latest poll; null after a success. */
  lastError: string | null;
  /** When the first of the failures in a row ended; null without failures, and unknown when they began before migration 0062. */
  failingSince: Date | null;
  /** The error of that failure. */
  firstError: string | null;
  /** Whether a poller holds it now. */
  isInFlight: boolean;
}

/** The polls of these venues, those on demand too, by venue and kind. */
export function readPolls(db: Queryable, venues: readonly string[]): Promise<OpsPoll[]> {
  return db.query(POLLS, [venues]);
}

/** An index-only scan of the whole catalog, some 10 ms per 100,000 markets: call it rarely. */
const MARKET_COUNTS = sql(
  'ops_market_counts',
  `SELECT venue, status, count(*)::int AS markets FROM market WHERE venue = ANY ($1::text[]) GROUP BY venue, status`,
);

export interface MarketCount {
  venue: string;
  status: string;
  markets: number;
}

/** How many markets of these venues are in each state. */
export function countMarketsByStatus(db: Queryable, venues: readonly string[]): Promise<MarketCount[]> {
  return db.query(MARKET_COUNTS, [venues]);
}
