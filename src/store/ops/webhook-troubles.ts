import { type Queryable, sqlPlannedPerCall } from '../db/tx.ts';

/** Newest deliveries per error code that a read looks through: an endpoint may fail a million times a day. */
const LOOKED_THROUGH_EACH = 2_000;

/**
 * SQL of the deliveries without a success since `$1::timestamptz`, by subscription. It steps from one error code to the next along the
 * index `delivery_errors`, and reads the newest deliveries of each, so its cost does not depend on the number of deliveries.
 */
export const UNSENT_BY_WEBHOOK = `code AS (
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
