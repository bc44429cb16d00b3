import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import {
  type AttemptRecord,
  CLAIM_LEASE_SECONDS,
  type ClaimedDelivery,
  claimDue,
  type DeliveryVerdict,
  dueSubscriptions,
  type FinishedAttempt,
  finishAttempt,
  MAX_IN_FLIGHT,
  oldestOverdueSeconds,
  releaseClaim,
} from '../../../src/store/deliveries.ts';
import { sql } from '../../../src/store/tx.ts';
import { anAccount, aSubscription } from '../../factories/alerts.ts';
import {
  aDelivery,
  type DeliveryFields,
  storedAttempts,
  storedDelivery,
  storedSubscription,
} from '../../factories/deliveries.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';

const AGE_FAILURE = sql(
  'test_age_failure',
  `UPDATE webhook_subscription SET failing_since = now() - $2 * interval '1 hour', exhausted_count = $3 WHERE pk = $1`,
);
const SET_STATUS = sql('test_set_status', 'UPDATE webhook_subscription SET status = $2 WHERE pk = $1');
const DELETE_SUBSCRIPTION = sql('test_delete', 'UPDATE webhook_subscription SET deleted_at = now() WHERE pk = $1');
const END_LEASE = sql('test_end_lease', `UPDATE delivery SET locked_until = now() - interval '1 second' WHERE pk = $1`);
const LOCK_WAITERS = sql(
  'test_lock_waiters',
  `SELECT count(*)::int AS waiting FROM pg_stat_activity
   WHERE datname = current_database() AND wait_event_type = 'Lock' AND wait_event IN ('transactionid', 'tuple')`,
);

const ATTEMPT: AttemptRecord = { startedAt: new Date(), durationMs: 12.6, outcome: 'delivered', statusCode: 200 };
const REFUSED: AttemptRecord = {
  startedAt: new Date(),
  durationMs: 3,
  outcome: 'failed',
  statusCode: 500,
  errorCode: 'http_status',
  responseExcerpt: Buffer.from([0, 255, 10]),
};

let test: TestDatabase;
let accountId: bigint;
let subscriptionPk: bigint;
beforeAll(async () => {
  test = await createTestDatabase({ poolSize: 16 });
  accountId = await anAccount(test.db);
});
afterAll(() => test.drop());
beforeEach(async () => {
  subscriptionPk = await aSubscription(test.db, { accountId, id: `wh_${crypto.randomUUID()}`, sealedSecret: 'sealed' });
});

const due = (fields: Partial<DeliveryFields> = {}) => aDelivery(test.db, { accountId, subscriptionPk, ...fields });
const many = (count: number, fields: Partial<DeliveryFields> = {}) =>
  Promise.all(Array.from({ length: count }, () => due(fields)));

async function claim(limit = MAX_IN_FLIGHT): Promise<ClaimedDelivery[]> {
  return (await claimDue(test.db, subscriptionPk, limit))?.deliveries ?? [];
}

async function claimOne(): Promise<ClaimedDelivery> {
  const [delivery] = await claim(1);
  if (!delivery) throw new Error('nothing to claim');
  return delivery;
}

const finish = (delivery: ClaimedDelivery, verdict: DeliveryVerdict): Promise<FinishedAttempt> =>
  finishAttempt(test.db, subscriptionPk, delivery, verdict.state === 'delivered' ? ATTEMPT : REFUSED, verdict);

