import { IsNull } from 'typeorm';
import type { SubscribableEvent } from '../../domain/webhooks/event.ts';
import { WebhookSubscriptionEntity, type WebhookSubscriptionRow } from '../db/entities/webhook-subscription.ts';
import { type Database, type Queryable, sql, type Tx } from '../db/tx.ts';
import {
  ALERT_OF_EVENT,
  type CancelledDelivery,
  type CancelledRow,
  MAX_TOLD,
  type OnCancelled,
  toCancelled,
} from './cancelled.ts';

/** How long the previous secret still signs beside the new one after a rotation. */
export const SECRET_OVERLAP_HOURS = 24;

/** The owner's view of a subscription: no secret. */
export interface Subscription {
  pk: bigint;
  id: string;
  url: string;
  events: SubscribableEvent[];
  status: 'active' | 'paused';
  /** The reason of an automatic pause; null for a manual pause or an active subscription. */
  pauseReason: string | null;
  createdAt: Date;
}

function toSubscription(row: WebhookSubscriptionRow): Subscription {
  return {
    pk: BigInt(row.pk),
    id: row.id,
    url: row.url,
    // Only the API writes this column, after validation.
    events: row.events as SubscribableEvent[],
    status: row.status,
    pauseReason: row.pauseReason,
    createdAt: row.createdAt,
  };
}

interface NewSubscription {
  id: string;
  url: string;
  events: readonly SubscribableEvent[];
  /** Sealed with the id as associated data. */
  sealedSecret: string;
}

const INSERT_SUBSCRIPTION = sql(
  'insert_subscription',
  `INSERT INTO webhook_subscription (id, account_id, url, events, sealed_secret) VALUES ($1, $2, $3, $4, $5)
   RETURNING pk, id, url, events, status, pause_reason, created_at`,
);

/** Inserts an active subscription. */
export async function insertSubscription(
  tx: Tx,
  accountId: bigint,
  { id, url, events, sealedSecret }: NewSubscription,
): Promise<Subscription> {
  const [subscription] = await tx.query<Subscription>(INSERT_SUBSCRIPTION, [id, accountId, url, events, sealedSecret]);
  if (!subscription) throw new TypeError('a subscription that was just made is missing');
  return subscription;
}

/** A page of an account's subscriptions, newest first; `next` is the key after which the next page starts, absent on the last page. */
interface SubscriptionPage {
  subscriptions: Subscription[];
  next?: bigint;
}

const LIST_SUBSCRIPTIONS = sql(
  'list_subscriptions',
  `SELECT pk, id, url, events, status, pause_reason, created_at FROM webhook_subscription
   WHERE account_id = $1 AND deleted_at IS NULL AND ($2::bigint IS NULL OR pk < $2) ORDER BY pk DESC LIMIT $3`,
);

export async function listSubscriptions(
  db: Queryable,
  accountId: bigint,
  limit: number,
  after: bigint | undefined,
): Promise<SubscriptionPage> {
  const rows = await db.query<Subscription>(LIST_SUBSCRIPTIONS, [accountId, after ?? null, limit + 1]);
  const subscriptions = rows.slice(0, limit);
  const last = subscriptions.at(-1);
  return rows.length > limit && last ? { subscriptions, next: last.pk } : { subscriptions };
}

/** One subscription of an account; null when it is unknown, deleted or of another account. */
export async function findSubscription(db: Database, accountId: bigint, id: string): Promise<Subscription | null> {
  const row = await db.dataSource
    .getRepository(WebhookSubscriptionEntity)
    .findOneBy({ id, accountId: String(accountId), deletedAt: IsNull() });
  return row ? toSubscription(row) : null;
}

/**
 * Locks the subscription against a change or deletion until the transaction ends. Take this lock before locks of its deliveries, as
 * the deliverer does, so that the two cannot deadlock.
 */
export async function lockSubscription(
  tx: Tx,
  accountId: bigint,
  id: string,
  mode: 'change' | 'use',
): Promise<Subscription | null> {
  const row = await tx.em.getRepository(WebhookSubscriptionEntity).findOne({
    where: { id, accountId: String(accountId), deletedAt: IsNull() },
    lock: { mode: mode === 'change' ? 'for_no_key_update' : 'pessimistic_read' },
  });
  return row ? toSubscription(row) : null;
}

/** Test events are still sent while paused; after a deletion nothing is sent. */
const CANCEL_PENDING = sql(
  'cancel_pending_deliveries',
  `WITH cancelled AS (
     UPDATE delivery SET status = 'cancelled' WHERE pk IN (
       SELECT pk FROM delivery WHERE subscription_pk = $1 AND status = 'pending' AND (NOT is_test OR $2) ORDER BY pk FOR UPDATE)
     RETURNING subscription_pk, id, event_pk)
   SELECT c.subscription_pk, c.id AS delivery_id, e.id AS event_id, ${ALERT_OF_EVENT} AS alert_id
   FROM cancelled c JOIN event e ON e.pk = c.event_pk LIMIT ${MAX_TOLD}`,
);

