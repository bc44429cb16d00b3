import { type Database, sql, type Tx } from '../db/tx.ts';

/** Deliveries or events per transaction. */
const BATCH = 1_000;

interface EventRetention {
  db: Database;
  /** Delete attempts that began before this time, epoch milliseconds, except those of pending deliveries. */
  attemptsBeforeMs: number;
  /** Delete events created before this time, epoch milliseconds, with their deliveries, unless one is pending. */
  eventsBeforeMs: number;
  /** Starts no further batch after its abort. */
  signal?: AbortSignal;
}

export interface PrunedEvents {
  attemptsPruned: number;
  deliveriesPruned: number;
  eventsPruned: number;
}

/**
 * Deletes attempts and events past their retention, oldest first, in transactions of bounded size. They skip locked rows, which the
 * next run deletes. A deleted event is never emitted again: an alert fires once by its own status, and the wallet tables keep the
 * identities of emitted transactions.
 */
export async function pruneEvents({ db, signal, ...before }: EventRetention): Promise<PrunedEvents> {
  const pruned: PrunedEvents = { attemptsPruned: 0, deliveriesPruned: 0, eventsPruned: 0 };
  const eachBatch = async (prune: (tx: Tx, after: bigint) => Promise<bigint | undefined>) => {
    let after: bigint | undefined = 0n;
    while (after !== undefined && !signal?.aborted) {
      const from: bigint = after;
      after = await db.transaction((tx) => prune(tx, from));
    }
  };
  await eachBatch(async (tx, after) => {
    const [batch] = await tx.query<AttemptBatch>(PRUNE_ATTEMPTS, [after, iso(before.attemptsBeforeMs)]);
    pruned.attemptsPruned += batch?.pruned ?? 0;
    return batch?.hasOld ? (batch.lastPk ?? undefined) : undefined;
  });
  await eachBatch(async (tx, after) => {
    const { last, deliveries, events } = await pruneEventBatch(tx, after, iso(before.eventsBeforeMs));
    pruned.deliveriesPruned += deliveries;
    pruned.eventsPruned += events;
    return last;
  });
  return pruned;
}

function iso(atMs: number): string {
  return new Date(atMs).toISOString();
}

/*
 * Keys grow with time, so a walk by key ends at the first page without an old row. Two concurrent transactions may order keys and
 * times differently; the next run deletes such rows.
 */

interface AttemptBatch {
  lastPk: bigint | null;
  hasOld: boolean;
  pruned: number;
}

/** Locks the delivery, so that it cannot become pending during the deletion of its attempts. */
const PRUNE_ATTEMPTS = sql(
  'prune_attempts',
  `WITH page AS MATERIALIZED (
     SELECT DISTINCT delivery_pk AS pk FROM delivery_attempt WHERE delivery_pk > $1 ORDER BY delivery_pk LIMIT ${BATCH}),
   old AS MATERIALIZED (
     SELECT d.pk FROM page JOIN delivery d USING (pk) WHERE d.created_at < $2 AND d.status <> 'pending'
     ORDER BY d.pk FOR NO KEY UPDATE OF d SKIP LOCKED),
   pruned AS (
     DELETE FROM delivery_attempt a USING old WHERE a.delivery_pk = old.pk AND a.started_at < $2 RETURNING 1)
   SELECT (SELECT max(pk) FROM page) AS last_pk, (SELECT count(*)::int FROM pruned) AS pruned,
     EXISTS (SELECT FROM page JOIN delivery d USING (pk) WHERE d.created_at < $2) AS has_old`,
);

interface EventBatch {
  lastPk: bigint | null;
  pks: bigint[];
}

const OLD_EVENTS = sql(
  'old_events',
  `WITH page AS MATERIALIZED (SELECT pk, created_at FROM event WHERE pk > $1 ORDER BY pk LIMIT ${BATCH})
   SELECT max(pk) AS last_pk, coalesce(array_agg(pk) FILTER (WHERE created_at < $2), '{}') AS pks FROM page`,
);

/** With this lock no transaction can insert a delivery of the event. */
const LOCK_EVENTS = sql(
  'lock_old_events',
  `SELECT pk FROM event WHERE pk = ANY ($1::bigint[]) ORDER BY pk FOR UPDATE SKIP LOCKED`,
);

const LOCK_DELIVERIES = sql(
  'lock_old_deliveries',
  `SELECT pk FROM delivery WHERE event_pk = ANY ($1::bigint[]) AND status <> 'pending' ORDER BY pk FOR UPDATE SKIP LOCKED`,
);

/** Deletes only when every delivery of the event is finished and locked here: a pending or just retried delivery keeps all. */
const DELETE_DELIVERIES = sql(
  'delete_old_deliveries',
  `WITH locked AS MATERIALIZED (SELECT unnest($2::bigint[]) AS pk),
   busy AS MATERIALIZED (
     SELECT DISTINCT d.event_pk FROM delivery d LEFT JOIN locked l ON l.pk = d.pk
     WHERE d.event_pk = ANY ($1::bigint[]) AND l.pk IS NULL)
   DELETE FROM delivery d USING locked l
   WHERE d.pk = l.pk AND NOT EXISTS (SELECT FROM busy b WHERE b.event_pk = d.event_pk) RETURNING d.pk`,
);

const DELETE_EVENTS = sql(
  'delete_old_events',
  `DELETE FROM event e WHERE e.pk = ANY ($1::bigint[])
     AND NOT EXISTS (SELECT FROM delivery d WHERE d.event_pk = e.pk) RETURNING e.pk`,
);

/** `last` is the key after which the next page starts; undefined when the page has no event older than `before`. */
async function pruneEventBatch(
  tx: Tx,
  after: bigint,
  before: string,
): Promise<{ last: bigint | undefined; deliveries: number; events: number }> {
  const [page] = await tx.query<EventBatch>(OLD_EVENTS, [after, before]);
  if (!page || page.pks.length === 0) return { last: undefined, deliveries: 0, events: 0 };
  const events = (await tx.query<{ pk: bigint }>(LOCK_EVENTS, [page.pks])).map(({ pk }) => pk);
  const locked = (await tx.query<{ pk: bigint }>(LOCK_DELIVERIES, [events])).map(({ pk }) => pk);
  const deliveries = await tx.query(DELETE_DELIVERIES, [events, locked]);
  const deleted = await tx.query(DELETE_EVENTS, [events]);
  return { last: page.lastPk ?? undefined, deliveries: deliveries.length, events: deleted.length };
}