describe('claiming', () => {
  it('gives the delivery with its event, and the subscription to send it to', async () => {
    const { pk, id, eventId } = await due({ body: '{"exact":1.10}' });
    const claimed = await claimDue(test.db, subscriptionPk, 8);
    expect(claimed?.subscription).toMatchObject({
      pk: subscriptionPk,
      url: 'https://receiver.test/',
      sealedSecret: 'sealed',
    });
    expect(claimed?.deliveries).toEqual([
      {
        pk,
        id,
        eventId,
        eventType: 'price_alert',
        body: '{"exact":1.10}',
        isTest: false,
        attemptCount: 0,
        createdAt: expect.any(Date),
      },
    ]);
    expect(await storedDelivery(test.db, pk)).toMatchObject({ status: 'pending', is_locked: true, attempt_count: 0 });
  });

  it('an unknown subscription is null', async () => {
    expect(await claimDue(test.db, 999_999n, 8)).toBeNull();
  });

  it('takes first attempts ahead of retries, and of each the oldest due', async () => {
    const oldRetry = await due({ attemptCount: 3, dueInSeconds: -900 });
    const newRetry = await due({ attemptCount: 1, dueInSeconds: -30 });
    const late = await due({ dueInSeconds: -10 });
    const early = await due({ dueInSeconds: -20 });
    await due({ dueInSeconds: 5 });
    const order = [];
    for (let turn = 0; turn < 4; turn++) order.push((await claimOne()).pk);
    expect(order).toEqual([early.pk, late.pk, oldRetry.pk, newRetry.pk]);
    expect(await claim()).toEqual([]);
  });

  it('leaves alone what is not due, over, or of another subscription', async () => {
    await due({ dueInSeconds: 60 });
    for (const status of ['delivered', 'failed', 'cancelled'] as const) await due({ status });
    const other = await aSubscription(test.db, { accountId });
    await due({ subscriptionPk: other });
    expect(await claim()).toEqual([]);
  });

  it('never hands out more than eight at once, however many ask together', async () => {
    await many(40);
    const claims = await Promise.all(Array.from({ length: 12 }, () => claim()));
    const taken = claims.flat().map((delivery) => delivery.pk);
    expect(taken).toHaveLength(MAX_IN_FLIGHT);
    expect(new Set(taken).size).toBe(MAX_IN_FLIGHT);
    expect(await claim()).toEqual([]);
  });

  it('hands out as many again as were finished', async () => {
    await many(12);
    const first = await claim();
    await Promise.all(first.slice(0, 3).map((delivery) => finish(delivery, { state: 'delivered' })));
    expect(await claim()).toHaveLength(3);
    expect(await claim()).toHaveLength(0);
  });

  it('asks no more than the limit', async () => {
    await many(4);
    expect(await claim(0)).toHaveLength(0);
    expect(await claim(3)).toHaveLength(3);
    expect(await claim(8)).toHaveLength(1);
  });

  it('claims again what a dead worker held, once its lease has ended', async () => {
    const held = await due({ lockedForSeconds: 1 });
    const dead = await due({ lockedForSeconds: -1, attemptCount: 2 });
    expect((await claim()).map((delivery) => delivery.pk)).toEqual([dead.pk]);
    expect(await claim()).toEqual([]);
    await test.db.query(END_LEASE, [held.pk]);
    expect((await claim()).map((delivery) => delivery.pk)).toEqual([held.pk]);
  });

  it('a lease is longer than the longest attempt', () => {
    expect(CLAIM_LEASE_SECONDS).toBeGreaterThan(30);
  });

  it.each([
    ['delivered', `status = 'delivered', attempt_count = 1, locked_until = NULL`],
    [
      'put off',
      `attempt_count = 1, locked_until = NULL, last_error = 'http_status', next_attempt_at = now() + interval '1 hour'`,
    ],
  ])('does not send again what was %s while the claim waited for it', async (what, change) => {
    const { pk } = await due({ lockedForSeconds: -1 });
    let waiting: Promise<ClaimedDelivery[]> | undefined;
    await test.db.transaction(async (tx) => {
      await tx.query(sql(`test_late_finish_${what}`, `UPDATE delivery SET ${change} WHERE pk = $1`), [pk]);
      waiting = claim();
      for (;;) {
        const [row] = await test.db.query<{ waiting: number }>(LOCK_WAITERS);
        if (row?.waiting === 1) break;
      }
    });
    expect(await waiting).toEqual([]);
    expect(await storedDelivery(test.db, pk)).toMatchObject({ is_locked: false, attempt_count: 1 });
  });
});

