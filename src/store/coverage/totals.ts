import type { Decimal } from '../../domain/values/decimal.ts';
import { type Queryable, sql } from '../db/tx.ts';

/** The sighting of an unmoved total may be this much older than its time says: caches, and rounds over the catalog. */
export const SIGHTING_MS = 300_000;
/** A pause between two totals that is shorter needs no total between them. */
const IDLE_MINUTES = 5;
/** Coverage is judged for 35 days. */
const KEPT_DAYS = 40;

/** SQL that tells whether a record of this market was rejected since a moment: its total may have moved unseen. */
export const IS_REJECTED = (market: string, since: string) => `EXISTS (SELECT FROM quarantine q
  WHERE q.venue = ${market}.venue AND q.kind = 'markets' AND q.record_id = ${market}.venue_market_id AND q.last_seen_at >= ${since})`;

/** A total that a market had until now, with its last sighting. */
interface FormerTotal {
  marketPk: bigint;
  volume: string;
  seenAt: Date;
}

/** The total was the same at its last sighting as in the latest kept row, so it was the same between both. */
const KEEP_IDLE = sql(
  'keep_idle_totals',
  `INSERT INTO coverage_total AS k (market_id, hour, venue, first_at, first_volume, last_at, last_volume)
   SELECT s.market_id, date_trunc('hour', r.seen_at, 'UTC'), $1, r.seen_at, s.volume, r.seen_at, s.volume
   FROM unnest($2::bigint[], $3::numeric[], $4::timestamptz[]) AS s (market_id, volume, seen_at)
   CROSS JOIN LATERAL (SELECT s.seen_at - interval '${SIGHTING_MS} ms' AS seen_at) r
   JOIN market m ON m.id = s.market_id
   CROSS JOIN LATERAL (
     SELECT e.last_at, e.last_volume FROM coverage_total e
     WHERE e.market_id = s.market_id AND e.last_at IS NOT NULL ORDER BY e.hour DESC LIMIT 1) e
   WHERE e.last_volume = s.volume AND e.last_at < r.seen_at - interval '${IDLE_MINUTES} minutes' AND NOT ${IS_REJECTED('m', 'e.last_at')}
   ORDER BY s.market_id
   ON CONFLICT (market_id, hour) DO UPDATE SET first_at = coalesce(k.first_at, excluded.first_at),
     first_volume = coalesce(k.first_volume, excluded.first_volume), last_at = coalesce(k.last_at, excluded.last_at),
     last_volume = coalesce(k.last_volume, excluded.last_volume)`,
);

/** Keeps the last sighting of totals that move after a long time: the hours before it were quiet. */
export async function keepIdleTotals(db: Queryable, venue: string, former: readonly FormerTotal[]): Promise<void> {
  if (former.length === 0) return;
  await db.query(KEEP_IDLE, [
    venue,
    former.map(({ marketPk }) => marketPk),
    former.map(({ volume }) => volume),
    former.map(({ seenAt }) => seenAt.toISOString()),
  ]);
}

/** Filters before the upsert, because ON CONFLICT locks, and so writes, every row it meets. */
const KEEP_CALM = sql(
  'keep_calm_totals',
  `INSERT INTO coverage_total AS k (market_id, hour, venue, calm_at, calm_volume, calm_blur)
   SELECT DISTINCT ON (1, 2) c.market_id, date_trunc('hour', to_timestamp(c.made / 1000), 'UTC'), $1, to_timestamp(c.made / 1000), c.volume, c.blur
   FROM unnest($2::bigint[], $3::float8[], $4::numeric[], $5::numeric[]) AS c (market_id, made, volume, blur)
   WHERE NOT EXISTS (
     SELECT FROM coverage_total e
     WHERE e.market_id = c.market_id AND e.hour = date_trunc('hour', to_timestamp(c.made / 1000), 'UTC') AND e.calm_blur <= c.blur)
   ORDER BY 1, 2, c.blur, c.made
   ON CONFLICT (market_id, hour) DO UPDATE SET calm_at = excluded.calm_at, calm_volume = excluded.calm_volume, calm_blur = excluded.calm_blur
   WHERE k.calm_blur IS NULL OR excluded.calm_blur < k.calm_blur`,
);

/** A compared total; `blur` is the stored volume around it, which it may contain or not. */
interface ComparedTotal {
  marketPk: bigint;
  /** Epoch milliseconds. */
  madeMs: number;
  volume: Decimal;
  blur: Decimal;
}

/** Keeps the total of each hour with the least volume around it: it bounds an hour most precisely. */
export async function keepCalmTotals(db: Queryable, venue: string, totals: readonly ComparedTotal[]): Promise<void> {
  if (totals.length === 0) return;
  await db.query(KEEP_CALM, [
    venue,
    totals.map(({ marketPk }) => marketPk),
    totals.map(({ madeMs }) => madeMs),
    totals.map(({ volume }) => volume),
    totals.map(({ blur }) => blur),
  ]);
}

const NOTE_SWEPT = sql(
  'note_swept_catalog',
  `INSERT INTO coverage_sweep (venue, began_at, ended_at) VALUES ($1, to_timestamp($2::float8 / 1000), to_timestamp($3::float8 / 1000))
   ON CONFLICT (venue) DO UPDATE SET began_at = excluded.began_at, ended_at = excluded.ended_at`,
);

/** Records a complete round over the catalog: every total was read after `beganMs`. Epoch milliseconds. */
export async function noteSwept(db: Queryable, venue: string, beganMs: number, endedMs: number): Promise<void> {
  await db.query(NOTE_SWEPT, [venue, beganMs, endedMs]);
}

const JUDGE_AGAIN = sql(
  'judge_coverage_again',
  `UPDATE coverage SET again_at = to_timestamp($2::float8 / 1000)
   WHERE market_id = ANY ($1::bigint[]) AND market_id > 0 AND kind = 'trades' AND hour > to_timestamp($2::float8 / 1000) - interval '35 days'`,
);

/** Judges the settled hours of markets again, in the next run: a comparison found a loss, or its end. */
export async function judgeCoverageAgain(db: Queryable, marketPks: readonly bigint[], nowMs: number): Promise<void> {
  if (marketPks.length > 0) await db.query(JUDGE_AGAIN, [marketPks, nowMs]);
}

const JUDGE_ALL_AGAIN = sql(
  'judge_all_coverage_again',
  `UPDATE coverage SET again_at = to_timestamp($2::float8 / 1000)
   WHERE venue = $1 AND market_id > 0 AND kind = 'trades' AND hour > to_timestamp($2::float8 / 1000) - interval '35 days'`,
);

/** The same for all markets of a venue: its totals have another unit. */
export async function judgeAllCoverageAgain(db: Queryable, venue: string, nowMs: number): Promise<void> {
  await db.query(JUDGE_ALL_AGAIN, [venue, nowMs]);
}

const PRUNE = sql(
  'prune_coverage_evidence',
  `WITH old AS (SELECT clock_timestamp() - interval '${KEPT_DAYS} days' AS moment),
   totals AS (DELETE FROM coverage_total t USING old WHERE t.hour < old.moment RETURNING 1),
   polls AS (DELETE FROM coverage_poll p USING old WHERE p.hour < old.moment RETURNING 1)
   SELECT ((SELECT count(*) FROM totals) + (SELECT count(*) FROM polls))::int AS pruned`,
);

/** Deletes evidence of hours that are not judged again; the classes stay. Returns the number of rows. */
export async function pruneCoverageEvidence(db: Queryable): Promise<number> {
  const [row] = await db.query<{ pruned: number }>(PRUNE);
  return row?.pruned ?? 0;
}
