import { type Queryable, sql } from '../db/tx.ts';

/*
 * The rate of a webhook, over all deliverers. `rate_at` is the time up to which the permits are used: a claim moves it on by one interval
 * per attempt. The claim has locked the row of the subscription, so the rate needs no lock and no second store.
 */

/** Unused permits last this long, so that claims can be a quarter of a second apart. A slow webhook keeps one. */
const BURST_SECONDS = 0.25;
/** A claim without a permit is repeated after this at the earliest, so that several attempts share a claim. */
const MIN_WAIT_SECONDS = 0.2;

/** The time of the statement: one moment for all parts of a formula. A statement that waited for a lock grants less, never more. */
const NOW = 'statement_timestamp()';
const USED_UNTIL = `greatest(rate_at, ${NOW} - greatest(${BURST_SECONDS}, 1 / max_per_second) * interval '1 second')`;

/** SQL of the number of attempts that a subscription may begin now; NULL without a limit. A microsecond of tolerance for the rounding. */
export const PERMITS = `CASE WHEN held_until > ${NOW} THEN 0 WHEN max_per_second IS NOT NULL THEN
     floor((extract(epoch FROM ${NOW} - ${USED_UNTIL})::float8 + 0.000001) * max_per_second)::int END`;

/** SQL of the seconds until a further permit; NULL without a limit. */
export const NEXT_PERMIT_SECONDS = `CASE WHEN held_until > ${NOW} THEN extract(epoch FROM held_until - ${NOW})::float8
     WHEN max_per_second IS NOT NULL THEN
     greatest(${MIN_WAIT_SECONDS}, extract(epoch FROM ${USED_UNTIL} - ${NOW})::float8 + 1 / max_per_second) END`;

/** SQL of whether a subscription `w` has a permit or no limit. */
const HAS_PERMIT = `(w.held_until IS NULL OR w.held_until <= clock_timestamp()) AND (w.max_per_second IS NULL OR w.rate_at IS NULL
     OR w.rate_at + 1 / w.max_per_second * interval '1 second' <= clock_timestamp())`;

const USE_PERMITS = sql(
  'use_permits',
  `UPDATE webhook_subscription w SET rate_at = ${USED_UNTIL} + u.attempts / max_per_second * interval '1 second'
   FROM unnest($1::bigint[], $2::int[]) AS u (pk, attempts) WHERE w.pk = u.pk AND max_per_second IS NOT NULL`,
);

/** Uses permits of subscriptions that this transaction has locked. */
export async function usePermits(
  tx: Queryable,
  used: readonly { subscriptionPk: bigint; attempts: number }[],
): Promise<void> {
  if (used.length === 0) return;
  await tx.query(USE_PERMITS, [used.map(({ subscriptionPk }) => subscriptionPk), used.map(({ attempts }) => attempts)]);
}

const HOLD = sql(
  'hold_subscription',
  `UPDATE webhook_subscription SET held_until = greatest(held_until, clock_timestamp() + $2 * interval '1 second') WHERE pk = $1`,
);

/** Stops the claims of a subscription for a time, because its service asked for it. */
export async function holdSubscription(db: Queryable, subscriptionPk: bigint, seconds: number): Promise<void> {
  await db.query(HOLD, [subscriptionPk, seconds]);
}

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
