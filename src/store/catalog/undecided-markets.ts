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

/** Ages of a row of a timeline at which the venue is asked again for its market. A correction has ages of its own. */
const AGES = ['1 hour', '1 day', '7 days', '30 days'] as const;

/**
 * The rows with a result behind the point of each age, each age with its share. A row that has reached the next age is asked for at that one
 * only, so a pause or old results do not delay new ones. A row is much older than the transaction that wrote it, so none
 * appears before a point. A market with a later row is due by that row. An announced or undecided market is missing already.
 */
const ASK_AGAIN = sql(
  'ask_again_for_results',
  `WITH due AS MATERIALIZED (
     SELECT a.age, r.received_at, r.market_id, r.n FROM unnest($2::interval[], $4::interval[]) AS a (age, next)
     LEFT JOIN result_recheck p ON p.venue = $1 AND p.age = a.age
     CROSS JOIN LATERAL (
       SELECT r.received_at, r.market_id, r.n FROM market_resolution r
       WHERE r.venue = $1 AND r.state IN ('resolved', 'settled', 'voided') AND r.received_at <= clock_timestamp() - a.age
         AND (a.next IS NULL OR r.received_at > clock_timestamp() - a.next)
         AND (r.received_at, r.market_id, r.n) > (coalesce(p.received_at, '-infinity'), coalesce(p.market_id, 0), coalesce(p.n, 0))
       ORDER BY r.received_at, r.market_id, r.n LIMIT $3) r),
   moved AS (
     INSERT INTO result_recheck AS p (venue, age, received_at, market_id, n)
     SELECT DISTINCT ON (age) $1, age, received_at, market_id, n FROM due ORDER BY age, received_at DESC, market_id DESC, n DESC
     ON CONFLICT (venue, age) DO UPDATE SET received_at = excluded.received_at, market_id = excluded.market_id, n = excluded.n
     WHERE (p.received_at, p.market_id, p.n) < (excluded.received_at, excluded.market_id, excluded.n))
   UPDATE market_stats s SET missing_since = clock_timestamp()
   FROM (
     SELECT s.market_id FROM market_stats s WHERE s.missing_since IS NULL AND s.market_id IN (
       SELECT d.market_id FROM due d
       WHERE NOT EXISTS (SELECT FROM market_resolution l WHERE l.market_id = d.market_id AND l.n > d.n))
     ORDER BY s.market_id FOR NO KEY UPDATE OF s) d
   WHERE s.market_id = d.market_id RETURNING s.market_id`,
);

/**
 * Makes the next poll of the catalog ask for markets of a venue whose result has reached one of the ages, because a venue may correct a
 * final result that no listing has any more. It takes about `limit` results and continues with the next ones; returns the number of markets.
 */
export async function askAgainForResults(db: Queryable, venue: string, limit: number): Promise<number> {
  const share = Math.ceil(limit / AGES.length);
  return (await db.query(ASK_AGAIN, [venue, AGES, share, [...AGES.slice(1), null]])).length;
}

const ASK_AFTER_FORMER = sql(
  'ask_after_former',
  `UPDATE market_stats s SET missing_since = clock_timestamp()
   FROM (
     SELECT s.market_id FROM former_result f JOIN market m ON m.id = f.market_id JOIN market_stats s ON s.market_id = f.market_id
     WHERE f.venue = $1 AND m.gone_at IS NULL AND s.missing_since IS NULL ORDER BY f.market_id LIMIT $2 FOR NO KEY UPDATE OF s SKIP LOCKED) d
   WHERE s.market_id = d.market_id RETURNING s.market_id`,
);

/**
 * Makes the next poll of the catalog ask for markets of a venue whose result a process of the former release wrote, until this release
 * writes it: the poll of such a process asks in vain. At most `limit`; returns their number.
 */
export async function askAfterFormer(db: Queryable, venue: string, limit: number): Promise<number> {
  return (await db.query(ASK_AFTER_FORMER, [venue, limit])).length;
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
