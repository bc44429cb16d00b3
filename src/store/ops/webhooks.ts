import { type Queryable, sql } from '../db/tx.ts';
import { MEASURED_DELIVERIES, readWebhookHours, type WebhookHours } from '../deliveries/webhook-hours.ts';

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
