import { type Queryable, sqlPlannedPerCall } from '../db/tx.ts';

/** An interval in which observations of some markets may be missing, within the range of a backtest. */
export interface BacktestGap {
  fromMs: number;
  untilMs: number;
  /** The reason of a gap of a feed, or one of the causes below. */
  cause: string;
  venue: string;
  /** The number of its markets in the backtest. */
  markets: number;
}

/** Longer than the pause of any poll. */
const SILENT_POLL = `interval '5 minutes'`;

/**
 * The intervals that are known: gaps of feeds, losses of trades that a total proves, trades that a repair stored too late to be
 * observations, and polls that fail or that no process runs now. Past failures of polls are not stored.
 */
const GAPS = sqlPlannedPerCall(
  'backtest_gaps',
  `WITH m AS MATERIALIZED (SELECT id, venue FROM market WHERE id = ANY ($1::bigint[])),
   gap AS (
     SELECT g.from_at, g.to_at, g.reason AS cause, m.venue, m.id, g.gap::text AS key FROM m JOIN feed_gap g ON g.market_id = m.id
     WHERE g.from_at < $3::timestamptz AND (g.to_at IS NULL OR g.to_at > $2::timestamptz)
     UNION ALL
     SELECT w.missing_since, NULL, 'missing_trades', m.venue, m.id, '' FROM m JOIN trade_witness w ON w.market_id = m.id
     WHERE w.missing_since < $3::timestamptz
     UNION ALL
     SELECT r.from_at, r.to_at, 'late_trades', m.venue, m.id, '' FROM m JOIN trade_repair r ON r.market_id = m.id
     WHERE r.trades > 0 AND r.from_at < $3::timestamptz AND r.to_at > $2::timestamptz
     UNION ALL
     SELECT p.since, NULL, 'polls_of_' || p.kind, m.venue, m.id, '' FROM m JOIN (
       SELECT venue, kind, coalesce(last_success_at, last_attempt_at) AS since FROM poll_state
       WHERE kind IN ('prices', 'trades')
         AND (consecutive_failures > 0 OR last_attempt_at < clock_timestamp() - ${SILENT_POLL})) p ON p.venue = m.venue
     WHERE p.since < $3::timestamptz)
   SELECT (extract(epoch FROM greatest(min(from_at), $2::timestamptz)) * 1000)::float8 AS from_ms,
     (extract(epoch FROM least(CASE WHEN bool_and(to_at IS NOT NULL) THEN max(to_at) END, $3::timestamptz)) * 1000)::float8 AS until_ms,
     cause, venue, count(DISTINCT id)::int AS markets
   FROM gap GROUP BY cause, venue, key, CASE WHEN key = '' THEN from_at END ORDER BY from_ms, until_ms, cause LIMIT $4`,
);

/** The oldest gaps of markets between two moments, epoch milliseconds, without the parts outside. */
export async function readBacktestGaps(
  db: Queryable,
  options: { marketPks: readonly bigint[]; startMs: number; endMs: number; limit: number },
): Promise<BacktestGap[]> {
  const { marketPks, startMs, endMs, limit } = options;
  if (marketPks.length === 0) return [];
  const moments = [new Date(startMs).toISOString(), new Date(endMs).toISOString()];
  const rows = await db.query<BacktestGap>(GAPS, [marketPks, ...moments, limit]);
  return rows.map((row) => ({ ...row, fromMs: Math.floor(row.fromMs), untilMs: Math.ceil(row.untilMs) }));
}
