import type { ChatFormat } from '../../domain/chat/chat-url.ts';
import { createBatcher, oncePerOwner } from '../db/batcher.ts';
import { type Database, type Queryable, type Statement, sql } from '../db/tx.ts';
import { ALERT_OF_EVENT, type CancelledDelivery, type CancelledRow, toCancelled } from './cancelled.ts';
import { NEXT_PERMIT_SECONDS, PERMITS, usePermits } from './due.ts';
import { SKIPPED_BEFORE } from './order.ts';

/** Longer than the attempt's deadline (at most 15 s) plus database time: two workers never hold one attempt. */
const CLAIM_LEASE_SECONDS = 60;
/** Attempts of one subscription in flight at once, over all processes. The claim itself counts them. */
export const MAX_IN_FLIGHT = 8;

/** An attempt that this worker may make until the lease ends. */
export interface ClaimedDelivery {
  pk: bigint;
  id: string;
  eventId: string;
  eventType: string;
  /** The alert that fired the event, for alert events. */
  alertId?: string;
  body: string;
  isTest: boolean;
  /** Attempts before this one. */
  attemptCount: number;
  /** The number of these attempts that precede the current retry schedule. */
  scheduleFrom: number;
  /** End of the lease in the text form of the database. A takeover changes it, so it identifies this claim. */
  lease: string;
  createdAt: Date;
  /** The key within which deliveries arrive in order. */
  orderKey?: string;
  /** Ids of skipped events of this key that no delivered request named, oldest first. */
  skipped?: readonly string[];
}

export interface ClaimedSubscription {
  pk: bigint;
  id: string;
  accountId: bigint;
  url: string;
  sealedSecret: string;
  /** The secret before a rotation, while it still signs `webhook-signature`. */
  previousSealedSecret?: string;
  /** JSON of additional headers. */
  sealedHeaders?: string;
  /** The chat service that gets a message instead of the body, at its sealed URL. */
  chat?: { format: ChatFormat; sealedUrl: string };
  /** Its attempts have failed since the last success. */
  isFailing: boolean;
}

export interface Claim {
  subscription: ClaimedSubscription;
  deliveries: ClaimedDelivery[];
  /** Deliveries that the claim cancelled, because the subscription is paused or deleted. */
  cancelled: CancelledDelivery[];
  /** The rate of the subscription stopped the claim: due deliveries may be left, and have a permit after this time. */
  waitMs?: number;
}

/** The request for attempts of one subscription. */
export interface ClaimRequest {
  subscriptionPk: bigint;
  /** Maximum number of attempts. */
  limit: number;
  /** Asked when the receiver is failing, maybe more than once: false claims nothing. Absent: true. */
  evenIfFailing?: () => boolean;
  /** The presence of the claiming process: the claim ends with it. Absent: the claim ends by its time only. */
  presence?: number | null;
}

