import type { EventType } from '../../domain/webhooks/event.ts';
import { boundedPage, type ScanExtent } from '../db/bounded-page.ts';
import { type Queryable, sqlPlannedPerCall } from '../db/tx.ts';
import { ALERT_OF_EVENT } from './cancelled.ts';
import { type Delivery, IS_SKIPPED, NEXT_ATTEMPT } from './reads.ts';
import { type DeliverySubject, readSubjects } from './subjects.ts';

/*
 * Searches the deliveries of one account, and for operators of all accounts. Each page reads a bounded number of rows along the index of the
 * most selective filter; when a filter remains that no index covers, a page may be short and reports how far back it looked.
 *   event            delivery (event_pk, subscription_pk), unique
 *   error code       delivery_errors (last_error, pk)
 *   failed/cancelled delivery_unsent (status, pk); of subscriptions: delivery_unsent_of_subscription (subscription_pk, status, pk)
 *   pending          delivery_next or delivery_overdue, both of pending rows only, sorted, while the subscriptions have few pending rows
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

export interface DeliverySearch {
  status?: DeliveryState;
  eventType?: EventType;
  /** The account whose existing subscriptions are searched. Absent: all accounts, deleted subscriptions included. */
  accountId?: bigint;
  /** The name of an account, or its number. */
  account?: string;
  /** The id of a subscription; without `accountId` also a part of its URL, without the query string after `?`. */
  webhook?: string;
  /** The error of the latest attempt. */
  errorCode?: string;
  eventId?: string;
  /** Created at or after this moment. */
  since?: Date;
}

/** A delivery with its subscription and account. */
export interface FoundDelivery extends Delivery {
  isTest: boolean;
  /** The alert that fired the event, also a deleted one. */
  alertId: string | null;
  /** Of the latest attempt, milliseconds; null without one, or when retention has deleted it. */
  lastDurationMs: number | null;
  webhookId: string;
  url: string;
  accountId: bigint;
  accountName: string;
  subject: DeliverySubject;
}

type FoundPage =
  | {
      outcome: 'page';
      /** Newest first. */
      deliveries: FoundDelivery[];
      /** The key after which the next page starts, when more may follow. */
      next?: bigint;
      /** Set when the page is short because it reached its row limit: the time of the oldest row it read. */
      searchedSince?: Date;
    }
  | { outcome: 'too_many_webhooks' };

const MATCHING_WEBHOOKS = sqlPlannedPerCall(
  'ops_matching_webhooks',
  `SELECT w.pk FROM webhook_subscription w JOIN account a ON a.id = w.account_id
   WHERE ($1::text IS NULL OR w.id = $1 OR $3::bigint IS NULL AND strpos(lower(split_part(w.url, '?', 1)), lower($1)) > 0)
     AND ($2::text IS NULL OR a.name = $2 OR a.id::text = $2)
     AND ($3::bigint IS NULL OR w.account_id = $3 AND w.deleted_at IS NULL)
   ORDER BY w.pk DESC LIMIT ${MAX_MATCHING_WEBHOOKS + 1}`,
);

type Listed = Omit<FoundDelivery, 'subject'> & { body: string };
type Row = (Listed | { pk: null }) & ScanExtent;

interface Search {
  /** SQL of the table expressions `candidate`, the read rows, and `page`, the matching ones, at most `$1`. */
  tables: string;
  values: unknown[];
  maxScanned: number;
}

/** The subscriptions of a filter; undefined without such a filter. */
async function matchingWebhooks(
  db: Queryable,
  { webhook, account, accountId }: DeliverySearch,
): Promise<bigint[] | undefined> {
  if (webhook === undefined && account === undefined && accountId === undefined) return undefined;
  const values = [webhook ?? null, account ?? null, accountId ?? null];
  const found = await db.query<{ pk: bigint }>(MATCHING_WEBHOOKS, values);
  return found.map(({ pk }) => pk);
}

/** Rows of pending deliveries that a page sorts. */
const MAX_SORTED = 10_000;

const COUNT_PENDING = sqlPlannedPerCall(
  'count_pending_of_subscriptions',
  `SELECT count(*)::int AS pending FROM (
     SELECT FROM delivery WHERE subscription_pk = ANY ($1::bigint[]) AND status = 'pending' LIMIT ${MAX_SORTED + 1}) p`,
);

/** Pending rows are few while the receivers answer; of a dead receiver they are the newest rows. */
async function hasFewPending(
  db: Queryable,
  { status, eventId, errorCode }: DeliverySearch,
  subscriptionPks: readonly bigint[] | undefined,
): Promise<boolean> {
  if (subscriptionPks === undefined || eventId !== undefined || errorCode !== undefined) return true;
  if (status !== 'pending' && status !== 'retrying') return true;
  const [row] = await db.query<{ pending: number }>(COUNT_PENDING, [subscriptionPks]);
  return (row?.pending ?? 0) <= MAX_SORTED;
}

