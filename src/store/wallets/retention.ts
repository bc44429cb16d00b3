import { type Database, sql } from '../db/tx.ts';

/** Rows per transaction. */
const BATCH = 1_000;

const PRUNE_WALLETS = sql(
  'prune_wallets',
  `WITH gone AS MATERIALIZED (
     SELECT pk FROM wallet WHERE deleted_at < $1::timestamptz ORDER BY pk LIMIT ${BATCH} FOR UPDATE SKIP LOCKED)
   DELETE FROM wallet a USING gone WHERE a.pk = gone.pk RETURNING 1`,
);

/** With this lock no account can begin to watch the wallet. */
const LOCK_UNWATCHED = sql(
  'lock_unwatched_wallets',
  `SELECT w.pk FROM watched_wallet w WHERE w.created_at < $1::timestamptz
     AND NOT EXISTS (SELECT FROM wallet a WHERE a.watched_pk = w.pk)
   ORDER BY w.pk LIMIT ${BATCH} FOR UPDATE OF w SKIP LOCKED`,
);

/** A later statement than the lock, so that it sees the watches that were committed before. */
const PRUNE_WATCHED = sql(
  'prune_watched_wallets',
  `DELETE FROM watched_wallet w WHERE w.pk = ANY ($1::bigint[])
     AND NOT EXISTS (SELECT FROM wallet a WHERE a.watched_pk = w.pk) RETURNING 1`,
);

/** Deletes watches that ended before this time, epoch milliseconds, and the wallets that no account watches any more. */
export async function pruneWallets(db: Database, deletedBeforeMs: number, signal?: AbortSignal): Promise<number> {
  const before = new Date(deletedBeforeMs).toISOString();
  let pruned = 0;
  for (let isMore = true; isMore && !signal?.aborted; ) {
    const batch = await db.transaction(async (tx) => {
      const wallets = (await tx.query(PRUNE_WALLETS, [before])).length;
      const unwatched = (await tx.query<{ pk: bigint }>(LOCK_UNWATCHED, [before])).map(({ pk }) => pk);
      return { wallets, watched: (await tx.query(PRUNE_WATCHED, [unwatched])).length };
    });
    pruned += batch.wallets;
    isMore = batch.wallets === BATCH || batch.watched === BATCH;
  }
  return pruned;
}
