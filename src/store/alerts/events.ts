import { sql, type Tx } from '../db/tx.ts';
import { insertEvents, type NewEvent } from '../deliveries/events.ts';

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

/** The delivery that a new event of an alert needs. */
export interface AlertDelivery extends SubscriptionRow {
  eventPk: bigint;
}

/** Inserts events. Returns the delivery of each new one, as far as the account has a webhook for it; `insertDeliveries` takes them. */
export async function insertAlertEvents(tx: Tx, events: readonly AlertEvent[]): Promise<AlertDelivery[]> {
  if (events.length === 0) return [];
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
  return subscriptions.flatMap((subscription) => {
    const eventPk = eventPks.get(subscription.eventId);
    return eventPk === undefined ? [] : [{ ...subscription, eventPk }];
  });
}
