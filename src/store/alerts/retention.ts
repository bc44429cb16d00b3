import { type Queryable, sql } from '../db/tx.ts';

/** Alerts per statement. */
const BATCH = 1_000;
/** Active alerts have a quota; finished ones stay for their owner, whose rate of requests alone limits how many there are. */
const MAX_FINISHED_PER_ACCOUNT = 100_000;

const PRUNE = sql(
  'prune_finished_alerts',
  `WITH surplus AS MATERIALIZED (
     SELECT f.pk FROM account a CROSS JOIN LATERAL (
       SELECT pk FROM alert WHERE account_id = a.id AND status <> 'active' ORDER BY pk DESC OFFSET $1) f LIMIT ${BATCH})
   DELETE FROM alert a USING surplus WHERE a.pk = surplus.pk RETURNING 1`,
);

/** Deletes the oldest triggered and expired alerts of each account beyond `perAccount`; returns their number. */
export async function pruneFinishedAlerts(
  db: Queryable,
  { signal, perAccount = MAX_FINISHED_PER_ACCOUNT }: { signal?: AbortSignal; perAccount?: number } = {},
): Promise<number> {
  let pruned = 0;
  while (!signal?.aborted) {
    const batch = (await db.query(PRUNE, [perAccount])).length;
    pruned += batch;
    if (batch < BATCH) break;
  }
  return pruned;
}
