import { type Queryable, sql } from '../db/tx.ts';

/** A market is polled first for this long after a client read it. */
const HOT_FOR_MINUTES = 15;

/**
 * SQL of the recently read markets that fulfil a condition on `m`, and their place: the latest read is first. Each read finds its market,
 * whatever the statistics of the tables are: with those of no reads, Postgres would look for a read of each market.
 */
export function recentlyRead(condition: string): string {
  return `SELECT m.id, row_number() OVER (ORDER BY r.read_at DESC, m.id) AS place
     FROM market_read r CROSS JOIN LATERAL (SELECT m.id FROM market m WHERE m.id = r.market_id AND ${condition} OFFSET 0) m
     WHERE r.read_at > now() - interval '${HOT_FOR_MINUTES} minutes'`;
}

const NOTE_READS = sql(
  'note_market_reads',
  `INSERT INTO market_read AS r (market_id, read_at)
   SELECT m.id, clock_timestamp() - i.age_ms * interval '1 millisecond'
   FROM unnest($1::bigint[], $2::float8[]) AS i (id, age_ms) JOIN market m USING (id) ORDER BY m.id
   ON CONFLICT (market_id) DO UPDATE SET read_at = excluded.read_at WHERE r.read_at < excluded.read_at`,
);

/** Stores the last reads of markets, given as milliseconds ago by market key, because the stamps use the database clock. */
export async function noteMarketReads(db: Queryable, agesMs: ReadonlyMap<bigint, number>): Promise<void> {
  if (agesMs.size > 0) await db.query(NOTE_READS, [[...agesMs.keys()], [...agesMs.values()]]);
}

/** A market is followed for this long after the last read or note of a stream. */
const FOLLOWED_FOR = `interval '1 minute'`;

/** SQL of whether a client read market `m` lately, or streams its books. */
export const IS_READ = `(EXISTS (
     SELECT FROM market_read r WHERE r.market_id = m.id AND r.read_at > clock_timestamp() - ${FOLLOWED_FOR} OFFSET 0)
   OR EXISTS (SELECT FROM followed_venue f WHERE f.venue = m.venue AND f.followed_at > clock_timestamp() - ${FOLLOWED_FOR}))`;

const NOTE_STREAMED_MARKETS = sql(
  'note_streamed_markets',
  `INSERT INTO market_read AS r (market_id, read_at)
   SELECT m.id, clock_timestamp() FROM unnest($1::text[], $2::text[]) AS i (venue, market_id)
   JOIN market m ON m.venue = i.venue AND m.venue_market_id = i.market_id ORDER BY m.id
   ON CONFLICT (market_id) DO UPDATE SET read_at = excluded.read_at WHERE r.read_at < excluded.read_at`,
);
const NOTE_STREAMED_VENUES = sql(
  'note_streamed_venues',
  `INSERT INTO followed_venue AS f (venue, followed_at) SELECT venue, clock_timestamp() FROM unnest($1::text[]) AS i (venue) ORDER BY venue
   ON CONFLICT (venue) DO UPDATE SET followed_at = excluded.followed_at WHERE f.followed_at < excluded.followed_at`,
);

/** The targets of streams of books: certain markets, by the ids of their venues, or all markets of a venue. */
interface Streamed {
  markets: readonly { venue: string; marketId: string }[];
  venues: readonly string[];
}

/** Notes the targets of open streams. A market that a stream names counts as read. */
export async function noteStreamed(db: Queryable, { markets, venues }: Streamed): Promise<void> {
  if (markets.length > 0)
    await db.query(NOTE_STREAMED_MARKETS, [markets.map(({ venue }) => venue), markets.map(({ marketId }) => marketId)]);
  if (venues.length > 0) await db.query(NOTE_STREAMED_VENUES, [venues]);
}

const PRUNE_READS = sql(
  'prune_market_reads',
  `WITH pruned AS (DELETE FROM market_read WHERE read_at < clock_timestamp() - interval '1 day' RETURNING 1)
   SELECT count(*)::int AS pruned FROM pruned`,
);

/** Deletes reads that are older than a day; returns their number. */
export async function pruneReads(db: Queryable): Promise<number> {
  const [row] = await db.query<{ pruned: number }>(PRUNE_READS);
  return row?.pruned ?? 0;
}
