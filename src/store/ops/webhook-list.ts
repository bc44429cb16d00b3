import { type Queryable, sqlPlannedPerCall } from '../db/tx.ts';
import { UNSENT_BY_WEBHOOK } from './webhook-troubles.ts';

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
