import { type Database, type Queryable, sql } from './tx.ts';

/** Longer than the attempt's deadline (at most 15 s) plus database time: two workers never hold one attempt. */
export const CLAIM_LEASE_SECONDS = 60;
/** Attempts of one subscription under way at once, over all processes: counted in the claim itself. */
export const MAX_IN_FLIGHT = 8;

/** One attempt that is ours to make until the lease ends. */
export interface ClaimedDelivery {
  pk: bigint;
  id: string;
  eventId: string;
  eventType: string;
  body: string;
  isTest: boolean;
  /** Attempts made before this one. */
  attemptCount: number;
  /** Of those, the ones before its retry schedule last began anew. */
  scheduleFrom: number;
  /** Until when the attempt is ours, as the database wrote it: whoever takes the row over changes it. */
  lease: string;
  createdAt: Date;
}

export interface ClaimedSubscription {
  pk: bigint;
  id: string;
  url: string;
  sealedSecret: string;
  /** The secret before a rotation, while it goes on signing `webhook-signature`. */
  previousSealedSecret?: string;
}

export interface Claim {
  subscription: ClaimedSubscription;
  deliveries: ClaimedDelivery[];
}

const LOCK_SUBSCRIPTION = sql(
  'lock_subscription',
  `SELECT pk, id, url, sealed_secret, status = 'active' AND deleted_at IS NULL AS is_live, deleted_at IS NOT NULL AS is_deleted,
     CASE WHEN previous_secret_until > clock_timestamp() THEN previous_sealed_secret END AS previous_sealed_secret
   FROM webhook_subscription WHERE pk = $1 FOR NO KEY UPDATE`,
);

const CANCEL_UNWANTED = sql(
  'cancel_unwanted_deliveries',
  `UPDATE delivery SET status = 'cancelled'
   WHERE subscription_pk = $1 AND status = 'pending' AND (NOT is_test OR $2)
     AND (locked_until IS NULL OR locked_until < clock_timestamp())`,
);

const CLAIM_DUE = sql(
  'claim_due_deliveries',
  // A row whose late attempt ends while we wait for it is judged again by the outer conditions only.
  `UPDATE delivery d SET locked_until = clock_timestamp() + ${CLAIM_LEASE_SECONDS} * interval '1 second'
   FROM event e
   WHERE e.pk = d.event_pk AND d.status = 'pending' AND d.next_attempt_at <= clock_timestamp()
     AND (d.locked_until IS NULL OR d.locked_until < clock_timestamp()) AND d.pk IN (
     SELECT pk FROM delivery
     WHERE subscription_pk = $1 AND status = 'pending' AND next_attempt_at <= clock_timestamp()
       AND (locked_until IS NULL OR locked_until < clock_timestamp())
     ORDER BY (attempt_count > 0), next_attempt_at, pk
     LIMIT least($2::bigint, greatest(0, ${MAX_IN_FLIGHT} - (
       SELECT count(*) FROM delivery
       WHERE subscription_pk = $1 AND status = 'pending' AND locked_until >= clock_timestamp()))))
   RETURNING d.pk, d.id, d.attempt_count, d.schedule_from, d.is_test, d.created_at, d.locked_until::text AS lease,
     e.id AS event_id, e.type AS event_type, e.body`,
);

interface ClaimRow {
  pk: string;
  id: string;
  attempt_count: number;
  schedule_from: number;
  is_test: boolean;
  lease: string;
  created_at: Date;
  event_id: string;
  event_type: string;
  body: string;
}

/**
 * Takes up to `limit` due deliveries of a subscription, first attempts ahead of retries, never more than MAX_IN_FLIGHT in
 * all processes together. A paused or deleted subscription has what is left cancelled; test events go out while paused.
 * Null when the subscription is unknown.
 */