/** Locks in key order. A claim of many skips locked subscriptions, so that one slow subscription does not delay the others. */
const lockText = (waiting: '' | 'SKIP LOCKED') =>
  `SELECT pk, id, account_id, url, sealed_secret, status = 'active' AND deleted_at IS NULL AS is_live, deleted_at IS NOT NULL AS is_deleted,
     failing_since IS NOT NULL AS is_failing, sealed_headers, format, sealed_url,
     ${PERMITS} AS permits, ${NEXT_PERMIT_SECONDS} AS next_permit_seconds,
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
  // After a lock wait Postgres rechecks only the outer conditions, so they repeat the inner ones for a row whose late attempt just ended.
  // Subqueries hide the list lengths from the planner: it would plan again for each length, which costs more than the claim.
  `UPDATE delivery d SET locked_until = clock_timestamp() + ${CLAIM_LEASE_SECONDS} * interval '1 second', locked_by = $3
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
     d.locked_until::text AS lease, e.id AS event_id, e.type AS event_type, e.body, ${ALERT_OF_EVENT} AS alert_id,
     d.order_key, ${SKIPPED_BEFORE} AS skipped`,
);

interface SubscriptionRow extends Omit<ClaimedSubscription, 'previousSealedSecret' | 'sealedHeaders' | 'chat'> {
  format: ChatFormat | null;
  sealedUrl: string | null;
  previousSealedSecret: string | null;
  sealedHeaders: string | null;
  /** Null without a limit of the rate. */
  permits: number | null;
  nextPermitSeconds: number | null;
  isLive: boolean;
  isDeleted: boolean;
}

interface ClaimRow extends Omit<ClaimedDelivery, 'alertId' | 'orderKey' | 'skipped'> {
  subscriptionPk: bigint;
  alertId: string | null;
  orderKey: string | null;
  skipped: string[] | null;
}

/**
 * Claims for many subscriptions, each listed once, in one transaction of three statements. The answer omits unknown subscriptions
 * and subscriptions under lock of another transaction.
 */
export function claimDueOfMany(db: Database, requests: readonly ClaimRequest[]): Promise<Map<bigint, Claim>> {
  return claim(db, requests, LOCK_FREE_SUBSCRIPTIONS);
}

const MAX_CLAIMED_TOGETHER = 64;

const claimers = oncePerOwner((db: Database) =>
  createBatcher<ClaimRequest, Claim | undefined>({
    maxItems: MAX_CLAIMED_TOGETHER,
    async run(requests) {
      // The jobs of a wake-up and of a retry may ask for one subscription at once: only one gets the claim, the others claim alone.
      const byPk = new Map(requests.map((request) => [request.subscriptionPk, request]));
      const claims = await claimDueOfMany(db, [...byPk.values()]);
      return requests.map((request) => {
        const isChosen = byPk.get(request.subscriptionPk) === request;
        return isChosen ? claims.get(request.subscriptionPk) : undefined;
      });
    },
  }),
);

/**
 * Claims up to `limit` due deliveries of a subscription, first attempts before retries. All processes together hold at most
 * MAX_IN_FLIGHT. The claim cancels pending deliveries of a paused or deleted subscription; a paused one still gets test events.
 * Concurrent claims of this process share one transaction; a locked subscription is claimed alone, after its lock. Null when the
 * subscription is unknown.
 */
export async function claimTogether(db: Database, request: ClaimRequest): Promise<Claim | null> {
  const claimed = await claimers(db)(request);
  return claimed ?? (await claim(db, [request], LOCK_SUBSCRIPTIONS)).get(request.subscriptionPk) ?? null;
}

async function claim(db: Database, requests: readonly ClaimRequest[], lock: Statement): Promise<Map<bigint, Claim>> {
  return db.transaction(async (tx) => {
    const found = await tx.query<SubscriptionRow>(lock, [requests.map(({ subscriptionPk }) => subscriptionPk)]);
    const claims = new Map(
      found.map((row): [bigint, Claim] => [row.pk, { subscription: toSubscription(row), ...NOTHING() }]),
    );
    const unwanted = found.filter((row) => !row.isLive);
    if (unwanted.length > 0) {
      const isDeleted = unwanted.map((row) => row.isDeleted);
      const rows = await tx.query<CancelledRow>(CANCEL_UNWANTED, [unwanted.map((row) => row.pk), isDeleted]);
      for (const row of rows) claims.get(row.subscriptionPk)?.cancelled.push(toCancelled(row));
    }
    const wanted = wantedOf(requests, found, claims);
    if (wanted.length === 0) return claims;
    const rows = await tx.query<ClaimRow>(CLAIM_DUE, [
      wanted.map(({ subscriptionPk }) => subscriptionPk),
      wanted.map(({ limit }) => limit),
      // The requests of a transaction belong to one process.
      wanted.at(-1)?.presence ?? null,
    ]);
    for (const row of rows) claims.get(row.subscriptionPk)?.deliveries.push(toDelivery(row));
    const limitOf = new Map(wanted.map(({ subscriptionPk, limit }) => [subscriptionPk, limit]));
    const used: { subscriptionPk: bigint; attempts: number }[] = [];
    for (const row of found) {
      const known = claims.get(row.pk);
      if (row.permits === null || !known || known.deliveries.length === 0) continue;
      used.push({ subscriptionPk: row.pk, attempts: known.deliveries.length });
      // A full claim may leave due rows.
      if (known.deliveries.length === limitOf.get(row.pk)) known.waitMs = waitOf(row);
    }
    await usePermits(tx, used);
    return claims;
  });
}

/** The requests that may claim, with what the rate of their subscription permits. */
function wantedOf(
  requests: readonly ClaimRequest[],
  found: readonly SubscriptionRow[],
  claims: ReadonlyMap<bigint, Claim>,
): ClaimRequest[] {
  const rowOf = new Map(found.map((row) => [row.pk, row]));
  return requests.flatMap((request): ClaimRequest[] => {
    const { subscriptionPk: pk, evenIfFailing = () => true, limit } = request;
    const row = rowOf.get(pk);
    const known = claims.get(pk);
    if (!row || !known || row.isDeleted) return [];
    if (row.isFailing && !evenIfFailing()) return [];
    if (row.permits === null || row.permits >= limit) return [request];
    if (row.permits > 0) return [{ ...request, limit: row.permits }];
    known.waitMs = waitOf(row);
    return [];
  });
}

function waitOf({ nextPermitSeconds }: SubscriptionRow): number {
  return Math.ceil((nextPermitSeconds ?? 0) * 1000);
}

const NOTHING = (): Omit<Claim, 'subscription'> => ({ deliveries: [], cancelled: [] });

function toSubscription({
  isLive: _,
  isDeleted: __,
  permits: ___,
  nextPermitSeconds: ____,
  previousSealedSecret,
  sealedHeaders,
  format,
  sealedUrl,
  ...row
}: SubscriptionRow): ClaimedSubscription {
  return {
    ...row,
    ...(previousSealedSecret !== null && { previousSealedSecret }),
    ...(sealedHeaders !== null && { sealedHeaders }),
    ...(format !== null && sealedUrl !== null && { chat: { format, sealedUrl } }),
  };
}

function toDelivery({ subscriptionPk: _, alertId, orderKey, skipped, ...row }: ClaimRow): ClaimedDelivery {
  return {
    ...row,
    ...(alertId !== null && { alertId }),
    ...(orderKey !== null && { orderKey }),
    ...(skipped !== null && skipped.length > 0 && { skipped }),
  };
}

const RELEASE = sql(
  'release_delivery',
  `UPDATE delivery SET locked_until = NULL, next_attempt_at = clock_timestamp() + $3 * interval '1 second',
     last_error = coalesce($4, last_error)
   WHERE pk = $1 AND attempt_count = $2 AND locked_until = $5::timestamptz AND status IN ('pending', 'cancelled')`,
);

/** Releases a claim without an attempt: the fault was on this side, or, without an `error`, the attempt found no free connection. */
export async function releaseClaim(
  db: Queryable,
  delivery: ClaimedDelivery,
  delaySeconds: number,
  error?: string,
): Promise<void> {
  await db.query(RELEASE, [delivery.pk, delivery.attemptCount, delaySeconds, error ?? null, delivery.lease]);
}

const END_CLAIMS = sql(
  'end_claims',
  `UPDATE delivery SET locked_until = NULL, locked_by = NULL
   WHERE status = 'pending' AND locked_until IS NOT NULL AND locked_by = $1 RETURNING subscription_pk`,
);

/**
 * Ends every claim of a process, so that its deliveries are due again; returns their subscriptions. A process that still runs cannot
 * record the outcomes of these attempts.
 */
export async function endClaimsOf(db: Queryable, presence: number): Promise<bigint[]> {
  const rows = await db.query<{ subscriptionPk: bigint }>(END_CLAIMS, [presence]);
  return [...new Set(rows.map(({ subscriptionPk }) => subscriptionPk))];
}
