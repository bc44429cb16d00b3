import { newId } from '../../domain/values/ids.ts';
import { DELIVERY_STATUSES, type DeliveryStatus } from '../../domain/webhooks/event.ts';
import { passesFilter } from '../../domain/webhooks/filter.ts';
import { orderKeyOf } from '../../domain/webhooks/order.ts';
import { type Database, sql, sqlPlannedPerCall, type Tx } from '../db/tx.ts';
import { lockOrder, type OrderedKey, startNext, turnOf } from './order.ts';
import { type Delivery, findDelivery } from './reads.ts';
import { lockSubscription, type Subscription } from './subscriptions.ts';

/** Why a delivery is not sent again. */
type ResendRefusal = { outcome: 'webhook_not_found' } | { outcome: 'paused' };

type Retry =
  | ResendRefusal
  | { outcome: 'delivery_not_found' }
  /** It is due, or its attempt is in flight. */
  | { outcome: 'pending' }
  | { outcome: 'retried'; subscriptionPk: bigint; delivery: Delivery };

/**
 * Keeps attempt count and schedule: one attempt at once, or at the turn of an ordered delivery, then the rest of the schedule. Keeps a
 * lease too: a cancelled attempt in flight ends first. Rows are locked in the order of their keys.
 */
const RETRY_DELIVERIES = sql(
  'retry_deliveries',
  `UPDATE delivery SET status = 'pending', next_attempt_at = ${turnOf('order_key')}, is_skip_unreported = NULL WHERE pk IN (
     SELECT pk FROM delivery WHERE pk = ANY ($2::bigint[]) AND subscription_pk = $1 AND status = ANY ($3::text[])
     ORDER BY pk FOR UPDATE) RETURNING order_key`,
);

/** Makes these deliveries of a locked subscription pending again when they have one of these statuses; returns their number. */
async function makePending(
  tx: Tx,
  subscriptionPk: bigint,
  pks: readonly bigint[],
  statuses: readonly DeliveryStatus[],
): Promise<number> {
  await lockOrder(tx, [subscriptionPk]);
  const updated = await tx.query<{ orderKey: string | null }>(RETRY_DELIVERIES, [subscriptionPk, pks, statuses]);
  await startNext(tx, keysOf(subscriptionPk, updated));
  return updated.length;
}

const FINISHED = DELIVERY_STATUSES.filter((status) => status !== 'pending');

/** Makes a finished delivery due again, regardless of its status. After a crash behind the commit, the timer finds the due row. */
export async function retryDelivery(
  tx: Tx,
  accountId: bigint,
  subscriptionId: string,
  deliveryId: string,
): Promise<Retry> {
  // The deliverer also locks the subscription before the delivery; the same order here avoids a deadlock.
  const subscription = await lockSubscription(tx, accountId, subscriptionId, 'change');
  if (!subscription) return { outcome: 'webhook_not_found' };
  const found = await findDelivery(tx, subscription.pk, deliveryId);
  if (!found) return { outcome: 'delivery_not_found' };
  if (subscription.status === 'paused') return { outcome: 'paused' };
  const retried = await makePending(tx, subscription.pk, [found.pk], FINISHED);
  const delivery = await findDelivery(tx, subscription.pk, deliveryId);
  // Retention may have deleted it in between.
  if (!delivery) return { outcome: 'delivery_not_found' };
  return retried > 0 ? { outcome: 'retried', subscriptionPk: subscription.pk, delivery } : { outcome: 'pending' };
}

const LOCK_ACTIVE = sql(
  'lock_active_subscription',
  `SELECT pk FROM webhook_subscription WHERE pk = $1 AND status = 'active' AND deleted_at IS NULL FOR NO KEY UPDATE`,
);

/** Makes failed and cancelled deliveries of an active subscription due again, as `retryDelivery` does; returns their number. */
export async function retryDeliveries(tx: Tx, subscriptionPk: bigint, pks: readonly bigint[]): Promise<number> {
  const [subscription] = await tx.query(LOCK_ACTIVE, [subscriptionPk]);
  return subscription ? makePending(tx, subscriptionPk, pks, ['failed', 'cancelled']) : 0;
}

type Recovery = ResendRefusal | { outcome: 'recovered'; recovered: number };

/** Events per transaction. Claims of the subscription wait for it, some tens of milliseconds. */
const RECOVERY_BATCH = 1_000;

