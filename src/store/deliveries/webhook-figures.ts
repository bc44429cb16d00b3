import { type Queryable, sql } from '../db/tx.ts';

/** The number of newest deliveries that the figures cover, because one endpoint may get a million a day. */
export const MEASURED_DELIVERIES = 5_000;

/** Attempts within one period. Durations in milliseconds. */
interface AttemptFigures {
  attempts: number;
  delivered: number;
  p50Ms: number;
  p95Ms: number;
}

export interface WebhookHours {
  /** By starting hour, epoch seconds, oldest first, of the last 24 hours; hours without an attempt are omitted. */
  hours: (AttemptFigures & { hour: number })[];
  /** The total of these hours; null without an attempt. */
  day: AttemptFigures | null;
  /** The creation of the oldest counted delivery, when older ones are not counted: earlier hours are unknown. */
  countedSince: Date | null;
}

const HOURS = sql(
  'webhook_hours',
  `WITH recent AS MATERIALIZED (
     SELECT pk, created_at FROM delivery WHERE subscription_pk = $1 ORDER BY pk DESC LIMIT ${MEASURED_DELIVERIES}),
   attempt AS (
     SELECT floor(extract(epoch FROM a.started_at) / 3600) * 3600::float8 AS hour, a.outcome, a.duration_ms
     FROM recent JOIN delivery_attempt a ON a.delivery_pk = recent.pk
     WHERE a.started_at > clock_timestamp() - interval '24 hours')
   SELECT hour, count(*)::int AS attempts, (count(*) FILTER (WHERE outcome = 'delivered'))::int AS delivered,
     percentile_disc(0.5) WITHIN GROUP (ORDER BY duration_ms) AS p50_ms,
     percentile_disc(0.95) WITHIN GROUP (ORDER BY duration_ms) AS p95_ms,
     (SELECT CASE WHEN count(*) = ${MEASURED_DELIVERIES} THEN min(created_at) END FROM recent) AS counted_since
   FROM attempt GROUP BY GROUPING SETS ((hour), ()) ORDER BY hour`,
);

/** The attempts of the last 24 hours of a subscription, from its newest deliveries. */
export async function readWebhookHours(db: Queryable, subscriptionPk: bigint): Promise<WebhookHours> {
  type Row = AttemptFigures & { hour: number | null; countedSince: Date | null };
  const result: WebhookHours = { hours: [], day: null, countedSince: null };
  for (const { hour, countedSince, ...figures } of await db.query<Row>(HOURS, [subscriptionPk])) {
    result.countedSince = countedSince;
    if (hour === null) result.day = figures.attempts === 0 ? null : figures;
    else result.hours.push({ ...figures, hour });
  }
  return result;
}

/** The newest deliveries of a webhook that its figures cover. */
const FIGURED_DELIVERIES = 500;
/** The limit of the count of pending deliveries. */
export const MAX_PENDING_COUNTED = 10_000;

/** The attempts of the last 24 hours of one webhook. */
export interface WebhookFigures {
  id: string;
  attempts: number;
  delivered: number;
  /** Milliseconds; null without an attempt. */
  p95Ms: number | null;
  /** Counted up to one more than MAX_PENDING_COUNTED. */
  pending: number;
}

const FIGURES = sql(
  'account_webhook_figures',
  `SELECT w.id, f.attempts, f.delivered, f.p95_ms, p.pending
   FROM webhook_subscription w
   CROSS JOIN LATERAL (
     SELECT count(*)::int AS attempts, (count(*) FILTER (WHERE a.outcome = 'delivered'))::int AS delivered,
       percentile_disc(0.95) WITHIN GROUP (ORDER BY a.duration_ms) AS p95_ms
     FROM (SELECT pk FROM delivery WHERE subscription_pk = w.pk ORDER BY pk DESC LIMIT ${FIGURED_DELIVERIES}) d
     JOIN delivery_attempt a ON a.delivery_pk = d.pk
     WHERE a.started_at > clock_timestamp() - interval '24 hours') f
   CROSS JOIN LATERAL (
     SELECT count(*)::int AS pending FROM (
       SELECT FROM delivery WHERE subscription_pk = w.pk AND status = 'pending' LIMIT ${MAX_PENDING_COUNTED + 1}) due) p
   WHERE w.account_id = $1 AND w.id = ANY ($2::text[])`,
);

/** The figures of these webhooks of an account, by their ids. */
export async function readWebhookFigures(
  db: Queryable,
  accountId: bigint,
  ids: readonly string[],
): Promise<Map<string, WebhookFigures>> {
  const rows = await db.query<WebhookFigures>(FIGURES, [accountId, ids]);
  return new Map(rows.map((row) => [row.id, row]));
}
