import { describe, expect, it } from 'vitest';
import { sql } from '../../../../src/store/db/tx.ts';
import { releaseClaim } from '../../../../src/store/deliveries/claims.ts';
import type { DeliveryVerdict } from '../../../../src/store/deliveries/outcomes.ts';
import { storedAttempts, storedDelivery, storedSubscription } from '../../../factories/deliveries.ts';
import { deliveryDesk, END_LEASE, SET_STATUS } from './delivery-desk.ts';

const AGE_FAILURE = sql(
  'test_age_failure',
  `UPDATE webhook_subscription SET failing_since = now() - $2 * interval '1 hour', exhausted_count = $3 WHERE pk = $1`,
);
const DELETE_SUBSCRIPTION = sql('test_delete', 'UPDATE webhook_subscription SET deleted_at = now() WHERE pk = $1');

const desk = deliveryDesk();
const { due, many, claim, claimOne, finish } = desk;

describe('finishAttempt', () => {
  it('marks a successful delivery as delivered and records the attempt', async () => {
    const { pk } = await due();
    expect(await finish(await claimOne(), { state: 'delivered' })).toEqual({ isRecorded: true });
    expect(await storedDelivery(desk.db, pk)).toMatchObject({
      status: 'delivered',
      attemptCount: 1,
      isLocked: false,
      lastStatusCode: 200,
      lastError: null,
      deliveredAt: expect.any(Date),
    });
    expect(await storedAttempts(desk.db, pk)).toEqual([
      {
        attemptNumber: 1,
        outcome: 'delivered',
        statusCode: 200,
        errorCode: null,
        durationMs: 13,
        responseExcerpt: null,
      },
    ]);
  });

  it('makes a retry due after its delay, with one more attempt', async () => {
    const { pk } = await due();
    await finish(await claimOne(), { state: 'retry', delaySeconds: 30.5 });
    const stored = await storedDelivery(desk.db, pk);
    expect(stored).toMatchObject({ status: 'pending', attemptCount: 1, isLocked: false, lastError: 'http_status' });
    expect(stored.dueIn).toBeGreaterThan(25);
    expect(stored.dueIn).toBeLessThanOrEqual(30.5);
    expect(await claim()).toEqual([]);
    await desk.db.query(sql('test_due_now', 'UPDATE delivery SET next_attempt_at = now() WHERE pk = $1'), [pk]);
    const again = await claimOne();
    expect(again.attemptCount).toBe(1);
    await finish(again, { state: 'delivered' });
    expect((await storedAttempts(desk.db, pk)).map((attempt) => attempt.outcome)).toEqual(['failed', 'delivered']);
    expect(await storedDelivery(desk.db, pk)).toMatchObject({
      status: 'delivered',
      attemptCount: 2,
      lastError: null,
    });
  });

  it('stores the exact bytes of the response', async () => {
    const { pk } = await due();
    await finish(await claimOne(), { state: 'failed' });
    expect((await storedAttempts(desk.db, pk))[0]).toMatchObject({
      errorCode: 'http_status',
      statusCode: 500,
      responseExcerpt: Buffer.from([0, 255, 10]),
    });
  });

  it('changes neither delivery nor subscription when its attempt was already finished', async () => {
    const { pk } = await due();
    const mine = await claimOne();
    await desk.db.query(END_LEASE, [pk]);
    const theirs = await claimOne();
    expect(theirs).toEqual({ ...mine, lease: theirs.lease });
    expect(theirs.lease).not.toBe(mine.lease);
    await finish(theirs, { state: 'delivered' });
    const delivered = await storedDelivery(desk.db, pk);
    for (const verdict of [
      { state: 'retry', delaySeconds: 1 },
      { state: 'failed' },
      { state: 'failed', pause: 'gone' },
    ] as const) {
      expect(await finish(mine, verdict)).toEqual({ isRecorded: false });
    }
    expect({ ...(await storedDelivery(desk.db, pk)), dueIn: 0 }).toEqual({ ...delivered, dueIn: 0 });
    expect(await storedAttempts(desk.db, pk)).toHaveLength(1);
    expect(await storedSubscription(desk.db, desk.subscriptionPk)).toEqual({
      status: 'active',
      pauseReason: null,
      failingSince: null,
      exhaustedCount: 0,
    });
  });

  it('has no effect when another worker claimed the delivery', async () => {
    const { pk } = await due();
    const mine = await claimOne();
    await desk.db.query(END_LEASE, [pk]);
    const theirs = await claimOne();
    expect(await finish(mine, { state: 'retry', delaySeconds: 600 })).toEqual({ isRecorded: false });
    await releaseClaim(desk.db, mine, 600, 'internal_error');
    expect(await storedDelivery(desk.db, pk)).toMatchObject({ attemptCount: 0, isLocked: true, lastError: null });
    expect(await finish(theirs, { state: 'delivered' })).toEqual({ isRecorded: true });
  });

  it('is not recorded as the following attempt when its own attempt was already finished', async () => {
    const { pk } = await due();
    const mine = await claimOne();
    await finish({ ...mine }, { state: 'retry', delaySeconds: 600 });
    expect(await finish(mine, { state: 'delivered' })).toEqual({ isRecorded: false });
    expect(await finish(mine, { state: 'retry', delaySeconds: 1 })).toEqual({ isRecorded: false });
    const stored = await storedDelivery(desk.db, pk);
    expect(stored).toMatchObject({ status: 'pending', attemptCount: 1 });
    expect(stored.dueIn).toBeGreaterThan(500);
    expect(await storedAttempts(desk.db, pk)).toHaveLength(1);
  });

  it('keeps a failed delivery failed when an overtaken success arrives', async () => {
    const { pk } = await due();
    const mine = await claimOne();
    await finish({ ...mine }, { state: 'failed' });
    await finish(mine, { state: 'delivered' });
    expect(await storedDelivery(desk.db, pk)).toMatchObject({ status: 'failed', attemptCount: 1 });
    expect(await storedSubscription(desk.db, desk.subscriptionPk)).toMatchObject({ exhaustedCount: 1 });
  });

  it('records one of two concurrent results', async () => {
    const { pk } = await due();
    const mine = await claimOne();
    const results = await Promise.all([
      finish(mine, { state: 'failed' }),
      finish(mine, { state: 'failed' }),
      finish(mine, { state: 'failed' }),
    ]);
    expect(results.filter((result) => result.isRecorded)).toHaveLength(1);
    expect(await storedDelivery(desk.db, pk)).toMatchObject({ attemptCount: 1 });
    expect(await storedSubscription(desk.db, desk.subscriptionPk)).toMatchObject({ exhaustedCount: 1 });
  });
});