/** The start of the walk. Later events of the account have higher keys, because no transaction lasts an hour. */
const RECOVERY_FLOOR = sqlPlannedPerCall(
  'recovery_floor',
  `SELECT pk FROM event WHERE account_id = $1 AND created_at < $2::timestamptz - interval '1 hour'
   ORDER BY pk DESC LIMIT 1`,
);

async function recoveryFloor(tx: Tx, accountId: bigint, since: Date): Promise<bigint> {
  const [floor] = await tx.query<{ pk: bigint }>(RECOVERY_FLOOR, [accountId, since.toISOString()]);
  return floor?.pk ?? 0n;
}

/** Serializes recoveries of one account, so that an event without a target goes to one subscription only. */
const LOCK_ACCOUNT = sql('lock_account_for_recovery', 'SELECT id FROM account WHERE id = $1 FOR NO KEY UPDATE');

/**
 * Selects the missed events of a page: of a type that the subscription lists, no test event, not of an alert that names another
 * existing webhook, and not of another alert whose event (of a firing or of its end) an existing webhook got. An event of an older
 * process has no target: its alert states it. Planned per call, because one account may own most events or almost none.
 */
const MISSED_EVENTS = sqlPlannedPerCall(
  'missed_events',
  `WITH page AS MATERIALIZED (
     SELECT pk, type, created_at, dedupe_key, target_pk FROM event WHERE account_id = $2 AND pk > $3 ORDER BY pk LIMIT ${RECOVERY_BATCH}),
   missed AS (
     SELECT p.pk FROM page p
     LEFT JOIN delivery d ON d.event_pk = p.pk AND d.subscription_pk = $1
     LEFT JOIN alert a ON p.type = 'price_alert' AND a.id = substr(p.dedupe_key, length('alert:') + 1)
     LEFT JOIN webhook_subscription t ON t.pk = coalesce(p.target_pk, a.webhook_pk) AND t.deleted_at IS NULL
     WHERE p.created_at >= $4 AND p.type = ANY ($5::text[])
       AND (d.pk IS NULL OR d.status IN ('failed', 'cancelled') AND d.delivered_at IS NULL)
       AND (t.pk IS NULL OR t.pk = $1)
       AND NOT EXISTS (SELECT FROM delivery s WHERE s.event_pk = p.pk AND s.is_test)
       AND (p.type NOT IN ('price_alert', 'alert_expired') OR NOT EXISTS (
         SELECT FROM delivery o JOIN webhook_subscription w ON w.pk = o.subscription_pk
         WHERE o.event_pk = p.pk AND o.subscription_pk <> $1
           AND (o.status IN ('pending', 'delivered') OR w.deleted_at IS NULL))))
   SELECT (SELECT max(pk) FROM page) AS last_pk, (SELECT count(*)::int FROM page) AS scanned,
     ARRAY(SELECT pk FROM missed ORDER BY pk) AS pks`,
);

/** A filter decides once: a delivery that exists passed it. */
const BODIES = sql(
  'bodies_of_events',
  `SELECT e.pk, e.body, EXISTS (SELECT FROM delivery d WHERE d.event_pk = e.pk AND d.subscription_pk = $2) AS is_made
   FROM event e WHERE e.pk = ANY ($1::bigint[]) ORDER BY e.pk`,
);

/** The first recovery inserts the row, a second one finds it pending and skips it. An existing row starts a new schedule. */
const RECOVER_EVENTS = sql(
  'recover_events',
  `INSERT INTO delivery (id, event_pk, subscription_pk, order_key, next_attempt_at)
   SELECT n.id, e.pk, $1, n.order_key, ${turnOf('n.order_key')}
   FROM unnest($2::text[], $3::bigint[], $4::text[]) AS n (id, event_pk, order_key) JOIN event e ON e.pk = n.event_pk
   ORDER BY e.pk FOR KEY SHARE OF e
   ON CONFLICT (event_pk, subscription_pk) DO UPDATE
     SET status = 'pending', next_attempt_at = ${turnOf('delivery.order_key')}, schedule_from = delivery.attempt_count,
       is_skip_unreported = NULL
     WHERE delivery.status IN ('failed', 'cancelled') AND delivery.delivered_at IS NULL
   RETURNING order_key`,
);

interface RecoveryTarget {
  accountId: bigint;
  subscriptionId: string;
  since: Date;
}

