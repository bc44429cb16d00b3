import type { DeliveryStatus, EventType } from '../../domain/webhooks/event.ts';
import { boundedPage, type ScanExtent } from '../db/bounded-page.ts';
import { type Queryable, sql, sqlPlannedPerCall } from '../db/tx.ts';
import { type Delivery, type DeliveryWithLog, findDeliveryWithLog } from '../deliveries/reads.ts';
import { findOpsSubscription, type OpsSubscription } from './webhooks.ts';

/*
 * Searches the deliveries of all accounts for operators. Each page reads a bounded number of rows along the index of the most selective
 * filter; when a filter remains that no index covers, a page may be short and reports how far back it looked.
 *   event            delivery (event_pk, subscription_pk), unique
 *   error code       delivery_errors (last_error, pk)
 *   failed/cancelled delivery_unsent (status, pk)
 *   pending          delivery_next or delivery_overdue, both of pending rows only, sorted
 *   webhook, account delivery_of_subscription (subscription_pk, pk), once per subscription
 *   else             the primary key
 */

/** Rows that one page reads when a filter remains that the index does not cover. */
const MAX_SCANNED = 10_000;
/** The minimum per subscription when a page walks many of them. */
const MIN_SCANNED = 500;
/** The maximum number of subscriptions that one filter may match. */
export const MAX_MATCHING_WEBHOOKS = 200;

export interface OpsDeliveryFilter {
  status?: DeliveryStatus;
  eventType?: EventType;
  /** The name of an account, or its number. */
  account?: string;
  /** The id of a subscription, or a part of its URL; the search excludes the query string after `?`. */
  webhook?: string;
  /** The error of the latest attempt. */
  errorCode?: string;
  eventId?: string;
  /** Created at or after this moment. */
  since?: Date;
}

/** A delivery with its subscription and account. */
export interface OpsDelivery extends Delivery {
  isTest: boolean;
  webhookId: string;
  url: string;
  accountId: bigint;
  accountName: string;
}

type OpsDeliveryPage =
  | {
      outcome: 'page';
      /** Newest first. */
      deliveries: OpsDelivery[];
      /** The key after which the next page starts, when more may follow. */
      next?: bigint;
      /** Set when the page is short because it reached its row limit: the time of the oldest row it read. */
      searchedSince?: Date;
    }
  | { outcome: 'too_many_webhooks' };

const MATCHING_WEBHOOKS = sqlPlannedPerCall(
  'ops_matching_webhooks',
  `SELECT w.pk FROM webhook_subscription w JOIN account a ON a.id = w.account_id
   WHERE ($1::text IS NULL OR w.id = $1 OR strpos(lower(split_part(w.url, '?', 1)), lower($1)) > 0)
     AND ($2::text IS NULL OR a.name = $2 OR a.id::text = $2)
   ORDER BY w.pk DESC LIMIT ${MAX_MATCHING_WEBHOOKS + 1}`,
);

type Row = (OpsDelivery | { pk: null }) & ScanExtent;

interface Search {
  text: string;
  values: unknown[];
  maxScanned: number;
}

/** A page of deliveries, newest first. */
export async function listOpsDeliveries(
  db: Queryable,
  filter: OpsDeliveryFilter,
  limit: number,
  after: bigint | undefined,
): Promise<OpsDeliveryPage> {
  let subscriptionPks: bigint[] | undefined;
  if (filter.webhook !== undefined || filter.account !== undefined) {
    const found = await db.query<{ pk: bigint }>(MATCHING_WEBHOOKS, [filter.webhook ?? null, filter.account ?? null]);
    if (found.length === 0) return { outcome: 'page', deliveries: [] };
    if (found.length > MAX_MATCHING_WEBHOOKS) return { outcome: 'too_many_webhooks' };
    subscriptionPks = found.map(({ pk }) => pk);
  }
  const { text, values, maxScanned } = searchOf(filter, subscriptionPks, limit, after);
  const rows = await db.query<Row>(sqlPlannedPerCall('ops_list_deliveries', text), values);
  const deliveries = rows.filter((row) => row.pk !== null);
  const { items, ...place } = boundedPage(deliveries, rows[0], { limit, maxScanned });
  if (isBefore(place.searchedSince, filter.since)) return { outcome: 'page', deliveries: items };
  return { outcome: 'page', deliveries: items, ...place };
}