describe('a paused subscription', () => {
  it('gets pending deliveries cancelled by a claim, keeps attempts in flight, and gets test events', async () => {
    const flying = await due();
    const mine = await claimOne();
    const waiting = await due();
    const later = await due({ dueInSeconds: 3_600, attemptCount: 2 });
    const testEvent = await due({ isTest: true });
    await desk.db.query(SET_STATUS, [desk.subscriptionPk, 'paused']);
    expect((await claim()).map((delivery) => [delivery.pk, delivery.isTest])).toEqual([[testEvent.pk, true]]);
    expect(await storedDelivery(desk.db, waiting.pk)).toMatchObject({ status: 'cancelled' });
    expect(await storedDelivery(desk.db, later.pk)).toMatchObject({ status: 'cancelled' });
    expect(await storedDelivery(desk.db, flying.pk)).toMatchObject({ status: 'pending', isLocked: true });
    await finish(mine, { state: 'delivered' });
    expect(await storedDelivery(desk.db, flying.pk)).toMatchObject({ status: 'delivered' });
  });

  it('gets a delivery cancelled whose attempt failed during the pause, regardless of its due time', async () => {
    const { pk } = await due();
    const mine = await claimOne();
    await desk.db.query(SET_STATUS, [desk.subscriptionPk, 'paused']);
    await finish(mine, { state: 'retry', delaySeconds: 36_000 });
    expect(await claim()).toEqual([]);
    expect(await storedDelivery(desk.db, pk)).toMatchObject({ status: 'cancelled', attemptCount: 1 });
  });

  it('keeps a delivery cancelled when an attempt in flight fails, and delivered when it succeeds', async () => {
    const cancel = sql('test_cancel', `UPDATE delivery SET status = 'cancelled' WHERE pk = $1`);
    for (const [verdict, status] of [
      [{ state: 'retry', delaySeconds: 1 }, 'cancelled'],
      [{ state: 'failed' }, 'cancelled'],
      [{ state: 'delivered' }, 'delivered'],
    ] as const) {
      const { pk } = await due();
      const mine = await claimOne();
      await desk.db.query(cancel, [pk]);
      expect(await finish(mine, verdict)).toMatchObject({ isRecorded: true });
      expect(await storedDelivery(desk.db, pk)).toMatchObject({ status, attemptCount: 1 });
      expect(await storedAttempts(desk.db, pk)).toHaveLength(1);
    }
  });
});

describe('a deleted subscription', () => {
  it('gets all its deliveries cancelled by the next claim, test events included', async () => {
    const rows = [await due(), await due({ isTest: true }), await due({ dueInSeconds: 60 })];
    await desk.db.query(DELETE_SUBSCRIPTION, [desk.subscriptionPk]);
    expect(await claim()).toEqual([]);
    for (const { pk } of rows) expect(await storedDelivery(desk.db, pk)).toMatchObject({ status: 'cancelled' });
  });

  it('is neither paused nor counted as failing by attempts in flight', async () => {
    await due();
    const mine = await claimOne();
    await desk.db.query(DELETE_SUBSCRIPTION, [desk.subscriptionPk]);
    expect(await finish(mine, { state: 'failed', pause: 'gone' })).toEqual({ isRecorded: true });
    expect(await storedSubscription(desk.db, desk.subscriptionPk)).toMatchObject({
      status: 'active',
      exhaustedCount: 0,
    });
  });
});

