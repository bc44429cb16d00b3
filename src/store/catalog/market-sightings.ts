import type { MarketRecord, MarketStatus } from '../../domain/markets/market.ts';
import type { AnnouncedTimes } from '../../domain/markets/resolution.ts';
import { type Queryable, sql, type Tx } from '../db/tx.ts';
import { markChangedMarkets } from '../marks/marks.ts';
import { insertFactsSql, markMarkets } from '../marks/publish-marks.ts';
import { refreshEvents } from './market-events.ts';
import { keepVersions } from './market-versions.ts';
import { IS_UNDECIDED } from './undecided-markets.ts';

/** Statuses of markets that can still trade. A catalog sweep must list them. */
const TRADABLE_STATUSES = ['created', 'open', 'halted'] as const satisfies readonly MarketStatus[];
const TRADABLE = `('${TRADABLE_STATUSES.join("', '")}')`;

/**
 * Filters rows before the upsert, because ON CONFLICT locks, and so writes, every row it meets. OFFSET 0 keeps single look-ups: a hash
 * join would read the whole table for each page. A cached record does not replace the volumes of a sighting that is newer than the
 * cache entry.
 */
const UPSERT_STATS = sql(
  'upsert_market_stats',
  `WITH listed AS (
     SELECT r.market_id, CASE WHEN c.is_older THEN k.volume ELSE r.volume END AS volume,
       CASE WHEN c.is_older THEN k.volume_24h ELSE r.volume_24h END AS volume_24h,
       CASE WHEN c.is_older THEN k.liquidity ELSE r.liquidity END AS liquidity, r.seen_at,
       CASE WHEN r.is_full THEN least(r.seen_at, r.made_at) END AS full_seen_at,
       NOT c.is_older AND (k.volume, k.volume_24h, k.liquidity) IS DISTINCT FROM (r.volume, r.volume_24h, r.liquidity) AS is_changed,
       NOT c.is_older AND r.volume IS NOT NULL AND r.volume IS DISTINCT FROM k.volume AS has_moved,
       k.volume AS former_volume, k.seen_at AS former_seen_at
     FROM unnest($1::bigint[], $2::numeric[], $3::numeric[], $4::numeric[], $5::timestamptz[], $7::timestamptz[], $8::boolean[])
       AS r (market_id, volume, volume_24h, liquidity, seen_at, made_at, is_full)
     LEFT JOIN LATERAL (SELECT * FROM market_stats k WHERE k.market_id = r.market_id OFFSET 0) k ON true
     CROSS JOIN LATERAL (SELECT coalesce(r.made_at < k.seen_at, false) AS is_older) c
     WHERE k.market_id IS NULL OR k.missing_since IS NOT NULL
       OR (NOT c.is_older AND (k.volume, k.volume_24h, k.liquidity) IS DISTINCT FROM (r.volume, r.volume_24h, r.liquidity))
       OR ($6::boolean AND (k.seen_at IS NULL OR k.seen_at < r.seen_at))),
   written AS (
     INSERT INTO market_stats AS s (market_id, volume, volume_24h, liquidity, seen_at, full_seen_at)
     SELECT market_id, volume, volume_24h, liquidity, seen_at, full_seen_at FROM listed ORDER BY market_id
     ON CONFLICT (market_id) DO UPDATE SET volume = excluded.volume, volume_24h = excluded.volume_24h,
       liquidity = excluded.liquidity, seen_at = greatest(s.seen_at, excluded.seen_at),
       full_seen_at = greatest(s.full_seen_at, excluded.full_seen_at), missing_since = NULL),
   published AS (${insertFactsSql('volumes', 'SELECT market_id FROM listed WHERE is_changed')})
   SELECT market_id, former_volume, former_seen_at FROM listed WHERE has_moved`,
);

/** A total at its last sighting; null before the first one. */
export interface SeenTotal {
  volume: string | null;
  seenAt: Date | null;
}

