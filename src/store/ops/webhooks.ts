import { type Queryable, sql, sqlPlannedPerCall } from '../db/tx.ts';
import { type DeliveryWithLog, findDeliveryWithLog } from '../deliveries/reads.ts';
import { MEASURED_DELIVERIES, readWebhookHours, type WebhookHours } from '../deliveries/webhook-figures.ts';

/** The operator's view of a subscription of any account: no secret. */
export interface OpsSubscription {
  pk: bigint;
  id: string;
  accountId: bigint;
  accountName: string;
  url: string;
  events: string[];
  status: 'active' | 'paused';
  pauseReason: string | null;
  /** The first failure since the last success; null after a success. */
  failingSince: Date | null;
  /** Deliveries that exhausted their schedule since then. */
  exhaustedCount: number;
  createdAt: Date;
  deletedAt: Date | null;
}

const FIND_SUBSCRIPTION = sql(
  'ops_find_subscription',
  `SELECT w.pk, w.id, w.account_id, a.name AS account_name, w.url, w.events, w.status, w.pause_reason, w.failing_since,
     w.exhausted_count, w.created_at, w.deleted_at
   FROM webhook_subscription w JOIN account a ON a.id = w.account_id
   WHERE w.id = $1 OR w.pk = $2`,
);

/** A subscription by its public id, or by the key that jobs contain, deleted ones included; null when unknown. */
export async function findOpsSubscription(db: Queryable, id: string): Promise<OpsSubscription | null> {
  const key = /^\d{1,18}$/.test(id) ? id : null;
  const [subscription] = await db.query<OpsSubscription>(FIND_SUBSCRIPTION, [id, key]);
  return subscription ?? null;
}

/** The limit of the count of pending deliveries; the page shows "more" beyond it. */
export const MAX_COUNTED_PENDING = 10_000;
const MAX_ERRORS_SHOWN = 20;

export interface FailedAttempt {
  deliveryId: string;
  attempt: number;
  startedAt: Date;
  durationMs: number;
  statusCode: number | null;
  errorCode: string | null;
}

export interface WebhookActivity extends WebhookHours {
  /** The last failed attempts, newest first. */
  errors: FailedAttempt[];
  /** Pending deliveries, counted up to MAX_COUNTED_PENDING. */
  pending: number;
}

const ERRORS = sql(
  'ops_webhook_errors',
  `WITH recent AS MATERIALIZED (
     SELECT pk, id FROM delivery WHERE subscription_pk = $1 ORDER BY pk DESC LIMIT ${MEASURED_DELIVERIES})
   SELECT recent.id AS delivery_id, a.attempt_number AS attempt, a.started_at, a.duration_ms, a.status_code, a.error_code
   FROM recent JOIN delivery_attempt a ON a.delivery_pk = recent.pk WHERE a.outcome = 'failed'
   ORDER BY a.started_at DESC LIMIT ${MAX_ERRORS_SHOWN}`,
);

const COUNT_PENDING = sql(
  'ops_count_pending',
  `SELECT count(*)::int AS pending FROM (
     SELECT FROM delivery WHERE subscription_pk = $1 AND status = 'pending' LIMIT ${MAX_COUNTED_PENDING + 1}) p`,
);