interface RecoveryRequest extends RecoveryTarget {
  db: Database;
  /** Called after each commit that made rows due. */
  onCommit(subscriptionPk: bigint): void;
}

/**
 * Makes missed events of a subscription since a moment due again, in transactions of bounded size, oldest first. Safe to repeat and to
 * run concurrently: pending and delivered rows stay unchanged. A crash leaves complete batches, which are due; a repetition does the rest.
 */
export async function recoverDeliveries(request: RecoveryRequest): Promise<Recovery> {
  const { db, onCommit } = request;
  let recovered = 0;
  for (let after: bigint | undefined; ; ) {
    const from = after;
    const batch = await db.transaction((tx) => recoverBatch(tx, request, from));
    if (batch.outcome !== 'batch') return batch;
    recovered += batch.recovered;
    if (batch.recovered > 0) onCommit(batch.subscriptionPk);
    if (batch.next === undefined) return { outcome: 'recovered', recovered };
    after = batch.next;
  }
}

/** The result of one transaction; `next` is the key after which the next one starts, absent at the end. */
type RecoveredBatch = ResendRefusal | { outcome: 'batch'; subscriptionPk: bigint; recovered: number; next?: bigint };

/** One transaction of a recovery: of the events after the key `after`, or of the first ones. */
export async function recoverBatch(tx: Tx, target: RecoveryTarget, after?: bigint): Promise<RecoveredBatch> {
  const { accountId, subscriptionId, since } = target;
  await tx.query(LOCK_ACCOUNT, [accountId]);
  const subscription = await lockSubscription(tx, accountId, subscriptionId, 'change');
  if (!subscription) return { outcome: 'webhook_not_found' };
  if (subscription.status === 'paused') return { outcome: 'paused' };
  const { pk, events } = subscription;
  const [page] = await tx.query<{ lastPk: bigint | null; scanned: number; pks: bigint[] }>(MISSED_EVENTS, [
    pk,
    accountId,
    after ?? (await recoveryFloor(tx, accountId, since)),
    since.toISOString(),
    events,
  ]);
  const missed = page?.pks ?? [];
  const made = await recoverEvents(tx, subscription, missed);
  const isLast = page === undefined || page.lastPk === null || page.scanned < RECOVERY_BATCH;
  return {
    outcome: 'batch',
    subscriptionPk: pk,
    recovered: made.length,
    ...(!isLast && page.lastPk !== null && { next: page.lastPk }),
  };
}

/** Makes these events due for the subscription, except new deliveries that its filter excludes; returns a row per event. */
async function recoverEvents(
  tx: Tx,
  { pk, orderBy, filter }: Subscription,
  missed: readonly bigint[],
): Promise<{ orderKey: string | null }[]> {
  if (missed.length === 0) return [];
  const plain = missed.map((eventPk) => ({ eventPk, orderKey: null as string | null }));
  const wanted = orderBy === null && filter === null ? plain : await withOptions(tx, { pk, orderBy, filter }, missed);
  // Also without `orderBy`: earlier deliveries keep the key that they were made with.
  await lockOrder(tx, [pk]);
  const made = await tx.query<{ orderKey: string | null }>(RECOVER_EVENTS, [
    pk,
    wanted.map(() => newId('dlv')),
    wanted.map(({ eventPk }) => eventPk),
    wanted.map((event) => event.orderKey),
  ]);
  await startNext(tx, keysOf(pk, made));
  return made;
}

async function withOptions(
  tx: Tx,
  { pk, orderBy, filter }: Pick<Subscription, 'pk' | 'orderBy' | 'filter'>,
  missed: readonly bigint[],
): Promise<{ eventPk: bigint; orderKey: string | null }[]> {
  const events = await tx.query<{ pk: bigint; body: string; isMade: boolean }>(BODIES, [missed, pk]);
  return events
    .filter(({ isMade, body }) => isMade || filter === null || passesFilter(filter, body))
    .map((event) => ({ eventPk: event.pk, orderKey: orderKeyOf({ orderBy, body: event.body }) }));
}

function keysOf(subscriptionPk: bigint, rows: readonly { orderKey: string | null }[]): OrderedKey[] {
  return rows.flatMap(({ orderKey }) => (orderKey === null ? [] : [{ subscriptionPk, orderKey }]));
}
