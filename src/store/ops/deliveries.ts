import { type Queryable, sql } from '../db/tx.ts';
import { type DeliveryWithLog, findDeliveryWithLog } from '../deliveries/reads.ts';
import { findOpsSubscription, type OpsSubscription } from './webhooks.ts';

const DELIVERY_OWNER = sql(
  'ops_delivery_owner',
  `SELECT w.account_id, w.id AS webhook_id FROM delivery d JOIN webhook_subscription w ON w.pk = d.subscription_pk WHERE d.id = $1`,
);

/** The account and subscription of a delivery; null when it is unknown. Takes no lock. */
export async function locateDelivery(
  db: Queryable,
  id: string,
): Promise<{ accountId: bigint; webhookId: string } | null> {
  const [owner] = await db.query<{ accountId: bigint; webhookId: string }>(DELIVERY_OWNER, [id]);
  return owner ?? null;
}

/** One delivery with its log, its subscription and the subject of its event. */
export interface OpsDeliveryWithLog {
  delivery: DeliveryWithLog;
  subscription: OpsSubscription;
  isTest: boolean;
  eventCreatedAt: Date;
  /** The alert that fired the event, if any. */
  alertId: string | null;
  /** An attempt is in flight. */
  isInFlight: boolean;
}

const LOCATE_DELIVERY = sql(
  'ops_locate_delivery',
  `SELECT d.subscription_pk, w.id AS webhook_id, d.is_test, e.created_at AS event_created_at,
     CASE WHEN starts_with(e.dedupe_key, 'alert:') THEN split_part(e.dedupe_key, ':', 2) END
       AS alert_id,
     coalesce(d.locked_until > clock_timestamp(), false) AS is_in_flight
   FROM delivery d JOIN event e ON e.pk = d.event_pk JOIN webhook_subscription w ON w.pk = d.subscription_pk WHERE d.id = $1`,
);

/** A delivery of any account by its public id, or null. */
export async function findOpsDelivery(db: Queryable, id: string): Promise<OpsDeliveryWithLog | null> {
  type Row = Omit<OpsDeliveryWithLog, 'delivery' | 'subscription'> & { subscriptionPk: bigint; webhookId: string };
  const [row] = await db.query<Row>(LOCATE_DELIVERY, [id]);
  if (!row) return null;
  const { subscriptionPk, webhookId, ...found } = row;
  const delivery = await findDeliveryWithLog(db, subscriptionPk, id);
  const subscription = await findOpsSubscription(db, webhookId);
  return delivery && subscription ? { ...found, delivery, subscription } : null;
}