/** A page of deliveries, newest first. */
export async function searchDeliveries(
  db: Queryable,
  filter: DeliverySearch,
  limit: number,
  after: bigint | undefined,
): Promise<FoundPage> {
  const subscriptionPks = await matchingWebhooks(db, filter);
  if (subscriptionPks?.length === 0) return { outcome: 'page', deliveries: [] };
  if (subscriptionPks && subscriptionPks.length > MAX_MATCHING_WEBHOOKS) return { outcome: 'too_many_webhooks' };
  const isSorted = await hasFewPending(db, filter, subscriptionPks);
  const { tables, values, maxScanned } = searchOf(filter, subscriptionPks, limit, after, isSorted);
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
  filter: DeliverySearch,
  subscriptionPks: readonly bigint[] | undefined,
  limit: number,
  after: bigint | undefined,
  /** Whether to read and sort all pending rows of the subscriptions; otherwise a page walks the newest rows. */
  isSorted = true,
): Search {
  const { status, eventId, errorCode, eventType, since } = filter;
  const values: unknown[] = [limit + 1];
  const bind = (value: unknown) => `$${values.push(value)}`;
  const subscriptions = subscriptionPks && bind(subscriptionPks);
  const behind = after === undefined ? '' : `AND d.pk < ${bind(after)}::bigint`;
  const isPending = status === 'pending' || status === 'retrying';
  const isUnsent = status === 'failed' || status === 'cancelled';
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
  } else if (isUnsent && subscriptionPks === undefined) {
    from = `delivery d WHERE d.status = '${status}' ${behind} ORDER BY d.pk DESC`;
  } else if (isPending && isSorted) {
    const within = subscriptions === undefined ? '' : `AND d.subscription_pk = ANY (${subscriptions}::bigint[])`;
    const tried = status === 'retrying' ? 'AND d.attempt_count > 0' : '';
    from = `delivery d WHERE d.status = 'pending' ${tried} ${within} ${behind} ORDER BY d.pk + 0 DESC`;
  } else if (subscriptionPks !== undefined) {
    // The index of unsent rows leaves no other condition, so each subscription has the rows of the page.
    remaining = isUnsent ? [] : ofStatus;
    maxScanned =
      remaining.length === 0 && eventType === undefined
        ? limit + 1
        : Math.max(MIN_SCANNED, Math.floor(MAX_SCANNED / Math.max(1, subscriptionPks.length)));
    from = `unnest(${subscriptions}::bigint[]) AS s (pk)
      CROSS JOIN LATERAL (SELECT * FROM delivery d WHERE d.subscription_pk = s.pk ${isUnsent ? `AND d.status = '${status}'` : ''} ${behind}
        ORDER BY d.pk DESC LIMIT ${maxScanned}) d ORDER BY d.pk DESC`;
  } else {
    from = `delivery d WHERE true ${behind} ORDER BY d.pk DESC`;
    remaining = ofStatus;
  }
  if (eventType !== undefined) remaining.push(`e.type = ${bind(eventType)}`);
  if (remaining.length === 0) maxScanned = limit + 1;
  if (since !== undefined) remaining.push(`c.created_at >= ${bind(since.toISOString())}::timestamptz`);

  const tables = `candidate AS MATERIALIZED (SELECT d.* FROM ${from} LIMIT ${maxScanned}),
    page AS MATERIALIZED (
      SELECT c.*, e.id AS event_id, e.type AS event_type, e.body, ${ALERT_OF_EVENT} AS alert_id FROM candidate c JOIN event e ON e.pk = c.event_pk
      ${remaining.length === 0 ? '' : `WHERE ${remaining.join(' AND ')}`} ORDER BY c.pk DESC LIMIT $1)`;
  return { tables, values, maxScanned };
}

const SCANNED = `SELECT count(*)::int AS scanned, min(pk) AS last_pk, min(created_at) AS last_at FROM candidate`;

const LISTED = `SELECT p.*, s.* FROM (${SCANNED}) s
    LEFT JOIN (
      SELECT d.pk, d.id, d.event_id, d.event_type, d.status, d.attempt_count AS attempts, d.created_at, ${NEXT_ATTEMPT}, d.delivered_at,
        d.last_status_code, d.last_error, ${IS_SKIPPED}, d.is_test, d.body, d.alert_id, w.id AS webhook_id, w.url, w.account_id, a.name AS account_name,
        t.duration_ms AS last_duration_ms
      FROM page d JOIN webhook_subscription w ON w.pk = d.subscription_pk JOIN account a ON a.id = w.account_id
      LEFT JOIN delivery_attempt t ON t.delivery_pk = d.pk AND t.attempt_number = d.attempt_count) p ON true
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
export async function countDeliveries(
  db: Queryable,
  filter: DeliverySearch,
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
async function findRetryable(db: Queryable, filter: DeliverySearch, newest?: bigint): Promise<RetryableRow[]> {
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
export async function countRetryable(db: Queryable, filter: DeliverySearch): Promise<RetryableRange | null> {
  const rows = await findRetryable(db, filter);
  const [newest, oldest] = [rows[0], rows.at(-1)];
  return newest && oldest ? { deliveries: rows.length, oldest: oldest.pk, newest: newest.pk } : null;
}

/** The keys of the deliveries of a confirmed bulk retry, by subscription. Later ones are not among them. */
export async function listRetryable(
  db: Queryable,
  filter: DeliverySearch,
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
