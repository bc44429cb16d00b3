import { type Database, sql, type Tx } from '../db/tx.ts';
import type { CancelledDelivery } from './cancelled.ts';
import type { ClaimedDelivery } from './claims.ts';
import { cancelPending } from './subscriptions.ts';

/** The stored result of one attempt. */
export interface AttemptRecord {
  startedAt: Date;
  durationMs: number;
  outcome: 'delivered' | 'failed';
  statusCode?: number;
  errorCode?: string;
  /** At most 4 KiB, bytes as received. */
  responseExcerpt?: Uint8Array;
}

/**
 * The next state of the delivery. A failure with `isCharged` false does not count towards pausing the subscription: the fault was on
 * this side, or the attempt was a manual retry after the schedule had ended.
 */
export type DeliveryVerdict =
  | { state: 'delivered' }
  | { state: 'retry'; delaySeconds: number }
  | { state: 'failed'; pause?: 'gone'; isCharged?: boolean };

const INSERT_ATTEMPT = sql(
  'insert_attempt',
  `INSERT INTO delivery_attempt (delivery_pk, attempt_number, started_at, duration_ms, outcome, status_code, error_code, response_excerpt)
   VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT DO NOTHING RETURNING delivery_pk`,
);

const FINISH_DELIVERY = sql(
  'finish_delivery',
  // `delivered_at` is the time of the first success; later attempts keep it.
  `UPDATE delivery SET attempt_count = attempt_count + 1, locked_until = NULL,
     status = CASE WHEN status = 'cancelled' AND $3 <> 'delivered' THEN 'cancelled' ELSE $3 END,
     next_attempt_at = CASE WHEN $3 = 'pending' THEN clock_timestamp() + $4 * interval '1 second' ELSE next_attempt_at END,
     delivered_at = coalesce(delivered_at, CASE WHEN $3 = 'delivered' THEN clock_timestamp() END),
     last_status_code = $5, last_error = $6
   WHERE pk = $1 AND attempt_count = $2 AND locked_until = $7::timestamptz AND status IN ('pending', 'cancelled') RETURNING pk`,
);

/** Locks before the delivery, in the order of the claim, so that the two cannot deadlock. A success of a healthy one locks nothing. */
const LOCK_FOR_OUTCOME = sql(
  'lock_subscription_for_outcome',
  `SELECT status = 'active' AS is_active FROM webhook_subscription
   WHERE pk = $1 AND deleted_at IS NULL AND ($2 OR failing_since IS NOT NULL OR exhausted_count > 0) FOR NO KEY UPDATE`,
);

const NOTE_SUCCESS = sql(
  'note_subscription_success',
  `UPDATE webhook_subscription SET failing_since = NULL, exhausted_count = 0 WHERE pk = $1`,
);

/** A subscription is paused after this long without a success and this many exhausted deliveries. */
export const AUTO_PAUSE_AFTER_DAYS = 5;
export const AUTO_PAUSE_AFTER_EXHAUSTED = 10;
const IS_GIVEN_UP = `exhausted_count + $2::int >= ${AUTO_PAUSE_AFTER_EXHAUSTED}
         AND failing_since < clock_timestamp() - interval '${AUTO_PAUSE_AFTER_DAYS} days'`;

const NOTE_FAILURE = sql(
  'note_subscription_failure',
  `UPDATE webhook_subscription SET failing_since = coalesce(failing_since, clock_timestamp()),
     exhausted_count = exhausted_count + $2::int,
     pause_reason = CASE WHEN status = 'active' AND $3 THEN 'gone'
       WHEN status = 'active' AND ${IS_GIVEN_UP}
       THEN 'failing' ELSE pause_reason END,
     status = CASE WHEN $3 OR (${IS_GIVEN_UP})
       THEN 'paused' ELSE status END
   WHERE pk = $1 RETURNING status = 'paused' AS is_paused, pause_reason`,
);

export interface FinishedAttempt {
  /** False when this worker no longer held the attempt: its lease had ended and another worker finished it. */
  isRecorded: boolean;
  /** Set when this attempt paused the subscription. */
  pausedFor?: string;
  /** The deliveries that the pause cancelled. */
  cancelled?: readonly CancelledDelivery[];
}

/**
 * Records an attempt and updates the delivery in one transaction, guarded by attempt count and lease. When it pauses the subscription,
 * it cancels pending deliveries, as a manual pause does. A crash before the commit leaves the row pending: the lease ends and the
 * attempt is repeated with the same event id, which is the only possible duplicate.
 */
export async function finishAttempt(
  db: Database,
  subscriptionPk: bigint,
  delivery: ClaimedDelivery,
  attempt: AttemptRecord,
  verdict: DeliveryVerdict,
): Promise<FinishedAttempt> {
  return db.transaction(async (tx) => {
    const countsForNothing = delivery.isTest || (verdict.state === 'failed' && verdict.isCharged === false);
    const [subscription] = countsForNothing
      ? []
      : await tx.query<{ isActive: boolean }>(LOCK_FOR_OUTCOME, [subscriptionPk, verdict.state !== 'delivered']);
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
    if (!subscription.isActive || pausedFor === undefined) return { isRecorded: true };
    const cancelled = await cancelPending(tx, subscriptionPk, { tests: false });
    return { isRecorded: true, pausedFor, cancelled };
  });
}

/** Returns the reason when this outcome paused the subscription. */
async function noteOutcome(tx: Tx, subscriptionPk: bigint, verdict: DeliveryVerdict): Promise<string | undefined> {
  if (verdict.state === 'delivered') {
    await tx.query(NOTE_SUCCESS, [subscriptionPk]);
    return undefined;
  }
  const isGone = verdict.state === 'failed' && verdict.pause === 'gone';
  const [row] = await tx.query<{ isPaused: boolean; pauseReason: string | null }>(NOTE_FAILURE, [
    subscriptionPk,
    verdict.state === 'failed' ? 1 : 0,
    isGone,
  ]);
  return row?.isPaused ? (row.pauseReason ?? undefined) : undefined;
}
