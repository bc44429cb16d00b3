import { type Database, type Queryable, sql } from '../db/tx.ts';
import { insertGapMarksSql } from '../marks/detail.ts';
import { insertPublishSql } from '../marks/publish-marks.ts';

/** An interval in which a feed may have lost changes of these markets. */
interface NewGap {
  /** A UUID: opening a gap again has no effect. */
  readonly gap: string;
  readonly venue: string;
  readonly marketPks: readonly bigint[];
  /** `books`, `trades` or `markets`. */
  readonly affected: string;
  readonly reason: string;
  /** Epoch milliseconds. */
  readonly fromMs: number;
  /** Epoch milliseconds; absent while it lasts. */
  readonly toMs?: number;
}

const OPEN = sql(
  'open_feed_gap',
  `WITH opened AS (
     INSERT INTO feed_gap (gap, venue, market_id, affected, reason, from_at, to_at)
     SELECT $1, $2, market_id, $4, $5, to_timestamp($6::float8 / 1000), to_timestamp($7::float8 / 1000)
     FROM unnest($3::bigint[]) AS m (market_id) ORDER BY market_id
     ON CONFLICT (gap, market_id) DO NOTHING RETURNING id, gap, market_id),
   broadcast AS (${insertGapMarksSql('gapBegan', 'opened')})
   ${insertPublishSql('gap', 'SELECT market_id, id FROM opened')}`,
);

/** Records a gap with its marks for the publisher and, when a webhook lists gaps, for the alerter. */
export async function openGap(tx: Queryable, opened: NewGap): Promise<void> {
  const { gap, venue, marketPks, affected, reason, fromMs, toMs = null } = opened;
  await tx.query(OPEN, [gap, venue, marketPks, affected, reason, fromMs, toMs]);
}

/** SQL that ends the open gaps of a condition at a moment. */
const endingSql = (condition: string, moment: string) => `WITH ended AS MATERIALIZED (
     SELECT id FROM feed_gap g WHERE to_at IS NULL AND ${condition} ORDER BY id FOR UPDATE),
   closed AS (UPDATE feed_gap g SET to_at = ${moment} FROM ended WHERE g.id = ended.id RETURNING g.id, g.gap, g.market_id),
   broadcast AS (${insertGapMarksSql('gapEnded', 'closed')})
   ${insertPublishSql('gap', 'SELECT market_id, id FROM closed')}`;

const CLOSE = sql(
  'close_feed_gaps',
  endingSql(
    'venue = $1 AND market_id = ANY ($2::bigint[]) AND from_at <= to_timestamp($3::float8 / 1000)',
    'to_timestamp($3::float8 / 1000)',
  ),
);

/** Ends the open gaps of markets at this moment, epoch milliseconds, with the same marks. */
export async function closeGaps(
  tx: Queryable,
  { venue, marketPks, toMs }: { venue: string; marketPks: readonly bigint[]; toMs: number },
): Promise<void> {
  if (marketPks.length > 0) await tx.query(CLOSE, [venue, marketPks, toMs]);
}

const END_UNREAD = sql(
  'end_gaps_without_feed',
  endingSql(
    `from_at < clock_timestamp() - interval '5 minutes' AND NOT EXISTS (
       SELECT FROM feed_streamer s
       WHERE s.venue = g.venue AND s.state <> 'off' AND s.reported_at > clock_timestamp() - interval '5 minutes')`,
    'clock_timestamp()',
  ),
);

/** Ends the open gaps of feeds that no streamer reads any more: polls alone bring the changes, so no feed can end them. */
export async function endGapsWithoutFeed(db: Queryable): Promise<void> {
  await db.query(END_UNREAD);
}

const OPEN_MARKETS = sql(
  'markets_with_open_feed_gaps',
  `SELECT DISTINCT m.id AS pk, m.venue_market_id AS market_id FROM feed_gap g JOIN market m ON m.id = g.market_id
   WHERE g.venue = $1 AND g.to_at IS NULL`,
);

/** The markets of a venue with an open gap. */
export function marketsWithOpenGaps(db: Queryable, venue: string): Promise<{ pk: bigint; marketId: string }[]> {
  return db.query(OPEN_MARKETS, [venue]);
}

interface StoredGap {
  readonly gap: string;
  /** The venue's id. */
  readonly marketId: string;
  readonly affected: string;
  readonly reason: string;
  readonly fromAt: Date;
  /** Null while it lasts. */
  readonly toAt: Date | null;
}

const READ = sql(
  'read_feed_gaps',
  `SELECT g.gap, m.venue_market_id AS market_id, g.affected, g.reason, g.from_at, g.to_at
   FROM feed_gap g JOIN market m ON m.id = g.market_id
   WHERE m.venue = $1 AND m.venue_market_id = ANY ($2::text[]) AND g.from_at < to_timestamp($4::float8 / 1000)
     AND (g.to_at IS NULL OR g.to_at > to_timestamp($3::float8 / 1000)) AND g.affected = $6
   ORDER BY g.from_at, g.id LIMIT $5`,
);

/** The gaps of `affected` data of markets that overlap [`fromMs`, `toMs`), epoch milliseconds, oldest first. */
export function readGaps(
  db: Queryable,
  options: {
    venue: string;
    marketIds: readonly string[];
    affected: string;
    fromMs: number;
    toMs: number;
    limit: number;
  },
): Promise<StoredGap[]> {
  const { venue, marketIds, affected, fromMs, toMs, limit } = options;
  return db.query(READ, [venue, marketIds, fromMs, toMs, limit, affected]);
}

const COUNT = sql(
  'count_feed_gaps',
  `SELECT venue, count(DISTINCT gap)::int AS gaps FROM feed_gap
   WHERE from_at > clock_timestamp() - interval '24 hours' OR to_at IS NULL GROUP BY venue`,
);

/** The number of gaps of each venue that began in the last 24 hours or still last. */
export async function countGaps(db: Queryable): Promise<Map<string, number>> {
  const rows = await db.query<{ venue: string; gaps: number }>(COUNT);
  return new Map(rows.map(({ venue, gaps }) => [venue, gaps]));
}

/** Days that ended gaps are kept. */
export const GAPS_KEPT_DAYS = 30;
const BATCH = 10_000;
const PRUNE = sql(
  'prune_feed_gaps',
  `WITH old AS MATERIALIZED (
     SELECT id FROM feed_gap WHERE to_at < $1::timestamptz ORDER BY id LIMIT ${BATCH} FOR UPDATE SKIP LOCKED)
   DELETE FROM feed_gap g USING old WHERE g.id = old.id RETURNING 1`,
);

/** Deletes gaps that ended before this time, epoch milliseconds. Returns the number of rows. */
export async function pruneGaps(db: Database, endedBeforeMs: number, signal?: AbortSignal): Promise<number> {
  let pruned = 0;
  for (let isMore = true; isMore && !signal?.aborted; ) {
    const batch = (await db.query(PRUNE, [new Date(endedBeforeMs).toISOString()])).length;
    pruned += batch;
    isMore = batch === BATCH;
  }
  return pruned;
}

const OPEN_NOW = sql(
  'count_open_feed_gaps',
  `SELECT venue, count(DISTINCT gap)::int AS gaps FROM feed_gap WHERE to_at IS NULL GROUP BY venue`,
);

/** The number of gaps of each venue that still last. */
export async function countOpenGaps(db: Queryable): Promise<Map<string, number>> {
  const rows = await db.query<{ venue: string; gaps: number }>(OPEN_NOW);
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
