import { type Queryable, sql, type Tx } from '../db/tx.ts';

/** How long the answer to a request is kept for a repetition with the same `Idempotency-Key`. */
const IDEMPOTENCY_HOURS = 24;

/** Uses the database clock, like the row's own time, because the clocks of processes may differ. */
const EXPIRED = `created_at <= now() - interval '${IDEMPOTENCY_HOURS} hours'`;

/**
 * The holder of the advisory lock of a key has the key to itself until its transaction ends, so the insert waits only for the deletion of
 * expired rows. It detects a conflict regardless of the statement's snapshot, and takes over an expired row.
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
  /** This transaction holds the key: its work and its stored answer commit together. */
  | { outcome: 'claimed' }
  /** Another transaction holds the key at this moment. */
  | { outcome: 'busy' }
  /** The stored answer, sealed. The key stays locked until the transaction ends. */
  | { outcome: 'stored'; sealed: string };

/** Claims the key of an account for this transaction, or returns the stored answer. Never waits. */
export async function claimIdempotencyKey(tx: Tx, accountId: bigint, key: string): Promise<Claim> {
  const [claim] = await tx.query<{ isOurs: boolean; isClaimed: boolean }>(CLAIM, [accountId, key]);
  if (claim?.isClaimed) return { outcome: 'claimed' };
  if (!claim?.isOurs) return { outcome: 'busy' };
  const [row] = await tx.query<{ sealed: string }>(READ, [accountId, key]);
  // The row cannot be missing: only expired rows are deleted, and the claim takes those over.
  return row ? { outcome: 'stored', sealed: row.sealed } : { outcome: 'busy' };
}

/** The owner for which the answer of a key is sealed. An answer that is moved to another row cannot be opened. */
export function idempotencyOwner(accountId: bigint | string, key: string): string {
  return `idempotency ${accountId} ${key}`;
}

/** Stores the answer for the next request with this key; the transaction must have claimed or found the key. */
export async function keepIdempotentAnswer(tx: Tx, accountId: bigint, key: string, sealed: string): Promise<void> {
  await tx.query(KEEP, [accountId, key, sealed]);
}

/** Rows per transaction. */
const BATCH = 1_000;

const PRUNE = sql(
  'prune_idempotency_keys',
  `WITH old AS MATERIALIZED (
     SELECT account_id, key FROM idempotency_key WHERE ${EXPIRED} ORDER BY created_at LIMIT ${BATCH} FOR UPDATE SKIP LOCKED)
   DELETE FROM idempotency_key k USING old WHERE k.account_id = old.account_id AND k.key = old.key RETURNING 1`,
);

/** Deletes expired keys, oldest first, in statements of bounded size; returns their number. Skips a row during its takeover. */
export async function pruneIdempotencyKeys(db: Queryable, signal?: AbortSignal): Promise<number> {
  let pruned = 0;
  while (!signal?.aborted) {
    const batch = (await db.query(PRUNE)).length;
    pruned += batch;
    if (batch < BATCH) break;
  }
  return pruned;
}
