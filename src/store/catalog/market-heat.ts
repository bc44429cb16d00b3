import { type Queryable, sql } from '../db/tx.ts';

/** A market is polled first for this long after a client read it. */
export const HOT_FOR_MINUTES = 15;

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
