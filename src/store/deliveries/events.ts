import { newId } from '../../domain/values/ids.ts';
import type { DeliveryStatus, EventType, SubscribableEvent } from '../../domain/webhooks/event.ts';
import { type EventFilter, passesFilter } from '../../domain/webhooks/filter.ts';
import { type OrderBy, orderKeyOf } from '../../domain/webhooks/order.ts';
import { sql, type Tx } from '../db/tx.ts';
import { lockOrder, startNext, turnOf } from './order.ts';
import { lockSubscription } from './subscriptions.ts';

/** An event with its final body: these bytes are stored, signed and sent on every attempt. */
export interface NewEvent {
  /** Derived from the occurrence: a restored database emits the same occurrence again with the same id. */
  id: string;
  accountId: bigint;
  type: SubscribableEvent;
  body: string;
  /** Unique over all events, so that an occurrence is emitted once. */
  dedupeKey: string;
  /** The subscription that its alert names. */
  targetPk?: bigint;
}

const INSERT_EVENTS = sql(
  'insert_events',
  `INSERT INTO event (id, account_id, type, body, dedupe_key, target_pk)
   SELECT * FROM unnest($1::text[], $2::bigint[], $3::text[], $4::text[], $5::text[], $6::bigint[])
   ON CONFLICT (dedupe_key) DO NOTHING RETURNING pk, id`,
);

/** Inserts events with a new dedupe key; returns the internal key of each inserted event by its id. */
export async function insertEvents(tx: Tx, events: readonly NewEvent[]): Promise<Map<string, bigint>> {
  if (events.length === 0) return new Map();
  const rows = await tx.query<{ pk: bigint; id: string }>(INSERT_EVENTS, [
    events.map((event) => event.id),
    events.map((event) => event.accountId),
    events.map((event) => event.type),
    events.map((event) => event.body),
    events.map((event) => event.dedupeKey),
    events.map((event) => event.targetPk ?? null),
  ]);
  return new Map(rows.map((row) => [row.id, row.pk]));
}

const KNOWN_EVENTS = sql('known_events', 'SELECT dedupe_key FROM event WHERE dedupe_key = ANY ($1::text[])');

/** The dedupe keys of stored events among these. */
export async function knownEvents(tx: Tx, dedupeKeys: readonly string[]): Promise<Set<string>> {
  if (dedupeKeys.length === 0) return new Set();
  const rows = await tx.query<{ dedupeKey: string }>(KNOWN_EVENTS, [dedupeKeys]);
  return new Set(rows.map(({ dedupeKey }) => dedupeKey));
}

/** One round trip for webhooks without options, which are almost all. The others return with what their options need, in their order. */
const INSERT_PLAIN = sql(
  'insert_plain_deliveries',
  `WITH wanted AS MATERIALIZED (
     SELECT n.*, w.order_by, w.filter
     FROM unnest($1::text[], $2::bigint[], $3::bigint[]) WITH ORDINALITY AS n (id, event_pk, subscription_pk, place)
     JOIN webhook_subscription w ON w.pk = n.subscription_pk),
   inserted AS (
     INSERT INTO delivery (id, event_pk, subscription_pk)
     SELECT id, event_pk, subscription_pk FROM wanted WHERE order_by IS NULL AND filter IS NULL
     ON CONFLICT DO NOTHING RETURNING id, event_pk)
   SELECT id, event_pk, NULL::bigint AS subscription_pk, NULL AS order_by, NULL::jsonb AS filter, NULL AS body, NULL::bigint AS place
   FROM inserted
   UNION ALL
   SELECT w.id, w.event_pk, w.subscription_pk, w.order_by, w.filter, e.body, w.place FROM wanted w JOIN event e ON e.pk = w.event_pk
   WHERE w.order_by IS NOT NULL OR w.filter IS NOT NULL ORDER BY place`,
);

const INSERT_WITH_OPTIONS = sql(
  'insert_deliveries_with_options',
  `INSERT INTO delivery (id, event_pk, subscription_pk, order_key, next_attempt_at)
   SELECT id, event_pk, subscription_pk, order_key, ${turnOf('order_key')}
   FROM unnest($1::text[], $2::bigint[], $3::bigint[], $4::text[]) AS n (id, event_pk, subscription_pk, order_key)
   ON CONFLICT DO NOTHING RETURNING id, event_pk`,
);

