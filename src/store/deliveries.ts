import { type Database, type Queryable, sql, type Tx } from './tx.ts';

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
  /** Until when the attempt is ours, as the database wrote it: whoever takes the row over changes it. */
  lease: string;
  createdAt: Date;
}

export interface ClaimedSubscription {
  pk: bigint;
  id: string;
  url: string;
  sealedSecret: string;
}

export interface Claim {
  subscription: ClaimedSubscription;
  deliveries: ClaimedDelivery[];
}

const LOCK_SUBSCRIPTION = sql(
  'lock_subscription',
  `SELECT pk, id, url, sealed_secret, status = 'active' AND deleted_at IS NULL AS is_live, deleted_at IS NOT NULL AS is_deleted
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
   RETURNING d.pk, d.id, d.attempt_count, d.is_test, d.created_at, d.locked_until::text AS lease, e.id AS event_id, e.type AS event_type, e.body`,
);

interface ClaimRow {
  pk: string;
  id: string;
  attempt_count: number;
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
      is_live: boolean;
      is_deleted: boolean;
    }>(LOCK_SUBSCRIPTION, [subscriptionPk]);
    if (!row) return null;
    if (!row.is_live) await tx.query(CANCEL_UNWANTED, [subscriptionPk, row.is_deleted]);
    const rows = row.is_deleted ? [] : await tx.query<ClaimRow>(CLAIM_DUE, [subscriptionPk, limit]);
    return {
      subscription: { pk: BigInt(row.pk), id: row.id, url: row.url, sealedSecret: row.sealed_secret },
      deliveries: rows.map((claimed) => ({
        pk: BigInt(claimed.pk),
        id: claimed.id,
        eventId: claimed.event_id,
        eventType: claimed.event_type,
        body: claimed.body,
        isTest: claimed.is_test,
        attemptCount: claimed.attempt_count,
        lease: claimed.lease,
        createdAt: claimed.created_at,
      })),
    };
  });
}

/** What one attempt came to, as it is stored. */
export interface AttemptRecord {
  startedAt: Date;
  durationMs: number;
  outcome: 'delivered' | 'failed';
  statusCode?: number;
  errorCode?: string;
  /** At most 4 KiB, bytes as received. */
  responseExcerpt?: Uint8Array;
}

/** Where the delivery goes from here. */
export type DeliveryVerdict =
  | { state: 'delivered' }
  | { state: 'retry'; delaySeconds: number }
  | { state: 'failed'; pause?: 'gone' };

const INSERT_ATTEMPT = sql(
  'insert_attempt',
  `INSERT INTO delivery_attempt (delivery_pk, attempt_number, started_at, duration_ms, outcome, status_code, error_code, response_excerpt)
   VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT DO NOTHING RETURNING delivery_pk`,
);

const FINISH_DELIVERY = sql(
  'finish_delivery',
  `UPDATE delivery SET attempt_count = attempt_count + 1, locked_until = NULL,
     status = CASE WHEN status = 'cancelled' AND $3 <> 'delivered' THEN 'cancelled' ELSE $3 END,
     next_attempt_at = CASE WHEN $3 = 'pending' THEN clock_timestamp() + $4 * interval '1 second' ELSE next_attempt_at END,
     delivered_at = CASE WHEN $3 = 'delivered' THEN clock_timestamp() END,
     last_status_code = $5, last_error = $6
   WHERE pk = $1 AND attempt_count = $2 AND locked_until = $7::timestamptz AND status IN ('pending', 'cancelled') RETURNING pk`,
);

/** Taken before the delivery, as the claim does, so that the two cannot deadlock; a success of a healthy one locks nothing. */
const LOCK_FOR_OUTCOME = sql(
  'lock_subscription_for_outcome',
  `SELECT status = 'active' AS is_active FROM webhook_subscription
   WHERE pk = $1 AND deleted_at IS NULL AND ($2 OR failing_since IS NOT NULL OR exhausted_count > 0) FOR NO KEY UPDATE`,
);

