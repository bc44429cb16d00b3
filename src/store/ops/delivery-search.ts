import type { EventType } from '../../domain/webhooks/event.ts';
import { boundedPage, type ScanExtent } from '../db/bounded-page.ts';
import { type Queryable, sqlPlannedPerCall } from '../db/tx.ts';
import { type Delivery, IS_SKIPPED, NEXT_ATTEMPT } from '../deliveries/reads.ts';
import { type DeliverySubject, readSubjects } from './delivery-subjects.ts';

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

/** `retrying`: pending after a failed attempt. */
export const DELIVERY_STATES = ['pending', 'retrying', 'delivered', 'failed', 'cancelled'] as const;
export type DeliveryState = (typeof DELIVERY_STATES)[number];

export interface OpsDeliveryFilter {
  status?: DeliveryState;
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
  subject: DeliverySubject;
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

type Listed = Omit<OpsDelivery, 'subject'> & { body: string };
type Row = (Listed | { pk: null }) & ScanExtent;

interface Search {
  /** SQL of the table expressions `candidate`, the read rows, and `page`, the matching ones, at most `$1`. */
  tables: string;
  values: unknown[];
  maxScanned: number;
}

/** The subscriptions of a filter; undefined without such a filter. */
async function matchingWebhooks(db: Queryable, { webhook, account }: OpsDeliveryFilter): Promise<bigint[] | undefined> {
  if (webhook === undefined && account === undefined) return undefined;
  const found = await db.query<{ pk: bigint }>(MATCHING_WEBHOOKS, [webhook ?? null, account ?? null]);
  return found.map(({ pk }) => pk);
}

/** A page of deliveries, newest first. */
export async function listOpsDeliveries(
  db: Queryable,
  filter: OpsDeliveryFilter,
  limit: number,
  after: bigint | undefined,
): Promise<OpsDeliveryPage> {
  const subscriptionPks = await matchingWebhooks(db, filter);
  if (subscriptionPks?.length === 0) return { outcome: 'page', deliveries: [] };
  if (subscriptionPks && subscriptionPks.length > MAX_MATCHING_WEBHOOKS) return { outcome: 'too_many_webhooks' };
  const { tables, values, maxScanned } = searchOf(filter, subscriptionPks, limit, after);
  const rows = await db.query<Row>(sqlPlannedPerCall('ops_list_deliveries', `WITH ${tables} ${LISTED}`), values);
  const listed = rows.filter((row) => row.pk !== null);
  const page = boundedPage(listed, rows[0], { limit, maxScanned });
  const { items: shown, ...place } = page;
  const subjects = await readSubjects(db, shown);
  const items = shown.map(({ body: _body, ...delivery }, index) => ({
    ...delivery,
    subject: subjects[index] ?? {},
  }));
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
  const isPending = status === 'pending' || status === 'retrying';
  const ofRetries = status === 'retrying' ? ['c.attempt_count > 0'] : [];
  const ofStatus = status === undefined ? [] : [`c.status = '${isPending ? 'pending' : status}'`, ...ofRetries];
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
  } else if (isPending) {
    const within = subscriptions === undefined ? '' : `AND d.subscription_pk = ANY (${subscriptions}::bigint[])`;
    const tried = status === 'retrying' ? 'AND d.attempt_count > 0' : '';
    from = `delivery d WHERE d.status = 'pending' ${tried} ${within} ${behind} ORDER BY d.pk + 0 DESC`;
  } else if (subscriptionPks !== undefined) {
    maxScanned = Math.max(MIN_SCANNED, Math.floor(MAX_SCANNED / Math.max(1, subscriptionPks.length)));
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

  const tables = `candidate AS MATERIALIZED (SELECT d.* FROM ${from} LIMIT ${maxScanned}),
    page AS MATERIALIZED (
      SELECT c.*, e.id AS event_id, e.type AS event_type, e.body FROM candidate c JOIN event e ON e.pk = c.event_pk
      ${remaining.length === 0 ? '' : `WHERE ${remaining.join(' AND ')}`} ORDER BY c.pk DESC LIMIT $1)`;
  return { tables, values, maxScanned };
}

const SCANNED = `SELECT count(*)::int AS scanned, min(pk) AS last_pk, min(created_at) AS last_at FROM candidate`;

const LISTED = `SELECT p.*, s.* FROM (${SCANNED}) s
    LEFT JOIN (
      SELECT d.pk, d.id, d.event_id, d.event_type, d.status, d.attempt_count AS attempts, d.created_at, ${NEXT_ATTEMPT}, d.delivered_at,
        d.last_status_code, d.last_error, ${IS_SKIPPED}, d.is_test, d.body, w.id AS webhook_id, w.url, w.account_id, a.name AS account_name
      FROM page d JOIN webhook_subscription w ON w.pk = d.subscription_pk JOIN account a ON a.id = w.account_id) p ON true
    ORDER BY p.pk DESC`;

/** The limit of each count. */
const MAX_COUNTED_DELIVERIES = 1_000;

const COUNTED = `SELECT (SELECT count(*)::int FROM page) AS matching, s.scanned FROM (${SCANNED}) s`;

export interface DeliveryCount {
  /** At most MAX_COUNTED_DELIVERIES. */
  deliveries: number;
  /** More may match: the count reached its limit, or the limit of rows to read. */
  hasMore: boolean;
}

/** The number of deliveries in each state that match the other filters; empty when too many webhooks match. */
export async function countOpsDeliveries(
  db: Queryable,
  filter: OpsDeliveryFilter,
): Promise<Partial<Record<DeliveryState | 'all', DeliveryCount>>> {
  const subscriptionPks = await matchingWebhooks(db, filter);
  if (subscriptionPks && subscriptionPks.length > MAX_MATCHING_WEBHOOKS) return {};
  const counts: Partial<Record<DeliveryState | 'all', DeliveryCount>> = {};
  const { status: _status, ...others } = filter;
  for (const state of ['all', ...DELIVERY_STATES] as const) {
    const wanted = state === 'all' ? others : { ...others, status: state };
    const { tables, values, maxScanned } = searchOf(wanted, subscriptionPks, MAX_COUNTED_DELIVERIES, undefined);
    const [row] = await db.query<{ matching: number; scanned: number }>(
      sqlPlannedPerCall('ops_count_deliveries', `WITH ${tables} ${COUNTED}`),
      values,
    );
    const { matching = 0, scanned = 0 } = row ?? {};
    counts[state] = {
      deliveries: Math.min(matching, MAX_COUNTED_DELIVERIES),
      hasMore: matching > MAX_COUNTED_DELIVERIES || scanned >= maxScanned,
    };
  }
  return counts;
}

/** Deliveries that one bulk retry makes due. */
export const MAX_BULK_RETRIES = 5_000;

/** Failed or cancelled deliveries that can be sent again, by keys from `oldest` to `newest`. */
export interface RetryableRange {
  deliveries: number;
  oldest: bigint;
  newest: bigint;
}

/** Only active webhooks get deliveries again. */
const RETRYABLE = `SELECT p.pk, p.subscription_pk FROM page p JOIN webhook_subscription w ON w.pk = p.subscription_pk
   WHERE p.status IN ('failed', 'cancelled') AND w.status = 'active' AND w.deleted_at IS NULL`;

interface RetryableRow {
  pk: bigint;
  subscriptionPk: bigint;
}

/** The newest failed or cancelled deliveries of a filter that can be sent again, newest first. */
async function findRetryable(db: Queryable, filter: OpsDeliveryFilter, newest?: bigint): Promise<RetryableRow[]> {
  if (filter.status !== 'failed' && filter.status !== 'cancelled') return [];
  const subscriptionPks = await matchingWebhooks(db, filter);
  if (subscriptionPks && subscriptionPks.length > MAX_MATCHING_WEBHOOKS) return [];
  const after = newest === undefined ? undefined : newest + 1n;
  const { tables, values } = searchOf(filter, subscriptionPks, MAX_BULK_RETRIES - 1, after);
  return db.query<RetryableRow>(
    sqlPlannedPerCall('ops_find_retryable', `WITH ${tables} ${RETRYABLE} ORDER BY p.pk DESC`),
    values,
  );
}

/** How many deliveries a bulk retry of this filter would make due; null without any. */
export async function countRetryable(db: Queryable, filter: OpsDeliveryFilter): Promise<RetryableRange | null> {
  const rows = await findRetryable(db, filter);
  const [newest, oldest] = [rows[0], rows.at(-1)];
  return newest && oldest ? { deliveries: rows.length, oldest: oldest.pk, newest: newest.pk } : null;
}

/** The keys of the deliveries of a confirmed bulk retry, by subscription. Later ones are not among them. */
export async function listRetryable(
  db: Queryable,
  filter: OpsDeliveryFilter,
  { deliveries, oldest, newest }: RetryableRange,
): Promise<Map<bigint, bigint[]>> {
  const rows = (await findRetryable(db, filter, newest)).filter(({ pk }) => pk >= oldest).slice(0, deliveries);
  const bySubscription = new Map<bigint, bigint[]>();
  for (const { pk, subscriptionPk } of rows) {
    const pks = bySubscription.get(subscriptionPk) ?? [];
    pks.push(pk);
    bySubscription.set(subscriptionPk, pks);
  }
  return bySubscription;
}
