import { IsNull } from 'typeorm';
import type { ChatFormat } from '../../domain/chat/chat-url.ts';
import type { SubscribableEvent } from '../../domain/webhooks/event.ts';
import type { EventFilter } from '../../domain/webhooks/filter.ts';
import type { OrderBy } from '../../domain/webhooks/order.ts';
import { WebhookSubscriptionEntity, type WebhookSubscriptionRow } from '../db/entities/webhook-subscription.ts';
import { type Database, type Queryable, type Repositories, sql, type Tx } from '../db/tx.ts';
import {
  ALERT_OF_EVENT,
  type CancelledDelivery,
  type CancelledRow,
  MAX_LOGGED_CANCELLATIONS,
  type OnCancelled,
  toCancelled,
} from './cancelled.ts';

/** How long the previous secret still signs beside the new one after a rotation. */
const SECRET_OVERLAP_HOURS = 24;

/** The owner's view of a subscription: no secret. */
const VIEW = {
  pk: true,
  id: true,
  url: true,
  events: true,
  status: true,
  pauseReason: true,
  orderBy: true,
  filter: true,
  maxPerSecond: true,
  headerNames: true,
  description: true,
  format: true,
  createdAt: true,
} as const;
export type Subscription = Pick<WebhookSubscriptionRow, keyof typeof VIEW>;

const rowsOf = ({ em }: Repositories) => em.getRepository(WebhookSubscriptionEntity);

/** What a webhook may have beside its URL and events; null removes an option. */
export interface SubscriptionOptions {
  orderBy?: OrderBy | null;
  filter?: EventFilter | null;
  maxPerSecond?: number | null;
  /** JSON of the headers, sealed for `headersOwner`, and their names. */
  sealedHeaders?: string | null;
  headerNames?: string[] | null;
  description?: string | null;
  format?: ChatFormat | null;
  /** The URL of a chat service, sealed for `urlOwner`. */
  sealedUrl?: string | null;
}

interface NewSubscription extends SubscriptionOptions {
  id: string;
  url: string;
  events: readonly SubscribableEvent[];
  /** Sealed with the id as associated data. */
  sealedSecret: string;
}

/** Inserts an active subscription. */
export async function insertSubscription(
  tx: Tx,
  accountId: bigint,
  { id, url, events, sealedSecret, ...options }: NewSubscription,
): Promise<Subscription> {
  await rowsOf(tx).insert({ id, accountId, url, events: [...events], sealedSecret, ...options });
  return rowsOf(tx).findOneOrFail({ select: VIEW, where: { id } });
}

type SubscriptionItem = Pick<Subscription, 'pk' | 'id' | 'url' | 'events' | 'status'>;

/** A page of an account's subscriptions, newest first; `next` is the key after which the next page starts, absent on the last page. */
interface SubscriptionPage {
  subscriptions: SubscriptionItem[];
  next?: bigint;
}

const LIST_SUBSCRIPTIONS = sql(
  'list_subscriptions',
  `SELECT pk, id, url, events, status FROM webhook_subscription
   WHERE account_id = $1 AND deleted_at IS NULL AND ($2::bigint IS NULL OR pk < $2) ORDER BY pk DESC LIMIT $3`,
);

export async function listSubscriptions(
  db: Queryable,
  accountId: bigint,
  limit: number,
  after: bigint | undefined,
): Promise<SubscriptionPage> {
  const rows = await db.query<SubscriptionItem>(LIST_SUBSCRIPTIONS, [accountId, after ?? null, limit + 1]);
  const subscriptions = rows.slice(0, limit);
  const last = subscriptions.at(-1);
  return rows.length > limit && last ? { subscriptions, next: last.pk } : { subscriptions };
}

/** One subscription of an account; null when it is unknown, deleted or of another account. */
export function findSubscription(db: Repositories, accountId: bigint, id: string): Promise<Subscription | null> {
  return rowsOf(db).findOne({ select: VIEW, where: { id, accountId, deletedAt: IsNull() } });
}

/**
 * Locks the subscription against a change or deletion until the transaction ends. Take this lock before locks of its deliveries, as
 * the deliverer does, so that the two cannot deadlock.
 */
export function lockSubscription(
  tx: Tx,
  accountId: bigint,
  id: string,
  mode: 'change' | 'use',
): Promise<Subscription | null> {
  return rowsOf(tx).findOne({
    select: VIEW,
    where: { id, accountId, deletedAt: IsNull() },
    lock: { mode: mode === 'change' ? 'for_no_key_update' : 'pessimistic_read' },
  });
}

/** Test events are still sent while paused; after a deletion nothing is sent. */
const CANCEL_PENDING = sql(
  'cancel_pending_deliveries',
  `WITH cancelled AS (
     UPDATE delivery SET status = 'cancelled' WHERE pk IN (
       SELECT pk FROM delivery WHERE subscription_pk = $1 AND status = 'pending' AND (NOT is_test OR $2) ORDER BY pk FOR UPDATE)
     RETURNING subscription_pk, id, event_pk)
   SELECT c.subscription_pk, c.id AS delivery_id, e.id AS event_id, ${ALERT_OF_EVENT} AS alert_id
   FROM cancelled c JOIN event e ON e.pk = c.event_pk LIMIT ${MAX_LOGGED_CANCELLATIONS}`,
);