const NOTE_SUCCESS = sql(
  'note_subscription_success',
  `UPDATE webhook_subscription SET failing_since = NULL, exhausted_count = 0 WHERE pk = $1`,
);

/** Auto-pause after 5 days without a success and 10 exhausted deliveries (DESIGN section 8). */
const NOTE_FAILURE = sql(
  'note_subscription_failure',
  `UPDATE webhook_subscription SET failing_since = coalesce(failing_since, clock_timestamp()),
     exhausted_count = exhausted_count + $2::int,
     pause_reason = CASE WHEN status = 'active' AND $3 THEN 'gone'
       WHEN status = 'active' AND exhausted_count + $2::int >= 10 AND failing_since < clock_timestamp() - interval '5 days'
       THEN 'failing' ELSE pause_reason END,
     status = CASE WHEN $3 OR (exhausted_count + $2::int >= 10 AND failing_since < clock_timestamp() - interval '5 days')
       THEN 'paused' ELSE status END
   WHERE pk = $1 RETURNING status = 'paused' AS is_paused, pause_reason`,
);

export interface FinishedAttempt {
  /** False when the attempt was no longer ours: the lease had run out and somebody else finished it. */
  isRecorded: boolean;
  /** Set when this attempt paused the subscription. */
  pausedFor?: string;
}

/**
 * Records an attempt and moves the delivery on, guarded by attempt count and lease, in one transaction. Dying before the commit
 * leaves the row pending: the lease ends and the attempt is repeated, which is the one honest duplicate.
 */
export async function finishAttempt(
  db: Database,
  subscriptionPk: bigint,
  delivery: ClaimedDelivery,
  attempt: AttemptRecord,
  verdict: DeliveryVerdict,
): Promise<FinishedAttempt> {
  return db.transaction(async (tx) => {
    const [subscription] = delivery.isTest
      ? []
      : await tx.query<{ is_active: boolean }>(LOCK_FOR_OUTCOME, [subscriptionPk, verdict.state !== 'delivered']);
    const status = verdict.state === 'retry' ? 'pending' : verdict.state;
    const finished = await tx.query(FINISH_DELIVERY, [
      delivery.pk,
      delivery.attemptCount,
      status,
      verdict.state === 'retry' ? verdict.delaySeconds : 0,
      attempt.statusCode ?? null,
      attempt.errorCode ?? null,
      delivery.lease,
    ]);
    if (finished.length === 0) return { isRecorded: false };
    await tx.query(INSERT_ATTEMPT, [
      delivery.pk,
      delivery.attemptCount + 1,
      attempt.startedAt.toISOString(),
      Math.round(attempt.durationMs),
      attempt.outcome,
      attempt.statusCode ?? null,
      attempt.errorCode ?? null,
      attempt.responseExcerpt === undefined ? null : Buffer.from(attempt.responseExcerpt),
    ]);
    if (!subscription) return { isRecorded: true };
    const pausedFor = await noteOutcome(tx, subscriptionPk, verdict);
    return { isRecorded: true, ...(subscription.is_active && pausedFor !== undefined && { pausedFor }) };
  });
}

/** Why the subscription is paused now, if we paused it. */
async function noteOutcome(tx: Tx, subscriptionPk: bigint, verdict: DeliveryVerdict): Promise<string | undefined> {
  if (verdict.state === 'delivered') {
    await tx.query(NOTE_SUCCESS, [subscriptionPk]);
    return undefined;
  }
  const isGone = verdict.state === 'failed' && verdict.pause === 'gone';
  const [row] = await tx.query<{ is_paused: boolean; pause_reason: string | null }>(NOTE_FAILURE, [
    subscriptionPk,
    verdict.state === 'failed' ? 1 : 0,
    isGone,
  ]);
  return row?.is_paused ? (row.pause_reason ?? undefined) : undefined;
}

const RELEASE = sql(
  'release_delivery',
  `UPDATE delivery SET locked_until = NULL, next_attempt_at = clock_timestamp() + $3 * interval '1 second', last_error = $4
   WHERE pk = $1 AND attempt_count = $2 AND locked_until = $5::timestamptz AND status = 'pending'`,
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
