import { type Queryable, sql } from '../db/tx.ts';
import { HAS_PERMIT } from './rate.ts';

const HAS_DUE = sql(
  'has_due_deliveries',
  `SELECT EXISTS (SELECT FROM delivery WHERE subscription_pk = $1 AND status = 'pending' AND next_attempt_at <= clock_timestamp()
     AND (locked_until IS NULL OR locked_until < clock_timestamp())) AS is_due`,
);

/** Whether a claim may find a due row. It takes no lock, so callers use it where a claim would mostly find nothing. */
export async function hasDue(db: Queryable, subscriptionPk: bigint): Promise<boolean> {
  const [row] = await db.query<{ isDue: boolean }>(HAS_DUE, [subscriptionPk]);
  return row?.isDue ?? false;
}

const DUE_SUBSCRIPTIONS = sql(
  'due_subscriptions',
  `SELECT DISTINCT subscription_pk FROM delivery
   WHERE status = 'pending' AND next_attempt_at <= clock_timestamp()
     AND (locked_until IS NULL OR locked_until < clock_timestamp())
   LIMIT $1`,
);

/** Subscriptions with due rows that no worker holds. The reconcile timer wakes them. */
export async function dueSubscriptions(db: Queryable, limit: number): Promise<bigint[]> {
  const rows = await db.query<{ subscriptionPk: bigint }>(DUE_SUBSCRIPTIONS, [limit]);
  return rows.map((row) => row.subscriptionPk);
}

const DUE_OF_LANE = sql(
  'due_subscriptions_of_lane',
  // The recursion steps through the index from subscription to subscription, so a million due rows of one cost a single step.
  `WITH RECURSIVE pending AS (
     (SELECT subscription_pk FROM delivery WHERE status = 'pending' AND subscription_pk > $3 ORDER BY subscription_pk LIMIT 1)
     UNION ALL
     SELECT (SELECT d.subscription_pk FROM delivery d
             WHERE d.status = 'pending' AND d.subscription_pk > p.subscription_pk ORDER BY d.subscription_pk LIMIT 1)
     FROM pending p WHERE p.subscription_pk IS NOT NULL)
   SELECT p.subscription_pk AS pk, w.failing_since IS NOT NULL AS is_failing
   FROM pending p JOIN webhook_subscription w ON w.pk = p.subscription_pk
   WHERE p.subscription_pk % $1 = $2 AND ${HAS_PERMIT} AND EXISTS (
     SELECT FROM delivery d WHERE d.subscription_pk = p.subscription_pk AND d.status = 'pending'
       AND d.next_attempt_at <= clock_timestamp() AND (d.locked_until IS NULL OR d.locked_until < clock_timestamp()))
   LIMIT $4`,
);

export interface DueSubscription {
  pk: bigint;
  isFailing: boolean;
}

/** Subscriptions of one of `lanes` lanes with due and unclaimed rows, by key, after `after`. */
export function dueSubscriptionsOfLane(
  db: Queryable,
  { lane, lanes, after, limit }: { lane: number; lanes: number; after: bigint; limit: number },
): Promise<DueSubscription[]> {
  return db.query(DUE_OF_LANE, [lanes, lane, after, limit]);
}

const OLDEST_OVERDUE = sql(
  'oldest_overdue_delivery',
  `SELECT coalesce(extract(epoch FROM clock_timestamp() - min(greatest(d.next_attempt_at, w.held_until))), 0)::float AS seconds
   FROM delivery d JOIN webhook_subscription w ON w.pk = d.subscription_pk
   WHERE d.status = 'pending' AND d.next_attempt_at <= clock_timestamp() AND w.max_per_second IS NULL
     AND (w.held_until IS NULL OR w.held_until <= clock_timestamp())`,
);

/**
 * How long the oldest overdue delivery has waited, seconds. It raises the alarm for a stopped stage. Deliveries of a webhook with a limited
 * rate may wait for long, so they do not count. The end of a hold stays in the row, and deliveries wait from then on.
 */
export async function oldestOverdueSeconds(db: Queryable): Promise<number> {
  const [row] = await db.query<{ seconds: number }>(OLDEST_OVERDUE);
  return row?.seconds ?? 0;
}
