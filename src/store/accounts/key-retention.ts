import { type Queryable, sql } from '../db/tx.ts';

/** Keys per statement. */
const BATCH = 1_000;
/** Active keys have a quota; an account with the scope `keys` can make and revoke any number of keys. */
const MAX_ENDED_PER_ACCOUNT = 1_000;

/** A revoked key of BOOTSTRAP_API_KEY stays: without its row the next start would create it again. */
const PRUNE = sql(
  'prune_ended_keys',
  `WITH surplus AS MATERIALIZED (
     SELECT f.id FROM account a CROSS JOIN LATERAL (
       SELECT id FROM api_key WHERE account_id = a.id AND (revoked_at < $2 OR expires_at < $2) AND NOT starts_with(id, 'chosen-')
       ORDER BY created_at DESC, id DESC OFFSET $1) f LIMIT ${BATCH})
   DELETE FROM api_key k USING surplus WHERE k.id = surplus.id RETURNING 1`,
);

/** Deletes the oldest keys of each account that ended before `beforeMs`, beyond the newest `perAccount`; returns their number. */
export async function pruneEndedKeys(
  db: Queryable,
  beforeMs: number,
  { signal, perAccount = MAX_ENDED_PER_ACCOUNT }: { signal?: AbortSignal; perAccount?: number } = {},
): Promise<number> {
  let pruned = 0;
  while (!signal?.aborted) {
    const batch = (await db.query(PRUNE, [perAccount, new Date(beforeMs).toISOString()])).length;
    pruned += batch;
    if (batch < BATCH) break;
  }
  return pruned;
}
