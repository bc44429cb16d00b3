import { type Queryable, sql, type Tx } from '../db/tx.ts';

/*
 * Ordered deliveries. Within a key, only the first pending delivery has a time; the others have `infinity`, so that claims, gauges and
 * timers see one due row per key at most. Each transaction that adds, finishes or repeats deliveries of a key holds the lock of the
 * subscription from its first such statement to its commit: numbers of deliveries commit in their order, and no two transactions choose
 * the next delivery of a key at once. The lock is advisory, because claims and deletions lock the row of the subscription before rows
 * that emitters of events have locked already.
 */

/** A key of order of one subscription. */
export interface OrderedKey {
  subscriptionPk: bigint;
  orderKey: string;
}

/** Advisory locks of ordered subscriptions ("ordr" in ASCII). */
const ORDER_LOCK = 0x6f_72_64_72;

const LOCK_ORDER = sql(
  'lock_order',
  `SELECT pg_advisory_xact_lock(${ORDER_LOCK}, key) FROM (
     SELECT DISTINCT (pk % 2147483647)::int AS key FROM unnest($1::bigint[]) AS s (pk) ORDER BY 1) k`,
);

/** Locks the order of these subscriptions until the end of the transaction, in one order, so that two transactions cannot deadlock. */
export async function lockOrder(tx: Tx, subscriptionPks: readonly bigint[]): Promise<void> {
  await tx.query(LOCK_ORDER, [subscriptionPks]);
}

/**
 * A delivery may be in flight without a time: a pause cancelled it, and perhaps a recovery made it pending again. The key waits for its
 * outcome, also when another delivery is the first one.
 */
const START_NEXT = sql(
  'start_next_of_keys',
  `UPDATE delivery d SET next_attempt_at = clock_timestamp()
   FROM (SELECT DISTINCT * FROM unnest($1::bigint[], $2::text[]) AS k (subscription_pk, order_key)) k
   CROSS JOIN LATERAL (
     SELECT pk, next_attempt_at FROM delivery
     WHERE subscription_pk = k.subscription_pk AND order_key = k.order_key AND status = 'pending'
     ORDER BY next_attempt_at, pk LIMIT 1) first
   WHERE d.pk = first.pk AND first.next_attempt_at = 'infinity' AND NOT EXISTS (
     SELECT FROM delivery c WHERE c.subscription_pk = k.subscription_pk AND c.order_key = k.order_key AND c.status = 'cancelled'
       AND c.locked_until IS NOT NULL AND c.locked_until >= clock_timestamp())
     AND NOT EXISTS (SELECT FROM delivery p WHERE p.subscription_pk = k.subscription_pk AND p.order_key = k.order_key
       AND p.status = 'pending' AND p.locked_until IS NOT NULL AND p.locked_until >= clock_timestamp() AND p.pk <> first.pk)
   RETURNING d.subscription_pk`,
);

/**
 * Makes the first pending delivery of each of these keys due, unless one of the key has its time already. Call it last, under the lock of
 * `lockOrder`. Returns the subscriptions that got a due delivery.
 */
export async function startNext(tx: Tx, keys: readonly OrderedKey[]): Promise<bigint[]> {
  if (keys.length === 0) return [];
  const values = [keys.map(({ subscriptionPk }) => subscriptionPk), keys.map(({ orderKey }) => orderKey)];
  const rows = await tx.query<{ subscriptionPk: bigint }>(START_NEXT, values);
  return [...new Set(rows.map(({ subscriptionPk }) => subscriptionPk))];
}

/** Keys per round; a further round follows with the next call. */
const MAX_STALLED = 1_000;

/** Steps from key to key through the index of waiting deliveries. */
const STALLED_KEYS = sql(
  'stalled_order_keys',
  `WITH RECURSIVE waiting AS (
     (SELECT subscription_pk, order_key FROM delivery
      WHERE status = 'pending' AND order_key IS NOT NULL AND next_attempt_at = 'infinity' ORDER BY 1, 2 LIMIT 1)
     UNION ALL
     SELECT n.* FROM waiting w CROSS JOIN LATERAL (
       SELECT d.subscription_pk, d.order_key FROM delivery d
       WHERE d.status = 'pending' AND d.order_key IS NOT NULL AND d.next_attempt_at = 'infinity'
         AND (d.subscription_pk, d.order_key) > (w.subscription_pk, w.order_key) ORDER BY 1, 2 LIMIT 1) n)
   SELECT subscription_pk, order_key FROM waiting w
   WHERE NOT EXISTS (SELECT FROM delivery d WHERE d.subscription_pk = w.subscription_pk AND d.order_key = w.order_key
     AND d.status = 'pending' AND d.next_attempt_at < 'infinity') LIMIT ${MAX_STALLED}`,
);

/**
 * Starts keys whose deliveries all wait: the cancelled attempt that they waited for ended with its process, or a process of an older
 * release finished their first delivery. Returns the subscriptions that got a due delivery.
 */
export async function startStalledKeys(
  db: Queryable & { transaction<T>(work: (tx: Tx) => Promise<T>): Promise<T> },
): Promise<bigint[]> {
  const stalled = await db.query<OrderedKey>(STALLED_KEYS);
  if (stalled.length === 0) return [];
  return db.transaction(async (tx) => {
    await lockOrder(
      tx,
      stalled.map(({ subscriptionPk }) => subscriptionPk),
    );
    return startNext(tx, stalled);
  });
}

const REPORT_SKIPPED = sql(
  'report_skipped',
  `UPDATE delivery d SET is_skip_unreported = NULL FROM event e
   WHERE e.id = ANY ($2::text[]) AND d.event_pk = e.pk AND d.subscription_pk = $1 AND d.is_skip_unreported`,
);

/** Records that a delivered request named these skipped events. */
export async function reportSkipped(tx: Tx, subscriptionPk: bigint, eventIds: readonly string[]): Promise<void> {
  if (eventIds.length > 0) await tx.query(REPORT_SKIPPED, [subscriptionPk, eventIds]);
}

/** The number of skipped events that one request names. */
const MAX_REPORTED = 20;

/** SQL of the ids of the events of the key of delivery `d` that were skipped and that no delivered request named; NULL without order. */
export const SKIPPED_BEFORE = `CASE WHEN d.order_key IS NOT NULL THEN ARRAY(
  SELECT x.id FROM (
    SELECT s.pk, s.event_pk FROM delivery s
    WHERE s.subscription_pk = d.subscription_pk AND s.order_key = d.order_key AND s.is_skip_unreported
    ORDER BY s.pk LIMIT ${MAX_REPORTED}) s JOIN event x ON x.pk = s.event_pk ORDER BY s.pk) END`;

/** SQL of the time of a delivery that starts to wait for its turn, or is due at once without order. */
export const turnOf = (key: string) =>
  `CASE WHEN ${key} IS NULL THEN clock_timestamp() ELSE timestamptz 'infinity' END`;