/** The attempts of the last 24 hours of a subscription, from its newest deliveries. */
export async function readWebhookActivity(db: Queryable, subscriptionPk: bigint): Promise<WebhookActivity> {
  const hours = await readWebhookHours(db, subscriptionPk);
  const errors = await db.query<FailedAttempt>(ERRORS, [subscriptionPk]);
  const [count] = await db.query<{ pending: number }>(COUNT_PENDING, [subscriptionPk]);
  return { ...hours, errors, pending: count?.pending ?? 0 };
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

/** Newest deliveries per error code that a read looks through: an endpoint may fail a million times a day. */
const LOOKED_THROUGH_EACH = 2_000;

/**
 * SQL of the deliveries without a success since `$1::timestamptz`, by subscription. It steps from one error code to the next along the
 * index `delivery_errors`, and reads the newest deliveries of each, so its cost does not depend on the number of deliveries.
 */
const UNSENT_BY_WEBHOOK = `code AS (
     (SELECT last_error FROM delivery WHERE last_error IS NOT NULL ORDER BY last_error LIMIT 1)
     UNION ALL
     SELECT (SELECT d.last_error FROM delivery d WHERE d.last_error > c.last_error ORDER BY d.last_error LIMIT 1)
     FROM code c WHERE c.last_error IS NOT NULL),
   unsent AS MATERIALIZED (
     SELECT d.subscription_pk, (count(*) FILTER (WHERE d.status = 'failed'))::int AS failed,
       (count(*) FILTER (WHERE d.status = 'pending'))::int AS retrying, min(d.created_at) AS since,
       (array_agg(d.last_error ORDER BY d.pk DESC))[1] AS last_error,
       (array_agg(d.last_status_code ORDER BY d.pk DESC))[1] AS last_status_code
     FROM code c CROSS JOIN LATERAL (
       SELECT * FROM delivery e WHERE e.last_error = c.last_error ORDER BY e.pk DESC LIMIT ${LOOKED_THROUGH_EACH}) d
     WHERE d.status IN ('failed', 'pending') AND d.created_at >= $1::timestamptz GROUP BY d.subscription_pk)`;

/** A webhook that got some of its deliveries, and others not. */
export interface PartlyFailingWebhook {
  id: string;
  url: string;
  account: string;
  /** Deliveries since the given moment whose schedule is exhausted, and those that will be sent again. */
  failed: number;
  retrying: number;
  /** The creation of the oldest of them. */
  since: Date;
  lastError: string;
  lastStatusCode: number | null;
}

/** Deliveries that will be sent again are a problem from this number on. */
const MANY_RETRYING = 5;

const PARTLY_FAILING = sqlPlannedPerCall(
  'ops_partly_failing',
  `WITH RECURSIVE ${UNSENT_BY_WEBHOOK}
   SELECT w.id, w.url, a.name AS account, u.failed, u.retrying, u.since, u.last_error, u.last_status_code,
     (count(*) OVER ())::int AS total
   FROM unsent u JOIN webhook_subscription w ON w.pk = u.subscription_pk JOIN account a ON a.id = w.account_id
   WHERE w.failing_since IS NULL AND w.deleted_at IS NULL AND w.status = 'active'
     AND (u.failed > 0 OR u.retrying >= ${MANY_RETRYING}) AND ($3::bigint IS NULL OR w.account_id = $3)
   ORDER BY u.failed + u.retrying DESC, w.pk LIMIT $2`,
);

/** The webhooks that fail in part since a moment, of all accounts or of one, most failures first, and their number. */
export async function listPartlyFailing(
  db: Queryable,
  sinceMs: number,
  limit: number,
  accountId?: bigint,
): Promise<{ webhooks: PartlyFailingWebhook[]; total: number }> {
  const values = [new Date(sinceMs).toISOString(), limit, accountId ?? null];
  const rows = await db.query<PartlyFailingWebhook & { total: number }>(PARTLY_FAILING, values);
  return { webhooks: rows, total: rows[0]?.total ?? 0 };
}

/** In the order of the list. `stopped`: oddswire paused it, because its receiver is gone or failed for days. */
export const WEBHOOK_STATES = ['failing', 'stopped', 'partly', 'paused', 'active'] as const;
export type WebhookState = (typeof WEBHOOK_STATES)[number];

export interface WebhookFilter {
  state?: WebhookState;
  /** The name of an account, or its number. */
  account?: string;
  /** The id of a webhook, or a part of its URL; the search excludes the query string after `?`. */
  webhook?: string;
}

export interface ListedWebhook {
  pk: bigint;
  id: string;
  url: string;
  accountId: bigint;
  accountName: string;
  state: WebhookState;
  pauseReason: string | null;
  failingSince: Date | null;
  /** Deliveries of the last day that failed for good, and those that will be sent again after an error. */
  failed: number;
  retrying: number;
  /** Of its newest MEASURED_EACH deliveries of the last day: those with a final result, and those of them that were delivered. */
  finished: number;
  delivered: number;
  /** Milliseconds, of the attempts of these deliveries; null without one. */
  p95Ms: number | null;
  /** Counted up to MAX_PENDING_EACH. */
  pending: number;
  lastError: string | null;
  lastStatusCode: number | null;
  lastDeliveredAt: Date | null;
}

/** The number of newest deliveries that the figures of one webhook cover. */
export const MEASURED_EACH = 200;
/** The limit of the count of pending deliveries. */
export const MAX_PENDING_EACH = 1_000;

/**
 * The rank needs all webhooks that match, some 0.3 s per 100,000 on two busy cores; their figures are read for one page only. The order
 * changes while webhooks fail and recover, so a page begins at a position instead of a key.
 */
const LIST = sqlPlannedPerCall(
  'ops_list_webhooks',
  `WITH RECURSIVE ${UNSENT_BY_WEBHOOK},
   ranked AS (
     SELECT w.pk, w.id, w.url, w.account_id, a.name AS account_name, w.pause_reason, w.failing_since, u.failed, u.retrying, u.last_error,
       u.last_status_code,
       CASE WHEN w.status = 'paused' AND w.pause_reason IS NOT NULL THEN 'stopped' WHEN w.status = 'paused' THEN 'paused'
         WHEN w.failing_since IS NOT NULL THEN 'failing' WHEN u.subscription_pk IS NOT NULL THEN 'partly' ELSE 'active' END AS state
     FROM webhook_subscription w JOIN account a ON a.id = w.account_id LEFT JOIN unsent u ON u.subscription_pk = w.pk
     WHERE w.deleted_at IS NULL
       AND ($2::text IS NULL OR w.id = $2 OR strpos(lower(split_part(w.url, '?', 1)), lower($2)) > 0)
       AND ($3::text IS NULL OR a.name = $3 OR a.id::text = $3)),
   page AS MATERIALIZED (
     SELECT * FROM ranked WHERE $4::text IS NULL OR state = $4
     ORDER BY array_position($5::text[], state), failing_since, coalesce(failed, 0) + coalesce(retrying, 0) DESC, pk DESC
     LIMIT $6 OFFSET $7)
   SELECT p.pk, p.id, p.url, p.account_id, p.account_name, p.state, p.pause_reason, p.failing_since, coalesce(p.failed, 0) AS failed,
     coalesce(p.retrying, 0) AS retrying, p.last_error, p.last_status_code, f.finished, f.delivered, f.last_delivered_at, t.p95_ms,
     (SELECT count(*)::int FROM (
        SELECT FROM delivery d WHERE d.subscription_pk = p.pk AND d.status = 'pending' LIMIT ${MAX_PENDING_EACH}) c) AS pending
   FROM page p
   CROSS JOIN LATERAL (
     SELECT (count(*) FILTER (WHERE d.status IN ('delivered', 'failed')))::int AS finished,
       (count(*) FILTER (WHERE d.status = 'delivered'))::int AS delivered, max(d.delivered_at) AS last_delivered_at,
       array_agg(d.pk) AS pks
     FROM (SELECT * FROM delivery e WHERE e.subscription_pk = p.pk ORDER BY e.pk DESC LIMIT ${MEASURED_EACH}) d
     WHERE d.created_at >= $1::timestamptz) f
   CROSS JOIN LATERAL (
     SELECT percentile_disc(0.95) WITHIN GROUP (ORDER BY a.duration_ms) AS p95_ms
     FROM delivery_attempt a WHERE a.delivery_pk = ANY (f.pks)) t
   ORDER BY array_position($5::text[], p.state), p.failing_since, coalesce(p.failed, 0) + coalesce(p.retrying, 0) DESC, p.pk DESC`,
);

/** A page of webhooks, worst first, from a position on. Figures cover the time since `sinceMs` (epoch milliseconds). */
export async function listWebhooks(
  db: Queryable,
  filter: WebhookFilter,
  { sinceMs, limit, offset }: { sinceMs: number; limit: number; offset: number },
): Promise<{ webhooks: ListedWebhook[]; next?: number }> {
  const { webhook = null, account = null, state = null } = filter;
  const values = [new Date(sinceMs).toISOString(), webhook, account, state, WEBHOOK_STATES, limit + 1, offset];
  const rows = await db.query<ListedWebhook>(LIST, values);
  return { webhooks: rows.slice(0, limit), ...(rows.length > limit && { next: offset + limit }) };
}