/**
 * Records that the venue listed these markets, with their volumes; a missing market is found again. On the pages of a sweep the stamp is
 * `sweepStartedAtMs` (epoch milliseconds of the poller's clock), so that a sweep stamps a market once and one clock is compared with
 * itself. On other pages it is the time of the venue's record, stored only where a row is written anyway. A record with all
 * texts also sets `full_seen_at`. Returns the keys of the markets
 * with a changed total, each with the former total and its last sighting.
 */
export async function writeSightings(
  tx: Tx,
  markets: readonly MarketRecord[],
  pkOf: ReadonlyMap<string, bigint>,
  seen: { nowMs: number; sweepStartedAtMs?: number | undefined },
): Promise<ReadonlyMap<bigint, SeenTotal>> {
  const { nowMs, sweepStartedAtMs } = seen;
  const named = markets.filter((market) => pkOf.has(market.marketId));
  const moved = await tx.query<{ marketId: bigint; formerVolume: string | null; formerSeenAt: Date | null }>(
    UPSERT_STATS,
    [
      named.map((market) => pkOf.get(market.marketId)),
      named.map((market) => market.volume ?? null),
      named.map((market) => market.volume24h ?? null),
      named.map((market) => market.liquidity ?? null),
      named.map(({ ageMs = 0 }) => new Date(sweepStartedAtMs ?? nowMs - ageMs).toISOString()),
      sweepStartedAtMs !== undefined,
      named.map(({ ageMs }) => (ageMs === undefined ? null : new Date(nowMs - ageMs).toISOString())),
      named.map(({ isSummary }) => isSummary !== true),
    ],
  );
  return new Map(
    moved.map(({ marketId, formerVolume, formerSeenAt }) => [marketId, { volume: formerVolume, seenAt: formerSeenAt }]),
  );
}

const NOTE_LISTED = sql(
  'note_listed_markets',
  `UPDATE market_stats SET seen_at = $3::timestamptz, missing_since = NULL WHERE market_id IN (
     SELECT s.market_id FROM market m JOIN market_stats s ON s.market_id = m.id
     WHERE m.venue = $1 AND m.venue_market_id = ANY ($2::text[])
       AND (s.seen_at IS NULL OR s.seen_at < $3::timestamptz OR s.missing_since IS NOT NULL)
     ORDER BY s.market_id FOR NO KEY UPDATE OF s)`,
);

/** Records the sighting of markets that a sweep page lists without a usable record: omitted unchanged ones, and rejected ones. */
export async function noteListed(
  tx: Tx,
  venue: string,
  marketIds: readonly string[],
  sweepStartedAtMs: number,
): Promise<void> {
  if (marketIds.length === 0) return;
  await tx.query(NOTE_LISTED, [venue, marketIds, new Date(sweepStartedAtMs).toISOString()]);
}

const MARK_MISSING = sql(
  'mark_missing_markets',
  `UPDATE market_stats SET missing_since = clock_timestamp() WHERE market_id IN (
     SELECT s.market_id FROM market m JOIN market_stats s ON s.market_id = m.id
     WHERE m.venue = $1 AND m.status = ANY ($3::text[]) AND m.gone_at IS NULL AND s.missing_since IS NULL
       AND (s.seen_at IS NULL OR s.seen_at < $2::timestamptz)
     ORDER BY s.market_id FOR NO KEY UPDATE OF s)
   RETURNING market_id`,
);

/**
 * At the end of a sweep, in the transaction of its last page: records as missing the tradable markets that no page listed since `sinceMs`,
 * the start of the sweep or the time of its oldest page. Returns their number. A missing market may still exist: the poller then looks it
 * up by its id. With `includesClosed`, closed markets without a result can be missing too.
 */
export async function markMissing(tx: Tx, venue: string, sinceMs: number, includesClosed = false): Promise<number> {
  const statuses = includesClosed ? [...TRADABLE_STATUSES, 'closed'] : TRADABLE_STATUSES;
  return (await tx.query(MARK_MISSING, [venue, new Date(sinceMs).toISOString(), statuses])).length;
}