describe('finishing', () => {
  it('a success is delivered, with its attempt', async () => {
    const { pk } = await due();
    expect(await finish(await claimOne(), { state: 'delivered' })).toEqual({ isRecorded: true });
    expect(await storedDelivery(test.db, pk)).toMatchObject({
      status: 'delivered',
      attempt_count: 1,
      is_locked: false,
      last_status_code: 200,
      last_error: null,
      delivered_at: expect.any(Date),
    });
    expect(await storedAttempts(test.db, pk)).toEqual([
      {
        attempt_number: 1,
        outcome: 'delivered',
        status_code: 200,
        error_code: null,
        duration_ms: 13,
        response_excerpt: null,
      },
    ]);
  });

  it('a retry waits for its delay, then is claimed with one more attempt behind it', async () => {
    const { pk } = await due();
    await finish(await claimOne(), { state: 'retry', delaySeconds: 30.5 });
    const stored = await storedDelivery(test.db, pk);
    expect(stored).toMatchObject({ status: 'pending', attempt_count: 1, is_locked: false, last_error: 'http_status' });
    expect(stored.due_in).toBeGreaterThan(25);
    expect(stored.due_in).toBeLessThanOrEqual(30.5);
    expect(await claim()).toEqual([]);
    await test.db.query(sql('test_due_now', 'UPDATE delivery SET next_attempt_at = now() WHERE pk = $1'), [pk]);
    const again = await claimOne();
    expect(again.attemptCount).toBe(1);
    await finish(again, { state: 'delivered' });
    expect((await storedAttempts(test.db, pk)).map((attempt) => attempt.outcome)).toEqual(['failed', 'delivered']);
    expect(await storedDelivery(test.db, pk)).toMatchObject({
      status: 'delivered',
      attempt_count: 2,
      last_error: null,
    });
  });

  it('keeps the bytes of the response as they came', async () => {
    const { pk } = await due();
    await finish(await claimOne(), { state: 'failed' });
    expect((await storedAttempts(test.db, pk))[0]).toMatchObject({
      error_code: 'http_status',
      status_code: 500,
      response_excerpt: Buffer.from([0, 255, 10]),
    });
  });

  it('an overtaken finish changes nothing of the delivery or the subscription', async () => {
    const { pk } = await due();
    const mine = await claimOne();
    await test.db.query(END_LEASE, [pk]);
    const theirs = await claimOne();
    expect(theirs).toEqual(mine);
    await finish(theirs, { state: 'delivered' });
    const delivered = await storedDelivery(test.db, pk);
    for (const verdict of [
      { state: 'retry', delaySeconds: 1 },
      { state: 'failed' },
      { state: 'failed', pause: 'gone' },
    ] as const) {
      expect(await finish(mine, verdict)).toEqual({ isRecorded: false });
    }
    expect({ ...(await storedDelivery(test.db, pk)), due_in: 0 }).toEqual({ ...delivered, due_in: 0 });
    expect(await storedAttempts(test.db, pk)).toHaveLength(1);
    expect(await storedSubscription(test.db, subscriptionPk)).toEqual({
      status: 'active',
      pause_reason: null,
      failing_since: null,
      exhausted_count: 0,
    });
  });

  it('an overtaken success does not hide that the delivery failed', async () => {
    const { pk } = await due();
    const mine = await claimOne();
    await finish({ ...mine }, { state: 'failed' });
    await finish(mine, { state: 'delivered' });
    expect(await storedDelivery(test.db, pk)).toMatchObject({ status: 'failed', attempt_count: 1 });
    expect(await storedSubscription(test.db, subscriptionPk)).toMatchObject({ exhausted_count: 1 });
  });

  it('two finishers at once: one is recorded', async () => {
    const { pk } = await due();
    const mine = await claimOne();
    const results = await Promise.all([
      finish(mine, { state: 'failed' }),
      finish(mine, { state: 'failed' }),
      finish(mine, { state: 'failed' }),
    ]);
    expect(results.filter((result) => result.isRecorded)).toHaveLength(1);
    expect(await storedDelivery(test.db, pk)).toMatchObject({ attempt_count: 1 });
    expect(await storedSubscription(test.db, subscriptionPk)).toMatchObject({ exhausted_count: 1 });
  });
});