describe('finishAttempt and the failure counters', () => {
  async function failOnce(verdict: DeliveryVerdict = { state: 'failed' }) {
    await due();
    return finish(await claimOne(), verdict);
  }

  it('pauses at once on 410 with the reason, and cancels pending deliveries except test events', async () => {
    const later = await due({ dueInSeconds: 3_600, attemptCount: 1 });
    const testEvent = await due({ isTest: true, dueInSeconds: 3_600 });
    expect(await failOnce({ state: 'failed', pause: 'gone' })).toEqual({
      isRecorded: true,
      pausedFor: 'gone',
      cancelled: [{ deliveryId: later.id, eventId: later.eventId }],
    });
    expect(await storedSubscription(desk.db, desk.subscriptionPk)).toMatchObject({
      status: 'paused',
      pauseReason: 'gone',
    });
    expect(await storedDelivery(desk.db, later.pk)).toMatchObject({ status: 'cancelled' });
    expect(await storedDelivery(desk.db, testEvent.pk)).toMatchObject({ status: 'pending' });
  });

  it.each([
    [119, 9, 'active'],
    [121, 8, 'active'],
    [121, 9, 'paused'],
    [500, 30, 'paused'],
  ])(
    'after %i h of failure and %i exhausted deliveries, one more failure leaves the subscription %s',
    async (hours, exhausted, status) => {
      await desk.db.query(AGE_FAILURE, [desk.subscriptionPk, hours, exhausted]);
      const pausing = status === 'paused' && { pausedFor: 'failing', cancelled: [] };
      expect(await failOnce()).toEqual({ isRecorded: true, ...pausing });
      expect(await storedSubscription(desk.db, desk.subscriptionPk)).toMatchObject({
        status,
        pauseReason: status === 'paused' ? 'failing' : null,
        exhaustedCount: exhausted + 1,
      });
    },
  );

  it('starts failing_since at a retry without counting an exhausted delivery', async () => {
    await failOnce({ state: 'retry', delaySeconds: 60 });
    const { failingSince, exhaustedCount } = await storedSubscription(desk.db, desk.subscriptionPk);
    expect({ failingSince, exhaustedCount }).toEqual({ failingSince: expect.any(Date), exhaustedCount: 0 });
    await failOnce();
    expect((await storedSubscription(desk.db, desk.subscriptionPk)).failingSince).toEqual(failingSince);
  });

  it('does not pause after ten exhausted deliveries within five minutes', async () => {
    for (let turn = 0; turn < 10; turn++) expect(await failOnce()).toEqual({ isRecorded: true });
    expect(await storedSubscription(desk.db, desk.subscriptionPk)).toMatchObject({
      status: 'active',
      exhaustedCount: 10,
    });
  });

  it('clears failing_since and the count at one success', async () => {
    await desk.db.query(AGE_FAILURE, [desk.subscriptionPk, 500, 9]);
    await failOnce({ state: 'delivered' });
    expect(await storedSubscription(desk.db, desk.subscriptionPk)).toMatchObject({
      failingSince: null,
      exhaustedCount: 0,
    });
    expect(await failOnce()).toEqual({ isRecorded: true });
  });

  it('keeps the counters for test events with any result', async () => {
    await desk.db.query(AGE_FAILURE, [desk.subscriptionPk, 500, 9]);
    const before = await storedSubscription(desk.db, desk.subscriptionPk);
    for (const verdict of [{ state: 'delivered' }, { state: 'failed' }, { state: 'failed', pause: 'gone' }] as const) {
      await due({ isTest: true });
      expect(await finish(await claimOne(), verdict)).toEqual({ isRecorded: true });
    }
    expect(await storedSubscription(desk.db, desk.subscriptionPk)).toEqual(before);
  });

  it('keeps a manual pause without a reason when an attempt in flight fails', async () => {
    await due();
    const mine = await claimOne();
    await desk.db.query(SET_STATUS, [desk.subscriptionPk, 'paused']);
    expect(await finish(mine, { state: 'failed' })).toEqual({ isRecorded: true });
    expect(await storedSubscription(desk.db, desk.subscriptionPk)).toMatchObject({
      status: 'paused',
      pauseReason: null,
    });
  });

  it('returns pausedFor only from the attempt that paused the subscription', async () => {
    await many(2);
    const [first, second] = await claim();
    if (!first || !second) throw new Error('two were due');
    expect(await finish(first, { state: 'failed', pause: 'gone' })).toMatchObject({ pausedFor: 'gone' });
    expect(await finish(second, { state: 'failed' })).toEqual({ isRecorded: true });
  });
});
