import { newId } from '../../domain/values/ids.ts';
import type { DeliveryStatus, EventType } from '../../domain/webhooks/event.ts';
import { sql, type Tx } from '../db/tx.ts';
import { lockSubscription } from './subscriptions.ts';

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
