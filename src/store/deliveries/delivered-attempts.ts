import { createBatcher, oncePerOwner } from '../db/batcher.ts';
import { type Database, isContentRefused, sql } from '../db/tx.ts';
import type { ClaimedDelivery } from './claims.ts';
import type { AttemptRecord, FinishedAttempt } from './outcomes.ts';

/** An attempt that the receiver accepted. */
export interface DeliveredAttempt {
  subscriptionPk: bigint;
  delivery: ClaimedDelivery;
  attempt: AttemptRecord;
}

/** Locks before the deliveries, in the order of the claim, so that the two cannot deadlock. Healthy subscriptions are not locked. */
const LOCK_RECOVERING = sql(
  'lock_recovering_subscriptions',
  `SELECT pk FROM webhook_subscription
   WHERE pk = ANY ($1::bigint[]) AND deleted_at IS NULL AND (failing_since IS NOT NULL OR exhausted_count > 0)
   ORDER BY pk FOR NO KEY UPDATE`,
);

const LOCK_DELIVERIES = sql(
  'lock_delivered',
  'SELECT pk FROM delivery WHERE pk = ANY ($1::bigint[]) ORDER BY pk FOR NO KEY UPDATE',
);

/** Has the guard of a single attempt; only updated deliveries get an attempt row. */
const FINISH_DELIVERED = sql(
  'finish_delivered',
  `WITH made AS MATERIALIZED (
     SELECT * FROM unnest($1::bigint[], $2::int[], $3::timestamptz[], $4::timestamptz[], $5::int[], $6::int[], $7::bytea[])
       AS made (pk, attempt_count, lease, started_at, duration_ms, status_code, response_excerpt)),
   done AS (
     UPDATE delivery d SET status = 'delivered', attempt_count = d.attempt_count + 1, locked_until = NULL,
       delivered_at = coalesce(d.delivered_at, clock_timestamp()), last_status_code = made.status_code, last_error = NULL
     FROM made
     WHERE d.pk = made.pk AND d.attempt_count = made.attempt_count AND d.locked_until = made.lease
       AND d.status IN ('pending', 'cancelled')
     RETURNING d.pk),
   logged AS (
     INSERT INTO delivery_attempt (delivery_pk, attempt_number, started_at, duration_ms, outcome, status_code, response_excerpt)
     SELECT made.pk, made.attempt_count + 1, made.started_at, made.duration_ms, 'delivered', made.status_code, made.response_excerpt
     FROM made JOIN done USING (pk)
     ON CONFLICT DO NOTHING)
   SELECT pk FROM done`,
);

const NOTE_SUCCESSES = sql(
  'note_subscription_successes',
  'UPDATE webhook_subscription SET failing_since = NULL, exhausted_count = 0 WHERE pk = ANY ($1::bigint[])',
);

/**
 * Records delivered attempts of any subscriptions in one transaction: one commit and four statements for all of them. Returns the
 * deliveries that this worker still held. A crash before the commit leaves the rows pending, as for a single attempt.
 */
export async function finishDelivered(db: Database, made: readonly DeliveredAttempt[]): Promise<Set<bigint>> {
  const counted = made.filter(({ delivery }) => !delivery.isTest);
  const subscriptionPks = [...new Set(counted.map(({ subscriptionPk }) => subscriptionPk))];
  return db.transaction(async (tx) => {
    const recovering = await tx.query<{ pk: bigint }>(LOCK_RECOVERING, [subscriptionPks]);
    await tx.query(LOCK_DELIVERIES, [made.map(({ delivery }) => delivery.pk)]);
    const done = await tx.query<{ pk: bigint }>(FINISH_DELIVERED, [
      made.map(({ delivery }) => delivery.pk),
      made.map(({ delivery }) => delivery.attemptCount),
      made.map(({ delivery }) => delivery.lease),
      made.map(({ attempt }) => attempt.startedAt.toISOString()),
      made.map(({ attempt }) => Math.round(attempt.durationMs)),
      made.map(({ attempt }) => attempt.statusCode ?? null),
      made.map(({ attempt }) => (attempt.responseExcerpt === undefined ? null : Buffer.from(attempt.responseExcerpt))),
    ]);
    const recorded = new Set(done.map((row) => row.pk));
    const succeeded = new Set(
      counted.filter(({ delivery }) => recorded.has(delivery.pk)).map(({ subscriptionPk }) => subscriptionPk),
    );
    const recovered = recovering.map((row) => row.pk).filter((pk) => succeeded.has(pk));
    if (recovered.length > 0) await tx.query(NOTE_SUCCESSES, [recovered]);
    return recorded;
  });
}

const MAX_BATCH = 100;

/** When Postgres refuses a row, each attempt runs alone, so that the others are recorded. */
const recorders = oncePerOwner((db: Database) =>
  createBatcher<DeliveredAttempt, FinishedAttempt>({
    maxItems: MAX_BATCH,
    isWorthSplitting: isContentRefused,
    async run(made) {
      const recorded = await finishDelivered(db, made);
      return made.map(({ delivery }) => ({ isRecorded: recorded.has(delivery.pk) }));
    },
  }),
);

/** Records one delivered attempt, together with all that end while a transaction is in flight. Resolves after the commit. */
export function recordDelivered(db: Database, made: DeliveredAttempt): Promise<FinishedAttempt> {
  return recorders(db)(made);
}
