import { type Queryable, sql } from '../db/tx.ts';

const OPEN = sql(
  'count_open_feed_gaps',
  `SELECT venue, count(DISTINCT gap)::int AS gaps FROM feed_gap WHERE to_at IS NULL GROUP BY venue`,
);

/** The number of gaps of each venue that still last. */
export async function countOpenGaps(db: Queryable): Promise<Map<string, number>> {
  const rows = await db.query<{ venue: string; gaps: number }>(OPEN);
  return new Map(rows.map(({ venue, gaps }) => [venue, gaps]));
}

const OLDEST = sql(
  'oldest_open_feed_gaps',
  `SELECT venue, min(from_at) AS since FROM feed_gap WHERE to_at IS NULL GROUP BY venue`,
);

/** The begin of the oldest gap of each venue that still lasts. */
export async function oldestOpenGaps(db: Queryable): Promise<Map<string, Date>> {
  const rows = await db.query<{ venue: string; since: Date }>(OLDEST);
  return new Map(rows.map(({ venue, since }) => [venue, since]));
}

/** One loss of a feed, over all of its markets. */
export interface GapSummary {
  readonly gap: string;
  readonly affected: string;
  readonly reason: string;
  readonly fromAt: Date;
  /** Its last market recovered; null while one has not. */
  readonly toAt: Date | null;
  readonly markets: number;
  /** Markets that have not recovered. */
  readonly open: number;
  /** One of its markets, an open one if there is any. */
  readonly marketId: string;
}

/** Rows of a market and a gap that are searched for the latest gaps. */
const SEARCHED_ROWS = 20_000;

const LATEST = sql(
  'latest_feed_gaps',
  `SELECT s.*, m.venue_market_id AS market_id FROM (
     SELECT gap, min(affected) AS affected, min(reason) AS reason, min(from_at) AS from_at, count(*)::int AS markets,
       CASE WHEN bool_and(to_at IS NOT NULL) THEN max(to_at) END AS to_at, (count(*) FILTER (WHERE to_at IS NULL))::int AS open,
       (array_agg(market_id ORDER BY to_at IS NOT NULL, market_id))[1] AS market_pk
     FROM (SELECT * FROM feed_gap WHERE venue = $1 ORDER BY from_at DESC LIMIT ${SEARCHED_ROWS}) g GROUP BY gap
     ORDER BY bool_or(to_at IS NULL) DESC, min(from_at) DESC LIMIT $2) s
   JOIN market m ON m.id = s.market_pk ORDER BY s.open > 0 DESC, s.from_at DESC`,
);

/** The gaps of a venue, open ones first, then the newest. */
export function latestGaps(db: Queryable, venue: string, limit: number): Promise<GapSummary[]> {
  return db.query(LATEST, [venue, limit]);
}
