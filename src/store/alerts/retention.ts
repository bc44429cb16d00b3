import { type Database, type Queryable, sql } from '../db/tx.ts';

/** Alerts per statement. */
const BATCH = 1_000;
/** Active alerts have a quota and paused ones a limit; finished ones stay for their owner, whose rate of requests alone limits them. */
const MAX_FINISHED_PER_ACCOUNT = 100_000;

const PRUNE = sql(
  'prune_finished_alerts',
  `WITH surplus AS MATERIALIZED (
     SELECT f.pk FROM account a CROSS JOIN LATERAL (
       SELECT pk FROM alert WHERE account_id = a.id AND status IN ('triggered', 'expired') ORDER BY pk DESC OFFSET $1) f LIMIT ${BATCH})
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

interface FiringBatch {
  /** The last firing of the page, in the order of the index. Null without one. */
  lastAt: string | null;
  lastAlert: bigint | null;
  lastSubject: bigint | null;
  lastN: bigint | null;
  pruned: number;
}

/**
 * A page of old firings by their age. The last firing of each alert and outcome stays, because it begins the cool-down and shows that an
 * alert without a repetition has fired. An evaluation may insert a later firing meanwhile, but none deletes one.
 */
const PRUNE_FIRINGS = sql(
  'prune_alert_firings',
  `WITH page AS MATERIALIZED (
     SELECT at, alert_pk, subject, n FROM alert_firing
     WHERE at < $1::timestamptz AND (at, alert_pk, subject, n) > ($2::timestamptz, $3::bigint, $4::bigint, $5::bigint)
     ORDER BY at, alert_pk, subject, n LIMIT ${BATCH}),
   pruned AS (
     DELETE FROM alert_firing f USING page p
     WHERE f.alert_pk = p.alert_pk AND f.subject = p.subject AND f.n = p.n AND EXISTS (
       SELECT FROM alert_firing l WHERE l.alert_pk = p.alert_pk AND l.subject = p.subject AND l.n > p.n)
     RETURNING 1)
   SELECT l.at::text AS last_at, l.alert_pk AS last_alert, l.subject AS last_subject, l.n AS last_n,
     (SELECT count(*)::int FROM pruned) AS pruned
   FROM (SELECT) one LEFT JOIN (SELECT * FROM page ORDER BY at DESC, alert_pk DESC, subject DESC, n DESC LIMIT 1) l ON true`,
);

/**
 * Deletes firings before this time, epoch milliseconds, except the last one of each alert and outcome. Each page is a transaction of its
 * own. Returns the number of deleted firings.
 */
export async function pruneFirings(
  db: Pick<Database, 'query'>,
  firedBeforeMs: number,
  signal?: AbortSignal,
): Promise<number> {
  let pruned = 0;
  let after: readonly unknown[] = ['-infinity', 0n, 0n, 0n];
  while (!signal?.aborted) {
    const [batch] = await db.query<FiringBatch>(PRUNE_FIRINGS, [new Date(firedBeforeMs).toISOString(), ...after]);
    pruned += batch?.pruned ?? 0;
    if (!batch || batch.lastAt === null) break;
    after = [batch.lastAt, batch.lastAlert, batch.lastSubject, batch.lastN];
  }
  return pruned;
}
