import { derivedId } from '../../domain/values/ids.ts';
import { webhookFailingBody, webhookPausedBody } from '../../domain/webhooks/event-body.ts';
import { type ResponseHeaders, storedHeaders } from '../../domain/webhooks/response-headers.ts';
import { createBatcher, oncePerOwner } from '../db/batcher.ts';
import { type Database, isContentRefused, sql, type Tx } from '../db/tx.ts';
import type { CancelledDelivery } from './cancelled.ts';
import type { ClaimedDelivery } from './claims.ts';
import { insertDeliveries, insertEvents } from './events.ts';
import { lockOrder, reportSkipped, startNext } from './order.ts';
import { cancelPending } from './subscriptions.ts';

/** The stored result of one attempt. */
export interface AttemptRecord {
  startedAt: Date;
  durationMs: number;
  outcome: 'delivered' | 'failed';
  statusCode?: number;
  errorCode?: string;
  /** At most EXCERPT_BYTES, bytes as received. */
  responseExcerpt?: Uint8Array;
  responseHeaders?: ResponseHeaders;
}

/** A claimed attempt after its request. */
interface MadeAttempt {
  subscriptionPk: bigint;
  delivery: ClaimedDelivery;
  attempt: AttemptRecord;
}

/**
 * The next state of the delivery. A failure with `isCharged` false does not count towards pausing the subscription: the fault was on
 * this side, or the attempt was a manual retry after the schedule had ended.
 */
export type DeliveryVerdict = { state: 'delivered' } | FailureVerdict;
type FailureVerdict =
  | { state: 'retry'; delaySeconds: number }
  | { state: 'failed'; pause?: 'gone'; isCharged?: boolean };

interface FinishedAttempt {
  /** False when this worker no longer held the delivery: its lease had ended and another worker finished the attempt. */
  isRecorded: boolean;
  /** Set when this attempt paused the subscription. */
  pausedFor?: string;
  /** The deliveries that the pause cancelled. */
  cancelled?: readonly CancelledDelivery[];
  /** Other subscriptions that got an event about this one. */
  wake?: readonly bigint[];
}

/**
 * Updates deliveries and logs their attempts, guarded by attempt count and lease. `delivered_at` keeps the time of the first success
 * when a delivery is sent again.
 */
const FINISH_DELIVERIES = sql(
  'finish_deliveries',
  `WITH made AS MATERIALIZED (
     SELECT * FROM unnest($1::bigint[], $2::int[], $3::timestamptz[], $4::text[], $5::float8[], $6::timestamptz[], $7::int[],
         $8::text[], $9::int[], $10::text[], $11::bytea[], $12::text[])
       AS made (pk, attempt_count, lease, status, delay, started_at, duration_ms, outcome, status_code, error_code, response_excerpt,
         response_headers)),
   done AS (
     UPDATE delivery d SET attempt_count = d.attempt_count + 1, locked_until = NULL,
       status = CASE WHEN d.status = 'cancelled' AND made.status <> 'delivered' THEN 'cancelled' ELSE made.status END,
       next_attempt_at = CASE WHEN made.status = 'pending' THEN clock_timestamp() + made.delay * interval '1 second'
         ELSE d.next_attempt_at END,
       delivered_at = coalesce(d.delivered_at, CASE WHEN made.status = 'delivered' THEN clock_timestamp() END),
       last_status_code = made.status_code, last_error = made.error_code,
       is_skip_unreported = CASE WHEN d.order_key IS NOT NULL AND d.status = 'pending' AND made.status = 'failed' THEN true END
     FROM made
     WHERE d.pk = made.pk AND d.attempt_count = made.attempt_count AND d.locked_until = made.lease
       AND d.status IN ('pending', 'cancelled')
     RETURNING d.pk),
   logged AS (
     INSERT INTO delivery_attempt
       (delivery_pk, attempt_number, started_at, duration_ms, outcome, status_code, error_code, response_excerpt, response_headers)
     SELECT pk, attempt_count + 1, started_at, duration_ms, outcome, status_code, error_code, response_excerpt, response_headers
     FROM made JOIN done USING (pk)
     ON CONFLICT DO NOTHING)
   SELECT pk FROM done`,
);

/** Returns the deliveries that this worker still held. */
async function finishDeliveries(
  tx: Tx,
  made: readonly MadeAttempt[],
  verdict: DeliveryVerdict,
): Promise<ReadonlySet<bigint>> {
  const rows = await tx.query<{ pk: bigint }>(FINISH_DELIVERIES, [
    made.map(({ delivery }) => delivery.pk),
    made.map(({ delivery }) => delivery.attemptCount),
    made.map(({ delivery }) => delivery.lease),
    made.map(() => (verdict.state === 'retry' ? 'pending' : verdict.state)),
    made.map(() => (verdict.state === 'retry' ? verdict.delaySeconds : 0)),
    made.map(({ attempt }) => attempt.startedAt.toISOString()),
    made.map(({ attempt }) => Math.round(attempt.durationMs)),
    made.map(({ attempt }) => attempt.outcome),
    made.map(({ attempt }) => attempt.statusCode ?? null),
    made.map(({ attempt }) => attempt.errorCode ?? null),
    made.map(({ attempt }) => (attempt.responseExcerpt === undefined ? null : Buffer.from(attempt.responseExcerpt))),
    made.map(({ attempt }) => (attempt.responseHeaders === undefined ? null : storedHeaders(attempt.responseHeaders))),
  ]);
  const recorded = new Set(rows.map((row) => row.pk));
  await advanceOrder(tx, made, recorded, verdict);
  return recorded;
}