/** Key order and creation order differ at most by the length of a transaction, which never lasts an hour. */
function isBefore(at: Date | undefined, since: Date | undefined): boolean {
  return at !== undefined && since !== undefined && at.getTime() < since.getTime() - 3_600_000;
}

function searchOf(
  filter: OpsDeliveryFilter,
  subscriptionPks: readonly bigint[] | undefined,
  limit: number,
  after: bigint | undefined,
): Search {
  const { status, eventId, errorCode, eventType, since } = filter;
  const values: unknown[] = [limit + 1];
  const bind = (value: unknown) => `$${values.push(value)}`;
  const subscriptions = subscriptionPks && bind(subscriptionPks);
  const behind = after === undefined ? '' : `AND d.pk < ${bind(after)}::bigint`;
  const ofStatus = status === undefined ? [] : [`c.status = '${status}'`];
  const ofSubscriptions = subscriptions === undefined ? [] : [`c.subscription_pk = ANY (${subscriptions}::bigint[])`];

  let from: string;
  /** Conditions that the chosen index does not cover. */
  let remaining: string[] = [];
  let maxScanned = MAX_SCANNED;
  if (eventId !== undefined) {
    // `+ 0`, here and below, keeps the planner off the primary key, because the match may be the oldest row of all.
    from = `delivery d WHERE d.event_pk = (SELECT pk FROM event WHERE id = ${bind(eventId)}) ${behind} ORDER BY d.pk + 0 DESC`;
    remaining = [...ofStatus, ...ofSubscriptions];
    if (errorCode !== undefined) remaining.push(`c.last_error = ${bind(errorCode)}`);
  } else if (errorCode !== undefined) {
    from = `delivery d WHERE d.last_error = ${bind(errorCode)} ${behind} ORDER BY d.pk DESC`;
    remaining = [...ofStatus, ...ofSubscriptions];
  } else if (status === 'failed' || status === 'cancelled') {
    from = `delivery d WHERE d.status = '${status}' ${behind} ORDER BY d.pk DESC`;
    remaining = ofSubscriptions;
  } else if (status === 'pending') {
    const within = subscriptions === undefined ? '' : `AND d.subscription_pk = ANY (${subscriptions}::bigint[])`;
    from = `delivery d WHERE d.status = 'pending' ${within} ${behind} ORDER BY d.pk + 0 DESC`;
  } else if (subscriptionPks !== undefined) {
    maxScanned = Math.max(MIN_SCANNED, Math.floor(MAX_SCANNED / subscriptionPks.length));
    from = `unnest(${subscriptions}::bigint[]) AS s (pk)
      CROSS JOIN LATERAL (SELECT * FROM delivery d WHERE d.subscription_pk = s.pk ${behind}
        ORDER BY d.pk DESC LIMIT ${maxScanned}) d ORDER BY d.pk DESC`;
    remaining = ofStatus;
  } else {
    from = `delivery d WHERE true ${behind} ORDER BY d.pk DESC`;
    remaining = ofStatus;
  }
  if (eventType !== undefined) remaining.push(`e.type = ${bind(eventType)}`);
  if (remaining.length === 0) maxScanned = limit + 1;
  if (since !== undefined) remaining.push(`c.created_at >= ${bind(since.toISOString())}::timestamptz`);

  const text = `WITH candidate AS MATERIALIZED (SELECT d.* FROM ${from} LIMIT ${maxScanned}),
    page AS MATERIALIZED (
      SELECT c.*, e.id AS event_id, e.type AS event_type FROM candidate c JOIN event e ON e.pk = c.event_pk
      ${remaining.length === 0 ? '' : `WHERE ${remaining.join(' AND ')}`} ORDER BY c.pk DESC LIMIT $1)
    SELECT p.*, s.* FROM (
      SELECT count(*)::int AS scanned, min(pk) AS last_pk, min(created_at) AS last_at FROM candidate) s
    LEFT JOIN (
      SELECT d.pk, d.id, d.event_id, d.event_type, d.status, d.attempt_count, d.created_at, d.next_attempt_at, d.delivered_at,
        d.last_status_code, d.last_error, d.is_test, w.id AS webhook_id, w.url, w.account_id, a.name AS account_name
      FROM page d JOIN webhook_subscription w ON w.pk = d.subscription_pk JOIN account a ON a.id = w.account_id) p ON true
    ORDER BY p.pk DESC`;
  return { text, values, maxScanned };
}

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
