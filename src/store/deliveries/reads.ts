import type { DeliveryStatus } from '../../domain/webhooks/event.ts';
import { headersOfStored, type ResponseHeaders } from '../../domain/webhooks/response-headers.ts';
import { type Database, type Queryable, sql, sqlPlannedPerCall } from '../db/tx.ts';
import type { DeliveryItem } from './events.ts';
import { findSubscription } from './subscriptions.ts';

/** The owner's view of a delivery in a list. */
export interface Delivery extends DeliveryItem {
  pk: bigint;
  /** The time of the first success. */
  deliveredAt: Date | null;
  /** Of the latest attempt. */
  lastStatusCode: number | null;
  lastError: string | null;
  /** Ordered deliveries continued without it after its schedule. */
  isSkipped: boolean;
}

/** A stored attempt. */
export interface LoggedAttempt {
  attempt: number;
  startedAt: Date;
  durationMs: number;
  outcome: 'delivered' | 'failed';
  statusCode: number | null;
  errorCode: string | null;
  /** The beginning of the response body, at most 4 KiB, bytes as received; null without a response. */
  responseExcerpt: Buffer | null;
  /** Null without a response, and for an attempt of a release that did not store headers. */
  responseHeaders: ResponseHeaders | null;
}

/** A delivery with its attempts, first to last, and the exact text of its body. */
export interface DeliveryWithLog extends Delivery {
  attemptLog: LoggedAttempt[];
  body: string;
}

/** Filters for the deliveries of a subscription. */
interface DeliveryFilter {
  status?: DeliveryStatus;
  eventType?: string;
  /** Created at or after this moment. */
  since?: Date;
}

/** A page of deliveries, newest first; `next` is the key after which the next page starts, absent on the last page. */
interface DeliveryPage {
  deliveries: Delivery[];
  next?: bigint;
}

/** SQL of the time of the next attempt of delivery `d`; NULL while it waits for an earlier one of its key. */
export const NEXT_ATTEMPT = `nullif(d.next_attempt_at, 'infinity') AS next_attempt_at`;

/** SQL: delivery `d` failed, and the ordered deliveries of its key continued without it. */
export const IS_SKIPPED = `d.status = 'failed' AND d.order_key IS NOT NULL AS is_skipped`;

const DELIVERY_COLUMNS = `d.pk, d.id, e.id AS event_id, e.type AS event_type, d.status, d.attempt_count AS attempts, d.created_at,
  ${NEXT_ATTEMPT}, d.delivered_at, d.last_status_code, d.last_error, ${IS_SKIPPED}`;

/**
 * `created_at` is the start of the inserting transaction, so the orders of keys and times differ by at most the length of a transaction,
 * far below an hour. The floor ends the walk where no younger row can follow.
 */
const LIST_DELIVERIES = sqlPlannedPerCall(
  'list_deliveries',
  `SELECT ${DELIVERY_COLUMNS} FROM delivery d JOIN event e ON e.pk = d.event_pk
   WHERE d.subscription_pk = $1 AND ($2::bigint IS NULL OR d.pk < $2)
     AND ($3::text IS NULL OR d.status = $3) AND ($4::text IS NULL OR e.type = $4)
     AND ($5::timestamptz IS NULL OR d.created_at >= $5 AND d.pk > coalesce((
       SELECT o.pk FROM delivery o WHERE o.subscription_pk = $1 AND o.created_at < $5 - interval '1 hour'
       ORDER BY o.pk DESC LIMIT 1), 0))
   ORDER BY d.pk DESC LIMIT $6`,
);

/** The deliveries of a subscription, test events included. Null when the account has no such subscription. */
export async function listDeliveries(
  db: Database,
  accountId: bigint,
  subscriptionId: string,
  filter: DeliveryFilter,
  limit: number,
  after: bigint | undefined,
): Promise<DeliveryPage | null> {
  const subscription = await findSubscription(db, accountId, subscriptionId);
  if (!subscription) return null;
  const rows = await db.query<Delivery>(LIST_DELIVERIES, [
    subscription.pk,
    after ?? null,
    filter.status ?? null,
    filter.eventType ?? null,
    filter.since?.toISOString() ?? null,
    limit + 1,
  ]);
  const deliveries = rows.slice(0, limit);
  const last = deliveries.at(-1);
  return rows.length > limit && last ? { deliveries, next: last.pk } : { deliveries };
}

const FIND_DELIVERY = sql(
  'find_delivery',
  `SELECT ${DELIVERY_COLUMNS}, e.body FROM delivery d JOIN event e ON e.pk = d.event_pk
   WHERE d.id = $1 AND d.subscription_pk = $2`,
);

const LIST_ATTEMPTS = sql(
  'list_attempts',
  `SELECT attempt_number AS attempt, started_at, duration_ms, outcome, status_code, error_code, response_excerpt, response_headers
   FROM delivery_attempt WHERE delivery_pk = $1 ORDER BY attempt_number`,
);

/** One delivery of a subscription, by the subscription's key and the delivery's public id; null when it does not exist. */
export async function findDelivery(
  db: Queryable,
  subscriptionPk: bigint,
  deliveryId: string,
): Promise<(Delivery & { body: string }) | null> {
  const [found] = await db.query<Delivery & { body: string }>(FIND_DELIVERY, [deliveryId, subscriptionPk]);
  return found ?? null;
}

/** Like `findDelivery`, with the attempts; the log is empty after retention has pruned it. */
export async function findDeliveryWithLog(
  db: Queryable,
  subscriptionPk: bigint,
  deliveryId: string,
): Promise<DeliveryWithLog | null> {
  const found = await findDelivery(db, subscriptionPk, deliveryId);
  if (!found) return null;
  type Row = Omit<LoggedAttempt, 'responseHeaders'> & { responseHeaders: string | null };
  const attempts = await db.query<Row>(LIST_ATTEMPTS, [found.pk]);
  const attemptLog = attempts.map(({ responseHeaders: text, ...attempt }) => ({
    ...attempt,
    responseHeaders: text === null ? null : headersOfStored(text),
  }));
  return { ...found, attemptLog };
}