function orderedOf(made: readonly MadeAttempt[]) {
  return made.flatMap(({ subscriptionPk, delivery: { orderKey } }) =>
    orderKey === undefined ? [] : [{ subscriptionPk, orderKey }],
  );
}

/** Lock the order before rows of deliveries. Does nothing without ordered deliveries. */
async function lockOrderOf(tx: Tx, made: readonly MadeAttempt[]): Promise<void> {
  const ordered = orderedOf(made);
  if (ordered.length > 0) {
    await lockOrder(
      tx,
      ordered.map(({ subscriptionPk }) => subscriptionPk),
    );
  }
}

/** The end of a delivery is the turn of the next one of its key. A retried one ends too, when a pause cancelled it meanwhile. */
async function advanceOrder(
  tx: Tx,
  made: readonly MadeAttempt[],
  recorded: ReadonlySet<bigint>,
  verdict: DeliveryVerdict,
): Promise<void> {
  const ended = made.filter(({ delivery }) => delivery.orderKey !== undefined && recorded.has(delivery.pk));
  if (verdict.state === 'delivered') {
    for (const { subscriptionPk, delivery } of ended) await reportSkipped(tx, subscriptionPk, delivery.skipped ?? []);
  }
  if (ended.length > 0) await startNext(tx, orderedOf(ended));
}

/**
 * Records an attempt and updates the delivery, in one transaction. A crash before the commit leaves the delivery pending: the lease ends
 * and the attempt is repeated with the same event id. Attempts that succeed at the same time share a transaction.
 */