/** Cancels pending deliveries of a subscription that this transaction has locked; returns them, up to MAX_TOLD. */
export async function cancelPending(
  tx: Tx,
  subscriptionPk: bigint,
  options: { tests: boolean },
): Promise<CancelledDelivery[]> {
  return (await tx.query<CancelledRow>(CANCEL_PENDING, [subscriptionPk, options.tests])).map(toCancelled);
}

interface SubscriptionChange {
  url?: string;
  events?: readonly SubscribableEvent[];
  status?: 'active' | 'paused';
}

/**
 * Changes a subscription. Activation clears the pause reason and the failure counters; a pause cancels pending deliveries in the same
 * transaction. Null when the account has no such subscription.
 */
export async function updateSubscription(
  db: Database,
  accountId: bigint,
  id: string,
  change: SubscriptionChange,
  onCancelled?: OnCancelled,
): Promise<Subscription | null> {
  let cancelled: CancelledDelivery[] = [];
  const changed = await db.transaction(async (tx) => {
    const found = await lockSubscription(tx, accountId, id, 'change');
    if (!found) return null;
    const fields = {
      ...(change.url !== undefined && { url: change.url }),
      ...(change.events !== undefined && { events: [...change.events] }),
      ...(change.status !== undefined && { status: change.status }),
      ...(change.status === 'active' && { pauseReason: null, failingSince: null, exhaustedCount: 0 }),
    };
    const pk = String(found.pk);
    const repository = tx.em.getRepository(WebhookSubscriptionEntity);
    if (Object.keys(fields).length > 0) await repository.update({ pk }, fields);
    cancelled = change.status === 'paused' ? await cancelPending(tx, found.pk, { tests: false }) : [];
    return toSubscription(await repository.findOneByOrFail({ pk }));
  });
  onCancelled?.(cancelled);
  return changed;
}

/**
 * Deletes a subscription: erases its secret and cancels pending deliveries in one transaction. The row stays for its deliveries. False
 * when the account has no such subscription.
 */
export async function deleteSubscription(
  db: Database,
  accountId: bigint,
  id: string,
  onCancelled?: OnCancelled,
): Promise<boolean> {
  let cancelled: CancelledDelivery[] = [];
  const isDeleted = await db.transaction(async (tx) => {
    const found = await lockSubscription(tx, accountId, id, 'change');
    if (!found) return false;
    await tx.em
      .getRepository(WebhookSubscriptionEntity)
      .update(
        { pk: String(found.pk) },
        { deletedAt: () => 'now()', sealedSecret: '', previousSealedSecret: null, previousSecretUntil: null },
      );
    cancelled = await cancelPending(tx, found.pk, { tests: true });
    return true;
  });
  onCancelled?.(cancelled);
  return isDeleted;
}

const SEALED_SECRET = sql('sealed_secret', 'SELECT sealed_secret FROM webhook_subscription WHERE pk = $1');

const ROTATE_SECRET = sql(
  'rotate_secret',
  `UPDATE webhook_subscription SET previous_sealed_secret = sealed_secret, sealed_secret = $2,
     previous_secret_until = clock_timestamp() + ${SECRET_OVERLAP_HOURS} * interval '1 hour' WHERE pk = $1`,
);

const PREVIOUS_SECRET_UNTIL = sql(
  'previous_secret_until',
  'SELECT previous_secret_until FROM webhook_subscription WHERE pk = $1',
);

interface RotatedSubscription {
  subscription: Subscription;
  /** End of the time in which the previous secret still signs; null without a previous secret. */
  previousSecretUntil: Date | null;
}

/**
 * Gives a subscription a new secret. The replaced secret still signs for SECRET_OVERLAP_HOURS; an older previous secret is dropped. When
 * `isCurrent` recognizes the stored sealed secret as the new one, nothing changes: a repeated rotation must not drop the secret that
 * receivers still use. Null when the account has no such subscription.
 */
export async function rotateSecret(
  tx: Tx,
  accountId: bigint,
  id: string,
  sealedSecret: string,
  isCurrent: (sealed: string) => boolean,
): Promise<RotatedSubscription | null> {
  const subscription = await lockSubscription(tx, accountId, id, 'change');
  if (!subscription) return null;
  const [current] = await tx.query<{ sealedSecret: string }>(SEALED_SECRET, [subscription.pk]);
  if (current && !isCurrent(current.sealedSecret)) await tx.query(ROTATE_SECRET, [subscription.pk, sealedSecret]);
  const [row] = await tx.query<{ previousSecretUntil: Date | null }>(PREVIOUS_SECRET_UNTIL, [subscription.pk]);
  return { subscription, previousSecretUntil: row?.previousSecretUntil ?? null };
}

const FORGET_OLD_SECRETS = sql(
  'forget_old_secrets',
  `UPDATE webhook_subscription SET previous_sealed_secret = NULL, previous_secret_until = NULL
   WHERE pk IN (SELECT pk FROM webhook_subscription WHERE previous_secret_until < clock_timestamp() - interval '1 hour'
     ORDER BY pk FOR NO KEY UPDATE SKIP LOCKED) RETURNING pk`,
);

/** Deletes rotated-out secrets that no longer sign; returns their number. */
export async function forgetOldSecrets(db: Queryable): Promise<number> {
  return (await db.query(FORGET_OLD_SECRETS)).length;
}
