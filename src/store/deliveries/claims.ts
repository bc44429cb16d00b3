import { createBatcher, oncePerOwner } from '../db/batcher.ts';
import { type Database, type Queryable, type Statement, sql } from '../db/tx.ts';
import { ALERT_OF_EVENT, type CancelledDelivery, type CancelledRow, toCancelled } from './cancelled.ts';

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
  /** The alert it tells of, if it is one. */
  alertId?: string;
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
  /** Its attempts have failed since the last success. */
  isFailing: boolean;
}

export interface Claim {
  subscription: ClaimedSubscription;
  deliveries: ClaimedDelivery[];
  /** What was cancelled instead, because the subscription takes no more. */
  cancelled: CancelledDelivery[];
  /** Nothing was claimed because the receiver is failing and that was not wanted. */
  isHeldBack: boolean;
}

/** What is wanted of one subscription. */
export interface ClaimRequest {
  subscriptionPk: bigint;
  /** Attempts to begin at most. */
  limit: number;
  /** False: nothing is claimed when its receiver is failing. */
  evenIfFailing?: boolean;
}

/** Locked in order; where many are claimed at once none is waited for, so that what holds one up holds up no other. */
const lockText = (waiting: '' | 'SKIP LOCKED') =>
  `SELECT pk, id, url, sealed_secret, status = 'active' AND deleted_at IS NULL AS is_live, deleted_at IS NOT NULL AS is_deleted,
     failing_since IS NOT NULL AS is_failing,
     CASE WHEN previous_secret_until > clock_timestamp() THEN previous_sealed_secret END AS previous_sealed_secret
   FROM webhook_subscription WHERE pk = ANY ($1::bigint[]) ORDER BY pk FOR NO KEY UPDATE ${waiting}`;
const LOCK_SUBSCRIPTIONS = sql('lock_subscriptions', lockText(''));
const LOCK_FREE_SUBSCRIPTIONS = sql('lock_free_subscriptions', lockText('SKIP LOCKED'));

const CANCEL_UNWANTED = sql(
  'cancel_unwanted_deliveries',
  `UPDATE delivery d SET status = 'cancelled'
   FROM unnest($1::bigint[], $2::boolean[]) AS unwanted (subscription_pk, is_deleted), event e
   WHERE d.subscription_pk = unwanted.subscription_pk AND d.status = 'pending' AND (NOT d.is_test OR unwanted.is_deleted)
     AND (d.locked_until IS NULL OR d.locked_until < clock_timestamp()) AND e.pk = d.event_pk
   RETURNING d.subscription_pk, d.id AS delivery_id, e.id AS event_id, ${ALERT_OF_EVENT} AS alert_id`,
);

const CLAIM_DUE = sql(
  'claim_due_deliveries',
  // A row whose late attempt ends while we wait for it is judged again by the outer conditions only. The lists are read by
  // subqueries so that the planner does not know how long they are: it would plan anew for each length, which costs more than the claim.
  `UPDATE delivery d SET locked_until = clock_timestamp() + ${CLAIM_LEASE_SECONDS} * interval '1 second'
   FROM event e
   WHERE e.pk = d.event_pk AND d.status = 'pending' AND d.next_attempt_at <= clock_timestamp()
     AND (d.locked_until IS NULL OR d.locked_until < clock_timestamp()) AND d.pk IN (
     SELECT due.pk FROM unnest((SELECT $1::bigint[]), (SELECT $2::bigint[])) AS wanted (subscription_pk, attempts)
     CROSS JOIN LATERAL (
       SELECT pk FROM delivery
       WHERE subscription_pk = wanted.subscription_pk AND status = 'pending' AND next_attempt_at <= clock_timestamp()
         AND (locked_until IS NULL OR locked_until < clock_timestamp())
       ORDER BY (attempt_count > 0), next_attempt_at, pk
       LIMIT least(wanted.attempts, greatest(0, ${MAX_IN_FLIGHT} - (
         SELECT count(*) FROM delivery
         WHERE subscription_pk = wanted.subscription_pk AND status = 'pending' AND locked_until >= clock_timestamp())))) AS due)
   RETURNING d.pk, d.subscription_pk, d.id, d.attempt_count, d.schedule_from, d.is_test, d.created_at,
     d.locked_until::text AS lease, e.id AS event_id, e.type AS event_type, e.body, ${ALERT_OF_EVENT} AS alert_id`,
);

