import { sql, type Tx } from '../db/tx.ts';
import { insertDeliveries, insertEvents, type NewEvent } from '../deliveries/events.ts';

/** An event of an alert, for the webhook that the alert names or for the default one. */
export interface AlertEvent extends NewEvent {
  /** The subscription that the alert names. */
  webhookPk: bigint | null;
}

export interface MadeDelivery {
  deliveryId: string;
  webhookId: string;
}

/** Selects the active subscription of each event: its own, or the account's oldest that lists its type. */
const SUBSCRIPTIONS = sql(
  'alert_subscriptions',
  `SELECT f.event_id, w.pk AS subscription_pk, w.id AS webhook_id
   FROM unnest($1::text[], $2::bigint[], $3::bigint[], $4::text[]) AS f (event_id, account_id, webhook_pk, type)
   CROSS JOIN LATERAL (
     SELECT pk, id FROM webhook_subscription w
     WHERE w.account_id = f.account_id AND w.status = 'active' AND w.deleted_at IS NULL AND f.type = ANY (w.events)
       AND (f.webhook_pk IS NULL OR w.pk = f.webhook_pk)
     ORDER BY w.pk LIMIT 1) w`,
);

interface SubscriptionRow {
  eventId: string;
  subscriptionPk: bigint;
  webhookId: string;
}

/** Inserts events and a delivery each, as far as the account has a webhook for it. Returns the deliveries by event, and their webhooks. */
export async function emitAlertEvents(
  tx: Tx,
  events: readonly AlertEvent[],
): Promise<{ deliveryOf: Map<string, MadeDelivery>; subscriptionPks: bigint[] }> {
  const deliveryOf = new Map<string, MadeDelivery>();
  if (events.length === 0) return { deliveryOf, subscriptionPks: [] };
  const eventPks = await insertEvents(
    tx,
    events.map(({ webhookPk, ...event }) => ({ ...event, ...(webhookPk !== null && { targetPk: webhookPk }) })),
  );
  const subscriptions = await tx.query<SubscriptionRow>(SUBSCRIPTIONS, [
    events.map(({ id }) => id),
    events.map(({ accountId }) => accountId),
    events.map(({ webhookPk }) => webhookPk),
    events.map(({ type }) => type),
  ]);
  const deliveries = subscriptions.flatMap(({ eventId, subscriptionPk }) => {
    const eventPk = eventPks.get(eventId);
    return eventPk === undefined ? [] : [{ eventPk, subscriptionPk }];
  });
  const made = new Map((await insertDeliveries(tx, deliveries)).map(({ id, eventPk }) => [eventPk, id]));
  for (const { eventId, webhookId } of subscriptions) {
    const deliveryId = made.get(eventPks.get(eventId) ?? 0n);
    if (deliveryId !== undefined) deliveryOf.set(eventId, { deliveryId, webhookId });
  }
  return { deliveryOf, subscriptionPks: [...new Set(deliveries.map(({ subscriptionPk }) => subscriptionPk))] };
}
