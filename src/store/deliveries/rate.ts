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
export const HAS_PERMIT = `(w.held_until IS NULL OR w.held_until <= clock_timestamp()) AND (w.max_per_second IS NULL OR w.rate_at IS NULL
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