interface SubscriptionRow extends Omit<ClaimedSubscription, 'previousSealedSecret'> {
  previousSealedSecret: string | null;
  isLive: boolean;
  isDeleted: boolean;
}

interface ClaimRow extends Omit<ClaimedDelivery, 'alertId'> {
  subscriptionPk: bigint;
  alertId: string | null;
}

/**
 * Takes up to `limit` due deliveries of a subscription, first attempts ahead of retries, never more than MAX_IN_FLIGHT in
 * all processes together. A paused or deleted subscription has what is left cancelled; test events go out while paused.
 * Null when the subscription is unknown.
 */
export async function claimDue(
  db: Database,
  subscriptionPk: bigint,
  limit: number,
  evenIfFailing = true,
): Promise<Claim | null> {
  const claims = await claim(db, [{ subscriptionPk, limit, evenIfFailing }], LOCK_SUBSCRIPTIONS);
  return claims.get(subscriptionPk) ?? null;
}

/**
 * The same for many subscriptions (each named once) in one transaction of three statements. Those that are unknown, and those
 * that somebody else holds at the moment, are not in the answer.
 */
export function claimDueOfMany(db: Database, requests: readonly ClaimRequest[]): Promise<Map<bigint, Claim>> {
  return claim(db, requests, LOCK_FREE_SUBSCRIPTIONS);
}

const MAX_CLAIMED_TOGETHER = 64;

const claimers = oncePerOwner((db: Database) =>
  createBatcher<ClaimRequest, Claim | undefined>({
    maxItems: MAX_CLAIMED_TOGETHER,
    async run(requests) {
      const claims = await claimDueOfMany(db, requests);
      return requests.map(({ subscriptionPk }) => claims.get(subscriptionPk));
    },
  }),
);

/** As `claimDue`, in one transaction with whatever the process claims at the same time. */
export async function claimTogether(db: Database, request: ClaimRequest): Promise<Claim | null> {
  const { subscriptionPk, limit, evenIfFailing } = request;
  return (await claimers(db)(request)) ?? claimDue(db, subscriptionPk, limit, evenIfFailing);
}

async function claim(db: Database, requests: readonly ClaimRequest[], lock: Statement): Promise<Map<bigint, Claim>> {
  return db.transaction(async (tx) => {
    const found = await tx.query<SubscriptionRow>(lock, [requests.map(({ subscriptionPk }) => subscriptionPk)]);
    const claims = new Map(found.map((row) => [row.pk, { subscription: toSubscription(row), ...NOTHING() }]));
    const unwanted = found.filter((row) => !row.isLive);
    if (unwanted.length > 0) {
      const isDeleted = unwanted.map((row) => row.isDeleted);
      const rows = await tx.query<CancelledRow>(CANCEL_UNWANTED, [unwanted.map((row) => row.pk), isDeleted]);
      for (const row of rows) claims.get(row.subscriptionPk)?.cancelled.push(toCancelled(row));
    }
    const gone = new Set(found.filter((row) => row.isDeleted).map((row) => row.pk));
    const wanted = requests.filter(({ subscriptionPk: pk, evenIfFailing = true }) => {
      const known = claims.get(pk);
      if (!known || gone.has(pk)) return false;
      known.isHeldBack = known.subscription.isFailing && !evenIfFailing;
      return !known.isHeldBack;
    });
    if (wanted.length === 0) return claims;
    const rows = await tx.query<ClaimRow>(CLAIM_DUE, [
      wanted.map(({ subscriptionPk }) => subscriptionPk),
      wanted.map(({ limit }) => limit),
    ]);
    for (const row of rows) claims.get(row.subscriptionPk)?.deliveries.push(toDelivery(row));
    return claims;
  });
}

const NOTHING = (): Omit<Claim, 'subscription'> => ({ deliveries: [], cancelled: [], isHeldBack: false });

function toSubscription({
  isLive: _,
  isDeleted: __,
  previousSealedSecret,
  ...row
}: SubscriptionRow): ClaimedSubscription {
  return { ...row, ...(previousSealedSecret !== null && { previousSealedSecret }) };
}

function toDelivery({ subscriptionPk: _, alertId, ...row }: ClaimRow): ClaimedDelivery {
  return { ...row, ...(alertId !== null && { alertId }) };
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
