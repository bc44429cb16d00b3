import { type Database, type Statement, sql, type Tx } from '../db/tx.ts';

/** Deliveries or events per transaction. */
const BATCH = 1_000;

/**
 * Events of one account, whose rate of requests alone limits how many it causes: about 1.5 GB with their deliveries. Test events are for
 * looking at, not for keeping.
 */
const MAX_EVENTS_PER_ACCOUNT = 1_000_000;
const MAX_TESTS_PER_ACCOUNT = 1_000;

interface EventRetention {
  db: Database;
  /** Delete attempts that began before this time, epoch milliseconds, except those of pending deliveries. */
  attemptsBeforeMs: number;
  /** Delete events created before this time, epoch milliseconds, with their deliveries, unless one is pending. */
  eventsBeforeMs: number;
  /** Delete test events created before this time, epoch milliseconds, in the same way. */
  testsBeforeMs: number;
  /** Delete the oldest events of an account beyond this number, in the same way. */
  eventsPerAccount?: number;
  testsPerAccount?: number;
  /** Starts no further batch after its abort. */
  signal?: AbortSignal;
}

interface PrunedEvents {
  attemptsPruned: number;
  deliveriesPruned: number;
  eventsPruned: number;
}

/**
 * Deletes attempts and events past their retention, oldest first, in transactions of bounded size. They skip locked rows, which the
 * next run deletes. A deleted event is never emitted again: an alert fires once by its own status, and the wallet tables keep the
 * identities of emitted transactions.
 */
export async function pruneEvents(options: EventRetention): Promise<PrunedEvents> {
  const { db, signal, eventsPerAccount = MAX_EVENTS_PER_ACCOUNT, testsPerAccount = MAX_TESTS_PER_ACCOUNT } = options;
  const pruned: PrunedEvents = { attemptsPruned: 0, deliveriesPruned: 0, eventsPruned: 0 };
  const eachBatch = async (prune: (tx: Tx, after: bigint) => Promise<bigint | undefined>) => {
    let after: bigint | undefined = 0n;
    while (after !== undefined && !signal?.aborted) {
      const from: bigint = after;
      after = await db.transaction((tx) => prune(tx, from));
    }
  };
  await eachBatch(async (tx, after) => {
    const [batch] = await tx.query<AttemptBatch>(PRUNE_ATTEMPTS, [after, iso(options.attemptsBeforeMs)]);
    pruned.attemptsPruned += batch?.pruned ?? 0;
    return batch?.hasOld ? (batch.lastPk ?? undefined) : undefined;
  });
  for (const [page, limit] of [
    [OLD_EVENTS, iso(options.eventsBeforeMs)],
    [OLD_TESTS, iso(options.testsBeforeMs)],
    [SURPLUS_TESTS, testsPerAccount],
    [SURPLUS_EVENTS, eventsPerAccount],
  ] as const) {
    await eachBatch(async (tx, after) => {
      const { last, deliveries, events } = await pruneEventBatch(tx, page, [after, limit]);
      pruned.deliveriesPruned += deliveries;
      pruned.eventsPruned += events;
      return last;
    });
  }
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

/** Test events have no dedupe key. */
const OLD_TESTS = sql(
  'old_test_events',
  pageOf(`SELECT pk FROM event WHERE dedupe_key IS NULL AND created_at < $2 AND pk > $1`),
);

const SURPLUS_TESTS = sql('surplus_test_events', pageOf(surplus('dedupe_key IS NULL')));
const SURPLUS_EVENTS = sql('surplus_events', pageOf(surplus('true')));

/** SQL of the events of each account behind its newest $2, after the key $1. */
function surplus(condition: string): string {
  return `SELECT e.pk FROM account a CROSS JOIN LATERAL (
     SELECT pk FROM event WHERE account_id = a.id AND ${condition} ORDER BY pk DESC OFFSET $2) e WHERE e.pk > $1`;
}

/** SQL of the first page of these events. */
function pageOf(events: string): string {
  return `WITH page AS MATERIALIZED (${events} ORDER BY pk LIMIT ${BATCH})
   SELECT max(pk) AS last_pk, coalesce(array_agg(pk), '{}') AS pks FROM page`;
}

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

/** `last` is the key after which the next page starts; undefined when the page has no event to delete. */
async function pruneEventBatch(
  tx: Tx,
  pageOfEvents: Statement,
  values: readonly unknown[],
): Promise<{ last: bigint | undefined; deliveries: number; events: number }> {
  const [page] = await tx.query<EventBatch>(pageOfEvents, values);
  if (!page || page.pks.length === 0) return { last: undefined, deliveries: 0, events: 0 };
  const events = (await tx.query<{ pk: bigint }>(LOCK_EVENTS, [page.pks])).map(({ pk }) => pk);
  const locked = (await tx.query<{ pk: bigint }>(LOCK_DELIVERIES, [events])).map(({ pk }) => pk);
  const deliveries = await tx.query(DELETE_DELIVERIES, [events, locked]);
  const deleted = await tx.query(DELETE_EVENTS, [events]);
  return { last: page.lastPk ?? undefined, deliveries: deliveries.length, events: deleted.length };
}

const PRUNE_SUBSCRIPTIONS = sql(
  'prune_subscriptions',
  `WITH gone AS MATERIALIZED (
     SELECT w.pk FROM webhook_subscription w WHERE w.deleted_at < $1::timestamptz
       AND NOT EXISTS (SELECT FROM delivery d WHERE d.subscription_pk = w.pk)
       AND NOT EXISTS (SELECT FROM alert a WHERE a.webhook_pk = w.pk)
     ORDER BY w.pk LIMIT ${BATCH} FOR UPDATE OF w SKIP LOCKED)
   DELETE FROM webhook_subscription w USING gone WHERE w.pk = gone.pk RETURNING 1`,
);

/** Deletes the rows of webhooks that were deleted before this time, epoch milliseconds, and that no delivery and no alert names. */
export async function pruneSubscriptions(db: Database, deletedBeforeMs: number, signal?: AbortSignal): Promise<number> {
  let pruned = 0;
  while (!signal?.aborted) {
    const batch = (await db.transaction((tx) => tx.query(PRUNE_SUBSCRIPTIONS, [iso(deletedBeforeMs)]))).length;
    pruned += batch;
    if (batch < BATCH) break;
  }
  return pruned;
}
