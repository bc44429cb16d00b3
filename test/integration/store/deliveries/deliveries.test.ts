import { describe, expect, it } from 'vitest';
import { Database, sql, type Tx } from '../../../../src/store/db/tx.ts';
import {
  type ClaimedDelivery,
  claimTogether,
  MAX_IN_FLIGHT,
  releaseClaim,
} from '../../../../src/store/deliveries/claims.ts';
import { dueSubscriptions, oldestOverdueSeconds } from '../../../../src/store/deliveries/due.ts';
import { finishAttempt } from '../../../../src/store/deliveries/outcomes.ts';
import { aSubscription } from '../../../factories/alerts.ts';
import { storedAttempts, storedDelivery, storedSubscription } from '../../../factories/deliveries.ts';
import { blockedSessions, untilBlocked } from '../../../support/postgres/postgres-lock.ts';
import { deliveryDesk, END_LEASE } from './delivery-desk.ts';

const LOCK_ROW = sql('test_lock_webhook', 'SELECT pk FROM webhook_subscription WHERE pk = $1 FOR UPDATE');

const desk = deliveryDesk();
const { due, many, claim, claimOne, finish } = desk;

/** A claim that has locked its rows and commits on request. */
function claimHeldOpen(pk: bigint) {
  let commit: () => void = () => undefined;
  let claimed: () => void = () => undefined;
  const mayCommit = new Promise<void>((resolve) => {
    commit = resolve;
  });
  const isClaimed = new Promise<void>((resolve) => {
    claimed = resolve;
  });
  class HeldDatabase extends Database {
    override transaction<T>(work: (tx: Tx) => Promise<T>): Promise<T> {
      return super.transaction(async (tx) => {
        const result = await work(tx);
        claimed();
        await mayCommit;
        return result;
      });
    }
  }
  const deliveries = claimTogether(new HeldDatabase(desk.db.dataSource), {
    subscriptionPk: pk,
    limit: MAX_IN_FLIGHT,
  }).then((taken) => taken?.deliveries ?? []);
  return { deliveries, isClaimed, commit: () => commit() };
}

