import { type Queryable, sql } from '../db/tx.ts';

/*
 * The contents of a restored database that an operator must know before the processes start. `oddswire restore-check` reads them once.
 */

interface NewestRow {
  /** The kind of rows. */
  stage: string;
  /** Null without a row. */
  at: Date | null;
  /** By the clock of the database; negative for a row of the future. */
  ageSeconds: number | null;
}

/**
 * Trades and candles have no index by time: the polls and the observations of the newest days stand for them. Keys grow with time, so the
 * newest rows by key are the newest ones up to the length of a transaction.
 */
const NEWEST = sql(
  'newest_rows',
  `SELECT stage, at, extract(epoch FROM clock_timestamp() - at)::float AS age_seconds FROM (
     SELECT 'polls' AS stage, max(last_success_at) AS at FROM poll_state
     UNION ALL SELECT 'prices', max(received_at) FROM latest_price
     UNION ALL SELECT 'observations', max(received_at) FROM observation
       WHERE received_at >= (SELECT max(received_at) - interval '1 hour' FROM latest_price)
     UNION ALL SELECT 'alerts', max(created_at) FROM (SELECT created_at FROM alert ORDER BY pk DESC LIMIT 100) a
     UNION ALL SELECT 'events', max(created_at) FROM (SELECT created_at FROM event ORDER BY pk DESC LIMIT 100) e
     UNION ALL SELECT 'deliveries', max(coalesce(delivered_at, created_at))
       FROM (SELECT delivered_at, created_at FROM delivery ORDER BY pk DESC LIMIT 1000) d
     UNION ALL SELECT 'API keys', max(greatest(created_at, last_used_at, revoked_at)) FROM api_key
     UNION ALL SELECT 'operator pages', max(at) FROM ops_throughput) newest`,
);

/** The newest row of each stage. */
export function newestRows(db: Queryable): Promise<NewestRow[]> {
  return db.query(NEWEST);
}

interface PendingWork {
  /** Active alerts, of so many accounts. */
  activeAlerts: number;
  alertAccounts: number;
  /** The part that the stored prices already meet. */
  metAlerts: number;
  pendingDeliveries: number;
  /** The part whose attempt is due. */
  dueDeliveries: number;
  dueWebhooks: number;
  /** Walks through older trades and repairs that are not finished. */
  openWalks: number;
  /** Backtests that have not ended. */
  openBacktests: number;
}

const PENDING = sql(
  'pending_work',
  `SELECT a.*, d.*,
     (SELECT count(*)::int FROM trade_history WHERE status IN ('queued', 'walking'))
       + (SELECT count(*)::int FROM trade_repair WHERE status IN ('queued', 'walking')) AS open_walks,
     (SELECT count(*)::int FROM alert_backtest WHERE finished_at IS NULL) AS open_backtests
   FROM (
     SELECT count(*)::int AS active_alerts, count(DISTINCT account_id)::int AS alert_accounts,
       (count(*) FILTER (WHERE CASE condition WHEN 'above' THEN l.price >= target ELSE l.price <= target END))::int AS met_alerts
     FROM alert LEFT JOIN latest_price l USING (token_id) WHERE status = 'active') a
   CROSS JOIN (
     SELECT count(*)::int AS pending_deliveries,
       (count(*) FILTER (WHERE next_attempt_at <= clock_timestamp()))::int AS due_deliveries,
       (count(DISTINCT subscription_pk) FILTER (WHERE next_attempt_at <= clock_timestamp()))::int AS due_webhooks
     FROM delivery WHERE status = 'pending') d`,
);

/** The work that the processes do, or do again, after their start. */
export async function pendingWork(db: Queryable): Promise<PendingWork> {
  const [row] = await db.query<PendingWork>(PENDING);
  if (!row) throw new TypeError('an aggregate returned no row');
  return row;
}
