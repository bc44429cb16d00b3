import { type Queryable, sql } from '../db/tx.ts';

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