describe('a paused subscription', () => {
  it('has what is pending cancelled, what is in flight left to end, and test events sent', async () => {
    const flying = await due();
    const mine = await claimOne();
    const waiting = await due();
    const later = await due({ dueInSeconds: 3_600, attemptCount: 2 });
    const testEvent = await due({ isTest: true });
    await test.db.query(SET_STATUS, [subscriptionPk, 'paused']);
    expect((await claim()).map((delivery) => [delivery.pk, delivery.isTest])).toEqual([[testEvent.pk, true]]);
    expect(await storedDelivery(test.db, waiting.pk)).toMatchObject({ status: 'cancelled' });
    expect(await storedDelivery(test.db, later.pk)).toMatchObject({ status: 'cancelled' });
    expect(await storedDelivery(test.db, flying.pk)).toMatchObject({ status: 'pending', is_locked: true });
    await finish(mine, { state: 'delivered' });
    expect(await storedDelivery(test.db, flying.pk)).toMatchObject({ status: 'delivered' });
  });

  it('has an attempt that failed meanwhile cancelled by the next claim, whenever it would be due', async () => {
    const { pk } = await due();
    const mine = await claimOne();
    await test.db.query(SET_STATUS, [subscriptionPk, 'paused']);
    await finish(mine, { state: 'retry', delaySeconds: 36_000 });
    expect(await claim()).toEqual([]);
    expect(await storedDelivery(test.db, pk)).toMatchObject({ status: 'cancelled', attempt_count: 1 });
  });

  it('a delivery cancelled in flight stays so when it fails, and is delivered when it was', async () => {
    const cancel = sql('test_cancel', `UPDATE delivery SET status = 'cancelled' WHERE pk = $1`);
    for (const [verdict, status] of [
      [{ state: 'retry', delaySeconds: 1 }, 'cancelled'],
      [{ state: 'failed' }, 'cancelled'],
      [{ state: 'delivered' }, 'delivered'],
    ] as const) {
      const { pk } = await due();
      const mine = await claimOne();
      await test.db.query(cancel, [pk]);
      expect(await finish(mine, verdict)).toMatchObject({ isRecorded: true });
      expect(await storedDelivery(test.db, pk)).toMatchObject({ status, attempt_count: 1 });
      expect(await storedAttempts(test.db, pk)).toHaveLength(1);
    }
  });
});

describe('a deleted subscription', () => {
  it('sends nothing more, test events included', async () => {
    const rows = [await due(), await due({ isTest: true }), await due({ dueInSeconds: 60 })];
    await test.db.query(DELETE_SUBSCRIPTION, [subscriptionPk]);
    expect(await claim()).toEqual([]);
    for (const { pk } of rows) expect(await storedDelivery(test.db, pk)).toMatchObject({ status: 'cancelled' });
  });

  it('is not counted or paused by what was in flight', async () => {
    await due();
    const mine = await claimOne();
    await test.db.query(DELETE_SUBSCRIPTION, [subscriptionPk]);
    expect(await finish(mine, { state: 'failed', pause: 'gone' })).toEqual({ isRecorded: true });
    expect(await storedSubscription(test.db, subscriptionPk)).toMatchObject({ status: 'active', exhausted_count: 0 });
  });
});

