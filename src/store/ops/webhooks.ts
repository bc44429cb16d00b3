import { type Queryable, sql } from '../db/tx.ts';

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

/** The number of newest deliveries that the figures cover, because one endpoint may get a million a day. */
export const MEASURED_DELIVERIES = 5_000;
/** The limit of the count of pending deliveries; the page shows "more" beyond it. */
export const MAX_COUNTED_PENDING = 10_000;
const MAX_ERRORS_SHOWN = 20;

/** Attempts within one period. Durations in milliseconds. */
interface AttemptFigures {
  attempts: number;
  delivered: number;
  p50Ms: number;
  p95Ms: number;
}

export interface FailedAttempt {
  deliveryId: string;
  attempt: number;
  startedAt: Date;
  durationMs: number;
  statusCode: number | null;
  errorCode: string | null;
}

export interface WebhookActivity {
  /** By starting hour, epoch seconds, oldest first, of the last 24 hours; hours without an attempt are omitted. */
  hours: (AttemptFigures & { hour: number })[];
  /** The total of these hours; null without an attempt. */
  day: AttemptFigures | null;
  /** The last failed attempts, newest first. */
  errors: FailedAttempt[];
  /** Pending deliveries, counted up to MAX_COUNTED_PENDING. */
  pending: number;
}

const RECENT = `recent AS MATERIALIZED (
     SELECT pk, id FROM delivery WHERE subscription_pk = $1 ORDER BY pk DESC LIMIT ${MEASURED_DELIVERIES})`;

const FIGURES = sql(
  'ops_webhook_figures',
  `WITH ${RECENT},
   attempt AS (
     SELECT floor(extract(epoch FROM a.started_at) / 3600) * 3600::float8 AS hour, a.outcome, a.duration_ms
     FROM recent JOIN delivery_attempt a ON a.delivery_pk = recent.pk
     WHERE a.started_at > clock_timestamp() - interval '24 hours')
   SELECT hour, count(*)::int AS attempts, (count(*) FILTER (WHERE outcome = 'delivered'))::int AS delivered,
     percentile_disc(0.5) WITHIN GROUP (ORDER BY duration_ms) AS p50_ms,
     percentile_disc(0.95) WITHIN GROUP (ORDER BY duration_ms) AS p95_ms
   FROM attempt GROUP BY GROUPING SETS ((hour), ()) HAVING count(*) > 0 ORDER BY hour`,
);

const ERRORS = sql(
  'ops_webhook_errors',
  `WITH ${RECENT}
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
  const figures = await db.query<AttemptFigures & { hour: number | null }>(FIGURES, [subscriptionPk]);
  const errors = await db.query<FailedAttempt>(ERRORS, [subscriptionPk]);
  const [count] = await db.query<{ pending: number }>(COUNT_PENDING, [subscriptionPk]);
  const hours: WebhookActivity['hours'] = [];
  let day: AttemptFigures | null = null;
  for (const { hour, ...figure } of figures) {
    if (hour === null) day = figure;
    else hours.push({ ...figure, hour });
  }
  return { hours, day, errors, pending: count?.pending ?? 0 };
}