const NOTE_ANNOUNCED = sql(
  'note_announced_markets',
  `UPDATE market_stats s SET missing_since = coalesce(s.missing_since, clock_timestamp()),
     announced = nullif(coalesce(s.announced, '{}') || a.times, '{}')
   FROM (
     SELECT s.market_id, a.times FROM unnest($2::text[], $4::jsonb[]) AS a (venue_market_id, times)
     JOIN market m ON m.venue = $1 AND m.venue_market_id = a.venue_market_id JOIN market_stats s ON s.market_id = m.id
     WHERE m.gone_at IS NULL AND (m.status = ANY ($3::text[]) OR ${IS_UNDECIDED})
       AND (s.missing_since IS NULL OR NOT coalesce(s.announced, '{}') @> a.times)
     ORDER BY s.market_id FOR NO KEY UPDATE OF s) a
   WHERE s.market_id = a.market_id`,
);

/**
 * Records that the venue announced a change of these markets, with the times of their results: the catalog poll looks them up by id, like
 * missing ones. The timeline gets a time when an answer states its state.
 */
export async function noteAnnounced(
  db: Queryable,
  venue: string,
  announced: ReadonlyMap<string, AnnouncedTimes>,
): Promise<void> {
  if (announced.size === 0) return;
  const times = [...announced.values()].map((each) => JSON.stringify(each));
  await db.query(NOTE_ANNOUNCED, [venue, [...announced.keys()], TRADABLE_STATUSES, times]);
}

const MISSING_MARKETS = sql(
  'missing_markets',
  `SELECT m.id AS pk, m.venue_market_id AS market_id FROM market_stats s JOIN market m ON m.id = s.market_id
   WHERE s.missing_since IS NOT NULL AND m.venue = $1 AND s.market_id > $3 ORDER BY s.market_id LIMIT $2`,
);

export interface MissingMarket {
  pk: bigint;
  marketId: string;
}

/** The first missing markets of a venue after a key. */
export function missingMarkets(db: Queryable, venue: string, limit: number, afterPk = 0n): Promise<MissingMarket[]> {
  return db.query(MISSING_MARKETS, [venue, limit, afterPk]);
}

/** OFFSET 0, because a join might start with all missing markets, after a bad sweep the whole catalog. */
const LOCK_GONE = sql(
  'lock_gone_markets',
  `SELECT m.id, m.venue, m.event_id FROM market m
   WHERE m.id = ANY ($1::bigint[]) AND (m.status IN ${TRADABLE} OR m.status = 'closed') AND m.gone_at IS NULL
     AND EXISTS (SELECT FROM market_stats s WHERE s.market_id = m.id AND s.missing_since IS NOT NULL OFFSET 0)
   ORDER BY m.venue, m.venue_market_id FOR NO KEY UPDATE`,
);

const MARK_GONE = sql(
  'mark_gone_markets',
  `UPDATE market SET status = 'closed', gone_at = $2::timestamptz, updated_at = $2::timestamptz, content_hash = ''
   WHERE id = ANY ($1::bigint[])`,
);

const CLEAR_MISSING = sql(
  'clear_missing_markets',
  `UPDATE market_stats SET missing_since = NULL WHERE market_id IN (
     SELECT market_id FROM market_stats WHERE market_id = ANY ($1::bigint[]) AND missing_since IS NOT NULL
     ORDER BY market_id FOR NO KEY UPDATE)`,
);

/**
 * Ends the look-up of the `asked` markets: still missing ones among `unknown` are closed and marked gone, with a version of their last
 * state; the others cease to be missing. Returns the number of gone markets.
 */
export async function settleMissing(
  tx: Tx,
  asked: readonly MissingMarket[],
  unknown: readonly MissingMarket[],
): Promise<number> {
  const locked = await tx.query<{ id: bigint; venue: string; eventId: string | null }>(LOCK_GONE, [
    unknown.map((market) => market.pk),
  ]);
  const gone = locked.map((row) => row.id);
  if (gone.length > 0) await tx.query(MARK_GONE, [gone, await keepVersions(tx, gone)]);
  await markMarkets(tx, gone);
  await markChangedMarkets(tx, gone);
  await refreshEvents(
    tx,
    locked.flatMap(({ venue, eventId }) => (eventId === null ? [] : [{ venue, eventId }])),
  );
  await tx.query(CLEAR_MISSING, [asked.map((market) => market.pk)]);
  return gone.length;
}