describe('claimTogether', () => {
  it('returns the delivery with its event and its subscription', async () => {
    const { pk, id, eventId } = await due({ body: '{"exact":1.10}' });
    const claimed = await claimTogether(desk.db, { subscriptionPk: desk.subscriptionPk, limit: 8 });
    expect(claimed?.subscription).toMatchObject({
      pk: desk.subscriptionPk,
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
        scheduleFrom: 0,
        lease: expect.any(String),
        createdAt: expect.any(Date),
      },
    ]);
    expect(await storedDelivery(desk.db, pk)).toMatchObject({ status: 'pending', isLocked: true, attemptCount: 0 });
  });

  it('returns null for an unknown subscription', async () => {
    expect(await claimTogether(desk.db, { subscriptionPk: 999_999n, limit: 8 })).toBeNull();
  });

  it('takes first attempts before retries, each oldest due first', async () => {
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

  it('skips deliveries that are not due, finished, or of another subscription', async () => {
    await due({ dueInSeconds: 60 });
    for (const status of ['delivered', 'failed', 'cancelled'] as const) await due({ status });
    const other = await aSubscription(desk.db, { accountId: desk.accountId });
    await due({ subscriptionPk: other });
    expect(await claim()).toEqual([]);
  });

  it('returns at most eight rows in total when many claims run at once', async () => {
    await many(40);
    const claims = await Promise.all(Array.from({ length: 12 }, () => claim()));
    const taken = claims.flat().map((delivery) => delivery.pk);
    expect(taken).toHaveLength(MAX_IN_FLIGHT);
    expect(new Set(taken).size).toBe(MAX_IN_FLIGHT);
    expect(await claim()).toEqual([]);
  });

  it('waits for an uncommitted claim and counts its rows', async () => {
    await many(MAX_IN_FLIGHT, { attemptCount: 1 });
    const first = claimHeldOpen(desk.subscriptionPk);
    await first.isClaimed;
    // Sorts first, so a claim without the wait would find it and count no row in flight.
    await due();
    const second = claim();
    await untilBlocked(desk.db);
    first.commit();
    expect(await first.deliveries).toHaveLength(MAX_IN_FLIGHT);
    expect(await second).toEqual([]);
  });

  it('returns as many new rows as were finished', async () => {
    await many(12);
    const first = await claim();
    await Promise.all(first.slice(0, 3).map((delivery) => finish(delivery, { state: 'delivered' })));
    expect(await claim()).toHaveLength(3);
    expect(await claim()).toHaveLength(0);
  });

  it('returns at most the limit', async () => {
    await many(4);
    expect(await claim(0)).toHaveLength(0);
    expect(await claim(3)).toHaveLength(3);
    expect(await claim(8)).toHaveLength(1);
  });

  it('returns deliveries of a dead worker when their lease has ended', async () => {
    const held = await due({ lockedForSeconds: 1 });
    const dead = await due({ lockedForSeconds: -1, attemptCount: 2 });
    expect((await claim()).map((delivery) => delivery.pk)).toEqual([dead.pk]);
    expect(await claim()).toEqual([]);
    await desk.db.query(END_LEASE, [held.pk]);
    expect((await claim()).map((delivery) => delivery.pk)).toEqual([held.pk]);
  });

  it('uses a lease that is longer than the longest attempt', async () => {
    await due();
    const [claimed] = await claim();
    expect(Date.parse(claimed?.lease ?? '')).toBeGreaterThan(Date.now() + 30_000);
  });

  it.each([
    ['delivered', `status = 'delivered', attempt_count = 1, locked_until = NULL`],
    [
      'postponed',
      `attempt_count = 1, locked_until = NULL, last_error = 'http_status', next_attempt_at = now() + interval '1 hour'`,
    ],
  ])('skips a delivery that was %s while the claim waited for its lock', async (kind, change) => {
    const { pk } = await due({ lockedForSeconds: -1 });
    let waiting: Promise<ClaimedDelivery[]> | undefined;
    await desk.db.transaction(async (tx) => {
      await tx.query(sql(`test_late_finish_${kind}`, `UPDATE delivery SET ${change} WHERE pk = $1`), [pk]);
      waiting = claim();
      await untilBlocked(desk.db);
    });
    expect(await waiting).toEqual([]);
    expect(await storedDelivery(desk.db, pk)).toMatchObject({ isLocked: false, attemptCount: 1 });
  });
});

describe('releaseClaim', () => {
  it('makes the delivery due after the delay without recording an attempt', async () => {
    const { pk } = await due({ attemptCount: 2 });
    await releaseClaim(desk.db, await claimOne(), 30, 'internal_error');
    const stored = await storedDelivery(desk.db, pk);
    expect(stored).toMatchObject({
      status: 'pending',
      attemptCount: 2,
      isLocked: false,
      lastError: 'internal_error',
    });
    expect(stored.dueIn).toBeGreaterThan(25);
    expect(await storedAttempts(desk.db, pk)).toEqual([]);
    expect(await storedSubscription(desk.db, desk.subscriptionPk)).toMatchObject({ failingSince: null });
  });

  it('changes nothing when the attempt was already finished', async () => {
    const { pk } = await due();
    const mine = await claimOne();
    await finish(mine, { state: 'retry', delaySeconds: 1_000 });
    await releaseClaim(desk.db, mine, 0, 'internal_error');
    expect((await storedDelivery(desk.db, pk)).dueIn).toBeGreaterThan(900);
  });
});

describe('dueSubscriptions', () => {
  it('returns subscriptions with due and unclaimed rows, once each, up to the limit', async () => {
    await desk.db.query(sql('test_clear_due', `UPDATE delivery SET status = 'cancelled' WHERE status = 'pending'`));
    expect(await dueSubscriptions(desk.db, 10)).toEqual([]);
    expect(await oldestOverdueSeconds(desk.db)).toBe(0);
    await many(3);
    await due({ subscriptionPk: await aSubscription(desk.db, { accountId: desk.accountId }), dueInSeconds: 60 });
    await due({ subscriptionPk: await aSubscription(desk.db, { accountId: desk.accountId }), lockedForSeconds: 60 });
    await due({ subscriptionPk: await aSubscription(desk.db, { accountId: desk.accountId }), status: 'failed' });
    const died = await aSubscription(desk.db, { accountId: desk.accountId });
    await due({ subscriptionPk: died, lockedForSeconds: -1, dueInSeconds: -500 });
    expect((await dueSubscriptions(desk.db, 10)).sort()).toEqual([desk.subscriptionPk, died].sort());
    expect(await dueSubscriptions(desk.db, 1)).toHaveLength(1);
    const overdue = await oldestOverdueSeconds(desk.db);
    expect(overdue).toBeGreaterThanOrEqual(500);
    expect(overdue).toBeLessThan(600);
  });
});

describe('failed attempts of a webhook whose row is locked', () => {
  it('hold one connection, and leave the others to other webhooks', async () => {
    await many(4);
    const failing = await claim();
    const other = await aSubscription(desk.db, {
      accountId: desk.accountId,
      id: `wh_${crypto.randomUUID()}`,
      sealedSecret: 'sealed',
    });
    await due({ subscriptionPk: other });
    const [delivered] = (await claimTogether(desk.db, { subscriptionPk: other, limit: 1 }))?.deliveries ?? [];
    if (!delivered) throw new Error('nothing to claim');
    const recording = await desk.db.transaction(async (tx) => {
      await tx.query(LOCK_ROW, [desk.subscriptionPk]);
      const all = failing.map((delivery) => finish(delivery, { state: 'retry', delaySeconds: 1 }));
      await untilBlocked(desk.db);
      const attempt = { startedAt: new Date(), durationMs: 1, outcome: 'delivered', statusCode: 200 } as const;
      const made = { subscriptionPk: other, delivery: delivered, attempt };
      expect(await finishAttempt(desk.db, made, { state: 'delivered' })).toMatchObject({ isRecorded: true });
      expect(await blockedSessions(desk.db)).toBe(1);
      return all;
    });
    expect(recording).toHaveLength(4);
    expect((await Promise.all(recording)).every(({ isRecorded }) => isRecorded)).toBe(true);
  });
});
