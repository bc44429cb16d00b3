import { derivedId } from '../../domain/values/ids.ts';
import { webhookFailingBody, webhookPausedBody } from '../../domain/webhooks/account-event.ts';
import { sql, type Tx } from '../db/tx.ts';
import { insertDeliveries, insertEvents } from './events.ts';

/** A webhook that fails, and the attempt that caused the event. */
export interface FailingWebhook {
  pk: bigint;
  id: string;
  accountId: bigint;
  failingSince: Date;
  /** The public id of the delivery, and the number of its attempt: together the cause of the event. */
  deliveryId: string;
  attemptNumber: number;
  lastError?: string;
  lastStatusCode?: number;
}

/** The other active webhooks of the account that list the type. */
const OTHER_LISTENERS = sql(
  'other_listeners',
  `SELECT pk FROM webhook_subscription
   WHERE account_id = $1 AND pk <> $2 AND status = 'active' AND deleted_at IS NULL AND $3 = ANY (events) ORDER BY pk`,
);

/**
 * Stores the event about a failing webhook in the transaction that records its failure, with deliveries to the other webhooks of the
 * account. `pausedFor` is the reason when the failure paused it. Returns the subscriptions that got a delivery.
 */
export async function emitWebhookTrouble(tx: Tx, webhook: FailingWebhook, pausedFor: string | null): Promise<bigint[]> {
  const { accountId, pk, id: webhookId, deliveryId, attemptNumber, ...trouble } = webhook;
  const type = pausedFor === null ? 'webhook_failing' : 'webhook_paused';
  const dedupeKey = `${type}:${webhookId}:${deliveryId}:${attemptNumber}`;
  const eventId = derivedId('evt', dedupeKey);
  const data = { ...trouble, eventId, occurredAt: new Date(), webhookId };
  const body = pausedFor === null ? webhookFailingBody(data) : webhookPausedBody({ ...data, reason: pausedFor });
  const eventPk = (await insertEvents(tx, [{ id: eventId, accountId, type, body, dedupeKey }])).get(eventId);
  if (eventPk === undefined) return [];
  const listeners = await tx.query<{ pk: bigint }>(OTHER_LISTENERS, [accountId, pk, type]);
  await insertDeliveries(
    tx,
    listeners.map((listener) => ({ eventPk, subscriptionPk: listener.pk })),
  );
  return listeners.map((listener) => listener.pk);
}