export function finishAttempt(db: Database, made: MadeAttempt, verdict: DeliveryVerdict): Promise<FinishedAttempt> {
  return verdict.state === 'delivered' ? batchesOf(db)(made) : finishFailed(db, made, verdict);
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

const NOTE_SUCCESSES = sql(
  'note_subscription_successes',
  'UPDATE webhook_subscription SET failing_since = NULL, exhausted_count = 0 WHERE pk = ANY ($1::bigint[])',
);

/**
 * Records delivered attempts of any subscriptions in one transaction, with one commit and four statements for all. Returns the
 * deliveries that this worker still held.
 */
async function finishDelivered(db: Database, made: readonly MadeAttempt[]): Promise<ReadonlySet<bigint>> {
  const counted = made.filter(({ delivery }) => !delivery.isTest);
  return db.transaction(async (tx) => {
    const subscriptionPks = [...new Set(counted.map(({ subscriptionPk }) => subscriptionPk))];
    const recovering = await tx.query<{ pk: bigint }>(LOCK_RECOVERING, [subscriptionPks]);
    await lockOrderOf(tx, made);
    await tx.query(LOCK_DELIVERIES, [made.map(({ delivery }) => delivery.pk)]);
    const recorded = await finishDeliveries(tx, made, { state: 'delivered' });
    const succeeded = new Set(
      counted.filter(({ delivery }) => recorded.has(delivery.pk)).map(({ subscriptionPk }) => subscriptionPk),
    );
    const recovered = recovering.map((row) => row.pk).filter((pk) => succeeded.has(pk));
    if (recovered.length > 0) await tx.query(NOTE_SUCCESSES, [recovered]);
    return recorded;
  });
}

const MAX_BATCH = 100;

/** Splits a batch that Postgres refuses, so that only the refused row fails. */
const batchesOf = oncePerOwner((db: Database) =>
  createBatcher<MadeAttempt, FinishedAttempt>({
    maxItems: MAX_BATCH,
    isWorthSplitting: isContentRefused,
    async run(made) {
      const recorded = await finishDelivered(db, made);
      return made.map(({ delivery }) => ({ isRecorded: recorded.has(delivery.pk) }));
    },
  }),
);

const LOCK_SUBSCRIPTION = sql(
  'lock_subscription_for_failure',
  `SELECT status = 'active' AS is_active FROM webhook_subscription WHERE pk = $1 AND deleted_at IS NULL FOR NO KEY UPDATE`,
);

/** A subscription is paused after this long without a success and this many exhausted deliveries. */
const AUTO_PAUSE_AFTER_DAYS = 5;
const AUTO_PAUSE_AFTER_EXHAUSTED = 10;
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
   WHERE pk = $1 RETURNING id, account_id, status = 'paused' AS is_paused, pause_reason, failing_since, exhausted_count`,
);

interface NotedFailure {
  id: string;
  accountId: bigint;
  isPaused: boolean;
  pauseReason: string | null;
  failingSince: Date;
  exhaustedCount: number;
}

function troubleOf({ subscriptionPk, delivery, attempt }: MadeAttempt, noted: NotedFailure): FailingWebhook {
  return {
    pk: subscriptionPk,
    id: noted.id,
    accountId: noted.accountId,
    failingSince: noted.failingSince,
    deliveryId: delivery.id,
    attemptNumber: delivery.attemptCount + 1,
    ...(attempt.errorCode !== undefined && { lastError: attempt.errorCode }),
    ...(attempt.statusCode !== undefined && { lastStatusCode: attempt.statusCode }),
  };
}

/** The last failed attempt of each subscription that is being recorded. */
const failingOf = oncePerOwner((_db: Database) => new Map<bigint, Promise<FinishedAttempt>>());

/**
 * Records failed attempts of a subscription one after another: they wait for the row of the subscription, and side by side each of them
 * would hold a connection meanwhile, until none is left for other receivers.
 */
function finishFailed(db: Database, made: MadeAttempt, verdict: FailureVerdict): Promise<FinishedAttempt> {
  const failing = failingOf(db);
  const record = () => recordFailed(db, made, verdict);
  const recording = (failing.get(made.subscriptionPk) ?? Promise.resolve()).then(record, record);
  failing.set(made.subscriptionPk, recording);
  const forget = () => {
    if (failing.get(made.subscriptionPk) === recording) failing.delete(made.subscriptionPk);
  };
  recording.then(forget, forget);
  return recording;
}

/** Records a failed attempt. When it pauses the subscription, it cancels the pending deliveries, as a manual pause does. */
function recordFailed(db: Database, made: MadeAttempt, verdict: FailureVerdict): Promise<FinishedAttempt> {
  const { subscriptionPk, delivery } = made;
  const isExhausted = verdict.state === 'failed';
  const isCharged = !delivery.isTest && !(isExhausted && verdict.isCharged === false);
  return db.transaction(async (tx) => {
    const [subscription] = isCharged ? await tx.query<{ isActive: boolean }>(LOCK_SUBSCRIPTION, [subscriptionPk]) : [];
    await lockOrderOf(tx, [made]);
    const recorded = await finishDeliveries(tx, [made], verdict);
    if (recorded.size === 0) return { isRecorded: false };
    if (!subscription) return { isRecorded: true };
    const isGone = isExhausted && verdict.pause === 'gone';
    const values = [subscriptionPk, isExhausted ? 1 : 0, isGone];
    const [noted] = await tx.query<NotedFailure>(NOTE_FAILURE, values);
    if (!noted || !subscription.isActive) return { isRecorded: true };
    const pausedFor = noted.isPaused ? noted.pauseReason : null;
    const isNews = pausedFor !== null || (isExhausted && noted.exhaustedCount === 1);
    const woken = isNews ? await emitWebhookTrouble(tx, troubleOf(made, noted), pausedFor) : [];
    const wake = woken.length > 0 && { wake: woken };
    if (pausedFor === null) return { isRecorded: true, ...wake };
    const cancelled = await cancelPending(tx, subscriptionPk, { tests: false });
    return { isRecorded: true, pausedFor, cancelled, ...wake };
  });
}

/** A webhook that fails, and the attempt that caused the event. */
interface FailingWebhook {
  pk: bigint;
  id: string;
  accountId: bigint;
  failingSince: Date;
  /** The public id of the delivery, and the number of its attempt: together the cause of the event. */
  deliveryId: string;
  attemptNumber: number;
  lastError?: string;
  lastStatusCode?: number;
}

/** The other active webhooks of the account that list the type. */
const OTHER_LISTENERS = sql(
  'other_listeners',
  `SELECT pk FROM webhook_subscription
   WHERE account_id = $1 AND pk <> $2 AND status = 'active' AND deleted_at IS NULL AND $3 = ANY (events) ORDER BY pk`,
);

/**
 * Stores the event about a failing webhook in the transaction that records its failure, with deliveries to the other webhooks of the
 * account. `pausedFor` is the reason when the failure paused it. Returns the subscriptions that got a delivery.
 */
async function emitWebhookTrouble(tx: Tx, webhook: FailingWebhook, pausedFor: string | null): Promise<bigint[]> {
  const { accountId, pk, id: webhookId, deliveryId, attemptNumber, ...trouble } = webhook;
  const type = pausedFor === null ? 'webhook_failing' : 'webhook_paused';
  const dedupeKey = `${type}:${webhookId}:${deliveryId}:${attemptNumber}`;
  const eventId = derivedId('evt', dedupeKey);
  const data = { ...trouble, eventId, occurredAt: new Date(), webhookId };
  const body = pausedFor === null ? webhookFailingBody(data) : webhookPausedBody({ ...data, reason: pausedFor });
  const eventPk = (await insertEvents(tx, [{ id: eventId, accountId, type, body, dedupeKey }])).get(eventId);
  if (eventPk === undefined) return [];
  const listeners = await tx.query<{ pk: bigint }>(OTHER_LISTENERS, [accountId, pk, type]);
  await insertDeliveries(
    tx,
    listeners.map((listener) => ({ eventPk, subscriptionPk: listener.pk })),
  );
  return listeners.map((listener) => listener.pk);
}