/** An inserted delivery. */
interface MadeDelivery {
  id: string;
  eventPk: bigint;
}

/** A delivery to a webhook with options. */
interface WantedDelivery extends MadeDelivery {
  subscriptionPk: bigint;
  orderBy: OrderBy | null;
  filter: EventFilter | null;
  body: string;
}

/**
 * Inserts pending deliveries in the transaction of their events, due at once, or after the earlier ones of their key when the webhook is
 * ordered. An event that the filter of a webhook excludes makes none, now and later. Returns the new ones. Ordered deliveries commit in the order of this call, in their own order.
 */
export async function insertDeliveries(
  tx: Tx,
  deliveries: readonly { eventPk: bigint; subscriptionPk: bigint }[],
): Promise<MadeDelivery[]> {
  if (deliveries.length === 0) return [];
  const rows = await tx.query<MadeDelivery | WantedDelivery>(INSERT_PLAIN, [
    deliveries.map(() => newId('dlv')),
    deliveries.map((delivery) => delivery.eventPk),
    deliveries.map((delivery) => delivery.subscriptionPk),
  ]);
  const withOptions = rows.filter(hasOptions);
  if (withOptions.length === 0) return rows;
  return [...rows.filter((row) => !hasOptions(row)), ...(await insertWithOptions(tx, withOptions))];
}

function hasOptions(row: MadeDelivery | WantedDelivery): row is WantedDelivery {
  return 'body' in row && row.body !== null;
}

async function insertWithOptions(tx: Tx, wanted: readonly WantedDelivery[]): Promise<MadeDelivery[]> {
  const keyed = wanted
    .filter(({ filter, body }) => filter === null || passesFilter(filter, body))
    .map((row) => ({ ...row, orderKey: orderKeyOf(row) }));
  if (keyed.length === 0) return [];
  const ordered = keyed.flatMap(({ subscriptionPk, orderKey }) =>
    orderKey === null ? [] : [{ subscriptionPk, orderKey }],
  );
  if (ordered.length > 0) {
    // Before the insert draws its numbers.
    await lockOrder(
      tx,
      ordered.map(({ subscriptionPk }) => subscriptionPk),
    );
  }
  const made = await tx.query<MadeDelivery>(INSERT_WITH_OPTIONS, [
    keyed.map(({ id }) => id),
    keyed.map(({ eventPk }) => eventPk),
    keyed.map(({ subscriptionPk }) => subscriptionPk),
    keyed.map(({ orderKey }) => orderKey),
  ]);
  await startNext(tx, ordered);
  return made;
}

/** The owner's view of a delivery. */
export interface DeliveryItem {
  id: string;
  eventId: string;
  eventType: EventType;
  status: DeliveryStatus;
  attempts: number;
  createdAt: Date;
  /** Null while it waits for an earlier delivery of its key. */
  nextAttemptAt: Date | null;
}

const INSERT_TEST_EVENT = sql(
  'insert_test_event',
  `WITH inserted AS (INSERT INTO event (id, account_id, type, body) VALUES ($1, $2, $3, $4) RETURNING pk)
   INSERT INTO delivery (id, event_pk, subscription_pk, is_test) SELECT $5, pk, $6, true FROM inserted
   RETURNING status, attempt_count AS attempts, created_at, next_attempt_at`,
);

/**
 * Inserts a test event and its delivery, due at once, even while the subscription is paused. `makeBody` returns the final delivery
 * body of an event id. Null when the account has no such subscription.
 */
export async function createTestEvent(
  tx: Tx,
  accountId: bigint,
  subscriptionId: string,
  type: EventType,
  makeBody: (eventId: string) => string,
): Promise<{ subscriptionPk: bigint; delivery: DeliveryItem } | null> {
  const subscription = await lockSubscription(tx, accountId, subscriptionId, 'use');
  if (!subscription) return null;
  const eventId = newId('evt');
  const deliveryId = newId('dlv');
  const [row] = await tx.query<Pick<DeliveryItem, 'status' | 'attempts' | 'createdAt' | 'nextAttemptAt'>>(
    INSERT_TEST_EVENT,
    [eventId, accountId, type, makeBody(eventId), deliveryId, subscription.pk],
  );
  if (!row) return null;
  const delivery = { id: deliveryId, eventId, eventType: type, ...row };
  return { subscriptionPk: subscription.pk, delivery };
}