export async function claimDue(db: Database, subscriptionPk: bigint, limit: number): Promise<Claim | null> {
  return db.transaction(async (tx) => {
    const [row] = await tx.query<{
      pk: string;
      id: string;
      url: string;
      sealed_secret: string;
      previous_sealed_secret: string | null;
      is_live: boolean;
      is_deleted: boolean;
    }>(LOCK_SUBSCRIPTION, [subscriptionPk]);
    if (!row) return null;
    if (!row.is_live) await tx.query(CANCEL_UNWANTED, [subscriptionPk, row.is_deleted]);
    const rows = row.is_deleted ? [] : await tx.query<ClaimRow>(CLAIM_DUE, [subscriptionPk, limit]);
    return {
      subscription: {
        pk: BigInt(row.pk),
        id: row.id,
        url: row.url,
        sealedSecret: row.sealed_secret,
        ...(row.previous_sealed_secret !== null && { previousSealedSecret: row.previous_sealed_secret }),
      },
      deliveries: rows.map((claimed) => ({
        pk: BigInt(claimed.pk),
        id: claimed.id,
        eventId: claimed.event_id,
        eventType: claimed.event_type,
        body: claimed.body,
        isTest: claimed.is_test,
        attemptCount: claimed.attempt_count,
        scheduleFrom: claimed.schedule_from,
        lease: claimed.lease,
        createdAt: claimed.created_at,
      })),
    };
  });
}

const HAS_DUE = sql(
  'has_due_deliveries',
  `SELECT EXISTS (SELECT FROM delivery WHERE subscription_pk = $1 AND status = 'pending' AND next_attempt_at <= clock_timestamp()
     AND (locked_until IS NULL OR locked_until < clock_timestamp())) AS is_due`,
);

/** Whether a claim may find something: a look that locks nothing, for where it mostly would not. */
export async function hasDue(db: Queryable, subscriptionPk: bigint): Promise<boolean> {
  const [row] = await db.query<{ is_due: boolean }>(HAS_DUE, [subscriptionPk]);
  return row?.is_due ?? false;
}

const RELEASE = sql(
  'release_delivery',
  `UPDATE delivery SET locked_until = NULL, next_attempt_at = clock_timestamp() + $3 * interval '1 second', last_error = $4
   WHERE pk = $1 AND attempt_count = $2 AND locked_until = $5::timestamptz AND status IN ('pending', 'cancelled')`,
);

/** Gives a claim back without charging the receiver: the fault was ours. */
export async function releaseClaim(
  db: Queryable,
  delivery: ClaimedDelivery,
  delaySeconds: number,
  error: string,
): Promise<void> {
  await db.query(RELEASE, [delivery.pk, delivery.attemptCount, delaySeconds, error, delivery.lease]);
}

const DUE_SUBSCRIPTIONS = sql(
  'due_subscriptions',
  `SELECT DISTINCT subscription_pk FROM delivery
   WHERE status = 'pending' AND next_attempt_at <= clock_timestamp()
     AND (locked_until IS NULL OR locked_until < clock_timestamp())
   LIMIT $1`,
);

/** Subscriptions with due rows nobody holds: what the restoring timer wakes. */
export async function dueSubscriptions(db: Queryable, limit: number): Promise<bigint[]> {
  const rows = await db.query<{ subscription_pk: string }>(DUE_SUBSCRIPTIONS, [limit]);
  return rows.map((row) => BigInt(row.subscription_pk));
}

const OLDEST_OVERDUE = sql(
  'oldest_overdue_delivery',
  `SELECT coalesce(extract(epoch FROM clock_timestamp() - min(next_attempt_at)), 0)::float AS seconds
   FROM delivery WHERE status = 'pending' AND next_attempt_at <= clock_timestamp()`,
);

/** How long the oldest overdue delivery has waited, seconds: the alarm for a stage that stopped. */
export async function oldestOverdueSeconds(db: Queryable): Promise<number> {
  const [row] = await db.query<{ seconds: number }>(OLDEST_OVERDUE);
  return row?.seconds ?? 0;
}
