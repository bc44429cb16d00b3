import { type Database, type Queryable, sql } from '../db/tx.ts';
import { blockOf, checkedAt } from './checks.ts';

/** Keeps the hash tables of hundreds of thousands of markets in memory, instead of on disk. */
const MORE_MEMORY = sql('measure_freshness_memory', `SELECT set_config('work_mem', '16MB', true)`);

/**
 * Counts the open markets per second of their price, rounded down, and adds the counts up from the youngest. A sort of all ages would take
 * half as long again.
 *
 * The first outcome stands for its market, because the prices of all outcomes come from one answer or from neighbouring ones: a read of
 * every outcome takes twice the time. The joins are those of `current_price`, in the order that reads open markets only.
 */
const MEASURE = sql(
  'measure_freshness',
  `WITH counted AS (
     SELECT m.venue, date_trunc('second', greatest(l.as_of, ${checkedAt('c', 'o.token_id')})) AS at, l.token_id IS NULL AS is_unpriced,
       count(*) AS markets
     FROM market m
     LEFT JOIN outcome o ON o.market_id = m.id AND o.ordinal = 0
     LEFT JOIN latest_price l ON l.token_id = o.token_id
     LEFT JOIN price_check c ON c.block = ${blockOf('o.token_id')}
     WHERE m.venue = ANY ($1::text[]) AND m.status = 'open' GROUP BY 1, 2, 3),
   ranked AS (
     SELECT *, sum(markets) OVER (younger ROWS UNBOUNDED PRECEDING) / sum(markets) OVER (PARTITION BY venue, is_unpriced) AS share
     FROM counted WINDOW younger AS (PARTITION BY venue, is_unpriced ORDER BY at DESC)),
   measured AS (
     SELECT venue, sum(markets) AS markets, sum(markets) FILTER (WHERE is_unpriced) AS unpriced,
       ${ageMs('max(at) FILTER (WHERE NOT is_unpriced AND share >= 0.5)')} AS p50_ms,
       ${ageMs('max(at) FILTER (WHERE NOT is_unpriced AND share >= 0.99)')} AS p99_ms,
       ${ageMs('min(at) FILTER (WHERE NOT is_unpriced)')} AS max_ms
     FROM ranked GROUP BY venue)
   INSERT INTO venue_freshness AS f (venue, measured_at, markets, unpriced, p50_ms, p99_ms, max_ms)
   SELECT v.venue, now(), coalesce(m.markets, 0), coalesce(m.unpriced, 0), m.p50_ms, m.p99_ms, m.max_ms
   FROM unnest($1::text[]) AS v (venue) LEFT JOIN measured m ON m.venue = v.venue ORDER BY v.venue
   ON CONFLICT (venue) DO UPDATE SET measured_at = excluded.measured_at, markets = excluded.markets,
     unpriced = excluded.unpriced, p50_ms = excluded.p50_ms, p99_ms = excluded.p99_ms, max_ms = excluded.max_ms
   WHERE f.measured_at < excluded.measured_at
   RETURNING venue, measured_at, markets, unpriced, p50_ms, p99_ms, max_ms`,
);

/** `greatest` ignores NULL, and a time of the venue may be ahead of ours. */
function ageMs(at: string): string {
  const ms = `floor(extract(epoch FROM now() - ${at}) * 1000)::bigint`;
  return `CASE WHEN ${at} IS NOT NULL THEN greatest(0, ${ms}) END`;
}

const FRESHNESS = sql(
  'venue_freshness',
  'SELECT venue, measured_at, markets, unpriced, p50_ms, p99_ms, max_ms FROM venue_freshness WHERE venue = ANY ($1::text[]) ORDER BY venue',
);

/** The age of the prices of all open markets of a venue. */
export interface VenueFreshness {
  venue: string;
  measuredAt: Date;
  /** Open markets, with and without a price. */
  markets: number;
  /** Open markets without any price. The percentiles do not count them. */
  unpriced: number;
  /** Ages are up to one second too large, because times are rounded down. Null without a priced market. */
  p50Ms: bigint | null;
  p99Ms: bigint | null;
  maxMs: bigint | null;
}

/** Measures the age of the prices of these venues, and stores it for the other processes. */
export function measureFreshness(db: Database, venues: readonly string[]): Promise<VenueFreshness[]> {
  return db.transaction(async (tx) => {
    await tx.query(MORE_MEMORY);
    return tx.query<VenueFreshness>(MEASURE, [venues]);
  });
}

/** The last measurement of each of these venues that has one. */
export function readFreshness(db: Queryable, venues: readonly string[]): Promise<VenueFreshness[]> {
  return db.query(FRESHNESS, [venues]);
}
