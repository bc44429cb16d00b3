import { type Queryable, sql, type Tx } from '../db/tx.ts';

/** How long the answer to a request is kept for the next one with the same key (DESIGN section 4, "Writes"). */
export const IDEMPOTENCY_HOURS = 24;

/** By the database's clock, like the row's own time: the clocks of processes may differ. */
const EXPIRED = `created_at <= now() - interval '${IDEMPOTENCY_HOURS} hours'`;

/**
 * Whoever has the lock of a key is the only one at it until its transaction ends, so the insert waits for nobody but the
 * deletion of expired rows. It finds a conflict whatever the statement's snapshot holds, and takes over an expired row.
 */
const CLAIM = sql(
  'claim_idempotency_key',
  `WITH lock AS MATERIALIZED (SELECT pg_try_advisory_xact_lock(hashtextextended($2::text, $1::bigint)) AS is_ours),
   claimed AS (
     INSERT INTO idempotency_key AS k (account_id, key, sealed) SELECT $1, $2, '' FROM lock WHERE is_ours
     ON CONFLICT (account_id, key) DO UPDATE SET sealed = '', created_at = now() WHERE k.${EXPIRED}
     RETURNING 1)
   SELECT is_ours, EXISTS (SELECT FROM claimed) AS is_claimed FROM lock`,
);
const READ = sql('read_idempotency_key', 'SELECT sealed FROM idempotency_key WHERE account_id = $1 AND key = $2');
const KEEP = sql('keep_idempotent_answer', 'UPDATE idempotency_key SET sealed = $3 WHERE account_id = $1 AND key = $2');

type Claim =
  /** The key is this transaction's: what it does and what it keeps commit together. */
  | { outcome: 'claimed' }
  /** Another transaction is at it at this moment. */
  | { outcome: 'busy' }
  /** What was kept, sealed. The key is locked until the transaction ends. */
  | { outcome: 'kept'; sealed: string };

/** Takes the key of an account for this transaction, or says what was kept under it. Waits for nobody. */
export async function claimIdempotencyKey(tx: Tx, accountId: bigint, key: string): Promise<Claim> {
  const [claim] = await tx.query<{ isOurs: boolean; isClaimed: boolean }>(CLAIM, [accountId, key]);
  if (claim?.isClaimed) return { outcome: 'claimed' };
  if (!claim?.isOurs) return { outcome: 'busy' };
  const [row] = await tx.query<{ sealed: string }>(READ, [accountId, key]);
  // It cannot be gone: only expired rows are deleted, and the claim would have taken that over.
  return row ? { outcome: 'kept', sealed: row.sealed } : { outcome: 'busy' };
}

/** Keeps what the next request with this key is told; the transaction must have claimed it, or found something kept. */
export async function keepIdempotentAnswer(tx: Tx, accountId: bigint, key: string, sealed: string): Promise<void> {
  await tx.query(KEEP, [accountId, key, sealed]);
}

/** Rows deleted in one transaction. */
const BATCH = 1_000;

const PRUNE = sql(
  'prune_idempotency_keys',
  `WITH old AS MATERIALIZED (
     SELECT account_id, key FROM idempotency_key WHERE ${EXPIRED} ORDER BY created_at LIMIT ${BATCH} FOR UPDATE SKIP LOCKED)
   DELETE FROM idempotency_key k USING old WHERE k.account_id = old.account_id AND k.key = old.key RETURNING 1`,
);

/** Deletes expired keys, oldest first, in statements of bounded size; returns how many. A row that is being taken over stays. */
export async function pruneIdempotencyKeys(db: Queryable, signal?: AbortSignal): Promise<number> {
  let pruned = 0;
  while (!signal?.aborted) {
    const batch = (await db.query(PRUNE)).length;
    pruned += batch;
    if (batch < BATCH) break;
  }
  return pruned;
}