describe('counting failures', () => {
  async function failOnce(verdict: DeliveryVerdict = { state: 'failed' }): Promise<FinishedAttempt> {
    await due();
    return finish(await claimOne(), verdict);
  }

  it('410 pauses at once, with the reason', async () => {
    expect(await failOnce({ state: 'failed', pause: 'gone' })).toEqual({ isRecorded: true, pausedFor: 'gone' });
    expect(await storedSubscription(test.db, subscriptionPk)).toMatchObject({ status: 'paused', pause_reason: 'gone' });
  });

  it.each([
    [119, 9, 'active'],
    [121, 8, 'active'],
    [121, 9, 'paused'],
    [500, 30, 'paused'],
  ])('failing for %i h with %i exhausted before this one: %s', async (hours, exhausted, status) => {
    await test.db.query(AGE_FAILURE, [subscriptionPk, hours, exhausted]);
    expect(await failOnce()).toEqual({ isRecorded: true, ...(status === 'paused' && { pausedFor: 'failing' }) });
    expect(await storedSubscription(test.db, subscriptionPk)).toMatchObject({
      status,
      pause_reason: status === 'paused' ? 'failing' : null,
      exhausted_count: exhausted + 1,
    });
  });

  it('a retry starts the clock but exhausts nothing', async () => {
    await failOnce({ state: 'retry', delaySeconds: 60 });
    const { failing_since, exhausted_count } = await storedSubscription(test.db, subscriptionPk);
    expect({ failing_since, exhausted_count }).toEqual({ failing_since: expect.any(Date), exhausted_count: 0 });
    await failOnce();
    expect((await storedSubscription(test.db, subscriptionPk)).failing_since).toEqual(failing_since);
  });

  it('ten exhausted in five minutes do not pause', async () => {
    for (let turn = 0; turn < 10; turn++) expect(await failOnce()).toEqual({ isRecorded: true });
    expect(await storedSubscription(test.db, subscriptionPk)).toMatchObject({ status: 'active', exhausted_count: 10 });
  });

  it('one success forgets it all', async () => {
    await test.db.query(AGE_FAILURE, [subscriptionPk, 500, 9]);
    await failOnce({ state: 'delivered' });
    expect(await storedSubscription(test.db, subscriptionPk)).toMatchObject({
      failing_since: null,
      exhausted_count: 0,
    });
    expect(await failOnce()).toEqual({ isRecorded: true });
  });

  it('a test event counts for nothing, whatever it came to', async () => {
    await test.db.query(AGE_FAILURE, [subscriptionPk, 500, 9]);
    const before = await storedSubscription(test.db, subscriptionPk);
    for (const verdict of [{ state: 'delivered' }, { state: 'failed' }, { state: 'failed', pause: 'gone' }] as const) {
      await due({ isTest: true });
      expect(await finish(await claimOne(), verdict)).toEqual({ isRecorded: true });
    }
    expect(await storedSubscription(test.db, subscriptionPk)).toEqual(before);
  });

  it('a pause by hand keeps no reason when what was in flight fails', async () => {
    await due();
    const mine = await claimOne();
    await test.db.query(SET_STATUS, [subscriptionPk, 'paused']);
    expect(await finish(mine, { state: 'failed' })).toEqual({ isRecorded: true });
    expect(await storedSubscription(test.db, subscriptionPk)).toMatchObject({ status: 'paused', pause_reason: null });
  });

  it('only the attempt that paused it says so', async () => {
    await many(2);
    const [first, second] = await claim();
    if (!first || !second) throw new Error('two were due');
    expect(await finish(first, { state: 'failed', pause: 'gone' })).toMatchObject({ pausedFor: 'gone' });
    expect(await finish(second, { state: 'failed' })).toEqual({ isRecorded: true });
  });
});

describe('giving a claim back', () => {
  it('charges nothing: no attempt, no count, due again after the delay', async () => {
    const { pk } = await due({ attemptCount: 2 });
    await releaseClaim(test.db, await claimOne(), 30, 'internal_error');
    const stored = await storedDelivery(test.db, pk);
    expect(stored).toMatchObject({
      status: 'pending',
      attempt_count: 2,
      is_locked: false,
      last_error: 'internal_error',
    });
    expect(stored.due_in).toBeGreaterThan(25);
    expect(await storedAttempts(test.db, pk)).toEqual([]);
    expect(await storedSubscription(test.db, subscriptionPk)).toMatchObject({ failing_since: null });
  });

  it('does nothing when somebody else finished it', async () => {
    const { pk } = await due();
    const mine = await claimOne();
    await finish(mine, { state: 'retry', delaySeconds: 1_000 });
    await releaseClaim(test.db, mine, 0, 'internal_error');
    expect((await storedDelivery(test.db, pk)).due_in).toBeGreaterThan(900);
  });
});

describe('what the restoring timer asks', () => {
  it('names subscriptions with due rows nobody holds, once each, up to a limit', async () => {
    await test.db.query(sql('test_clear_due', `UPDATE delivery SET status = 'cancelled' WHERE status = 'pending'`));
    expect(await dueSubscriptions(test.db, 10)).toEqual([]);
    expect(await oldestOverdueSeconds(test.db)).toBe(0);
    await many(3);
    await due({ subscriptionPk: await aSubscription(test.db, { accountId }), dueInSeconds: 60 });
    await due({ subscriptionPk: await aSubscription(test.db, { accountId }), lockedForSeconds: 60 });
    await due({ subscriptionPk: await aSubscription(test.db, { accountId }), status: 'failed' });
    const died = await aSubscription(test.db, { accountId });
    await due({ subscriptionPk: died, lockedForSeconds: -1, dueInSeconds: -500 });
    expect((await dueSubscriptions(test.db, 10)).sort()).toEqual([subscriptionPk, died].sort());
    expect(await dueSubscriptions(test.db, 1)).toHaveLength(1);
    const overdue = await oldestOverdueSeconds(test.db);
    expect(overdue).toBeGreaterThanOrEqual(500);
    expect(overdue).toBeLessThan(600);
  });
});