/** Cancels pending deliveries of a subscription that this transaction has locked; returns them, up to MAX_LOGGED_CANCELLATIONS. */
export async function cancelPending(
  tx: Tx,
  subscriptionPk: bigint,
  options: { tests: boolean },
): Promise<CancelledDelivery[]> {
  return (await tx.query<CancelledRow>(CANCEL_PENDING, [subscriptionPk, options.tests])).map(toCancelled);
}

interface SubscriptionChange extends Omit<SubscriptionOptions, 'sealedUrl'> {
  /** The columns of a new URL for the format that the webhook has after the change. */
  url?: (format: ChatFormat | null) => { url: string; sealedUrl: string | null };
  events?: readonly SubscribableEvent[];
  status?: 'active' | 'paused';
  /** Called with the events and the filter after the change. An error of it prevents the change. */
  check?: (after: Pick<Subscription, 'events' | 'filter'>) => void;
}

/**
 * Changes a subscription. Activation clears the pause reason and the failure counters; a pause cancels pending deliveries in the same
 * transaction. Null when the account has no such subscription.
 */
export async function updateSubscription(
  db: Pick<Database, 'transaction'>,
  accountId: bigint,
  id: string,
  change: SubscriptionChange,
  onCancelled?: OnCancelled,
): Promise<Subscription | null> {
  let cancelled: CancelledDelivery[] = [];
  const { url, events, status, check, ...options } = change;
  const changed = await db.transaction(async (tx) => {
    const found = await lockSubscription(tx, accountId, id, 'change');
    if (!found) return null;
    check?.({
      events: events === undefined ? found.events : [...events],
      filter: options.filter === undefined ? found.filter : options.filter,
    });
    const fields = {
      ...options,
      ...url?.(options.format === undefined ? found.format : options.format),
      ...(events !== undefined && { events: [...events] }),
      ...(status !== undefined && { status }),
      ...(status === 'active' && { pauseReason: null, failingSince: null, exhaustedCount: 0 }),
    };
    const { pk } = found;
    if (Object.keys(fields).length > 0) await rowsOf(tx).update({ pk }, fields);
    cancelled = status === 'paused' ? await cancelPending(tx, pk, { tests: false }) : [];
    return rowsOf(tx).findOneOrFail({ select: VIEW, where: { pk } });
  });
  onCancelled?.(cancelled);
  return changed;
}

/** Locks in the order of the evaluation, and waits for alerts that fire. */
const RELEASE_ALERTS = sql(
  'release_alerts_of_subscription',
  `WITH named AS MATERIALIZED (
     SELECT pk FROM alert WHERE account_id = $1 AND webhook_pk = $2 AND status = 'active' ORDER BY pk FOR NO KEY UPDATE),
   released AS (UPDATE alert a SET webhook_pk = NULL FROM named WHERE a.pk = named.pk RETURNING a.pk)
   SELECT count(*)::int AS alerts FROM released`,
);

/**
 * Deletes a subscription in one transaction: erases its secret, gives its active alerts back to the default webhook, and cancels
 * pending deliveries. The row stays for its deliveries. Returns the number of these alerts, or null when the account has no such
 * subscription.
 */
export async function deleteSubscription(
  db: Pick<Database, 'transaction'>,
  accountId: bigint,
  id: string,
  onCancelled?: OnCancelled,
): Promise<{ alerts: number } | null> {
  let cancelled: CancelledDelivery[] = [];
  const result = await db.transaction(async (tx) => {
    const found = await lockSubscription(tx, accountId, id, 'change');
    if (!found) return null;
    const secrets = {
      sealedSecret: '',
      previousSealedSecret: null,
      previousSecretUntil: null,
      sealedHeaders: null,
      sealedUrl: null,
    };
    await rowsOf(tx).update({ pk: found.pk }, { deletedAt: () => 'now()', ...secrets });
    const [released] = await tx.query<{ alerts: number }>(RELEASE_ALERTS, [accountId, found.pk]);
    // In a later statement than the wait for firing alerts, so that it sees their deliveries.
    cancelled = await cancelPending(tx, found.pk, { tests: true });
    return { alerts: released?.alerts ?? 0 };
  });
  onCancelled?.(cancelled);
  return result;
}

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
  const { pk } = subscription;
  const current = await rowsOf(tx).findOneByOrFail({ pk });
  if (isCurrent(current.sealedSecret)) return { subscription, previousSecretUntil: current.previousSecretUntil };
  const previousSecretUntil = () => `clock_timestamp() + ${SECRET_OVERLAP_HOURS} * interval '1 hour'`;
  await rowsOf(tx).update({ pk }, { previousSealedSecret: current.sealedSecret, sealedSecret, previousSecretUntil });
  const rotated = await rowsOf(tx).findOneByOrFail({ pk });
  return { subscription, previousSecretUntil: rotated.previousSecretUntil };
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
