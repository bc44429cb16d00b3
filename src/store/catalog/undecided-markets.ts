import { type Queryable, sql } from '../db/tx.ts';

/** SQL of whether market `m` waits for its result. A partial index has this condition, word by word. */
export const IS_UNDECIDED = `m.gone_at IS NULL
     AND (m.status = 'closed' OR m.resolution_state IN ('proposed', 'disputed') OR m.status = 'resolved' AND m.venue = 'kalshi')`;

/** The first and the longest interval between two questions. It doubles until the market changes. */
const FIRST = `interval '1 minute'`;
const LONGEST = `interval '6 hours'`;

/**
 * OFFSET 0 keeps the order of the index: a venue has few undecided markets. `missing_since` makes the next poll of the catalog ask for a
 * market by its id.
 */
const ASK = sql(
  'ask_for_results',
  `UPDATE market_stats s SET missing_since = clock_timestamp(), result_asked_at = clock_timestamp(), result_asks = d.asks + 1
   FROM (
     SELECT s.market_id, a.asks FROM (SELECT m.id, m.updated_at FROM market m WHERE m.venue = $1 AND ${IS_UNDECIDED} OFFSET 0) m
     JOIN market_stats s ON s.market_id = m.id
     CROSS JOIN LATERAL (SELECT CASE WHEN s.result_asked_at > m.updated_at THEN s.result_asks ELSE 0 END AS asks) a
     WHERE s.missing_since IS NULL
       AND greatest(m.updated_at, s.result_asked_at) + least(${FIRST} * power(2, least(a.asks, 20)), ${LONGEST}) <= clock_timestamp()
     ORDER BY greatest(m.updated_at, s.result_asked_at) LIMIT $2 FOR NO KEY UPDATE OF s SKIP LOCKED) d
   WHERE s.market_id = d.market_id RETURNING s.market_id`,
);

/** Makes the next poll of the catalog ask for undecided markets of a venue that are due, at most `limit`; returns their number. */
export async function askForResults(db: Queryable, venue: string, limit: number): Promise<number> {
  return (await db.query(ASK, [venue, limit])).length;
}

const COUNT = sql(
  'count_undecided_markets',
  `SELECT v.venue, u.markets, u.since FROM unnest($1::text[]) AS v (venue)
   CROSS JOIN LATERAL (
     SELECT count(*)::int AS markets, min(least(m.close_at, m.updated_at)) AS since FROM market m WHERE m.venue = v.venue AND ${IS_UNDECIDED}) u
   ORDER BY array_position($1::text[], v.venue)`,
);

export interface UndecidedMarkets {
  venue: string;
  markets: number;
  /** The earliest close among them, or its last change when that is earlier; null without one. */
  since: Date | null;
}

/** The markets of each venue that wait for their result. */
export function countUndecided(db: Queryable, venues: readonly string[]): Promise<UndecidedMarkets[]> {
  return db.query(COUNT, [venues]);
}
