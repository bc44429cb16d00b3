import { describe, expect, it } from 'vitest';
import { newId } from '../../../../src/domain/values/ids.ts';
import { sql } from '../../../../src/store/db/tx.ts';
import { claimTogether } from '../../../../src/store/deliveries/claims.ts';
import { dueSubscriptions } from '../../../../src/store/deliveries/due.ts';
import { recoverDeliveries, retryDelivery } from '../../../../src/store/deliveries/recovery.ts';
import { updateSubscription } from '../../../../src/store/deliveries/subscriptions.ts';
import { anAccount, anAlert, aSubscription } from '../../../factories/alerts.ts';
import { aDelivery, type DeliveryFields, storedAttempts, storedDelivery } from '../../../factories/deliveries.ts';
import { deliveryDesk, SET_STATUS } from './delivery-desk.ts';

const HOUR_MS = 3_600_000;
const AN_EVENT = sql(
  'test_an_event',
  `INSERT INTO event (id, account_id, type, body, dedupe_key, created_at)
   VALUES ($1, $2, $3, '{}', $4, now() - $5 * interval '1 hour') RETURNING pk`,
);
const MANY_EVENTS = sql(
  'test_many_events',
  `INSERT INTO event (id, account_id, type, body) SELECT 'evt_' || gen_random_uuid(), $1, 'price_alert', '{}'
   FROM generate_series(1, $2)`,
);
const PUBLIC_ID = sql('test_public_id', 'SELECT id FROM webhook_subscription WHERE pk = $1');
const AGE = sql(
  'test_age_event',
  `UPDATE event SET created_at = now() - $2 * interval '1 hour' WHERE pk = (SELECT event_pk FROM delivery WHERE pk = $1)`,
);
const STATES = sql(
  'test_states',
  `SELECT d.status, count(*)::int AS rows FROM delivery d WHERE subscription_pk = $1 GROUP BY 1 ORDER BY 1`,
);
const EVENTS_OF = sql(
  'test_events_of',
  'SELECT e.id FROM delivery d JOIN event e ON e.pk = d.event_pk WHERE subscription_pk = $1 ORDER BY d.pk',
);

const desk = deliveryDesk();
const { due, claimOne, finish } = desk;

const idOf = async (pk = desk.subscriptionPk) => (await desk.db.query<{ id: string }>(PUBLIC_ID, [pk]))[0]?.id ?? '';
const states = async (pk = desk.subscriptionPk) =>
  Object.fromEntries(
    (await desk.db.query<{ status: string; rows: number }>(STATES, [pk])).map((row) => [row.status, row.rows]),
  );
const eventsOf = async (pk = desk.subscriptionPk) =>
  (await desk.db.query<{ id: string }>(EVENTS_OF, [pk])).map(({ id }) => id);

/** A new account, because a recovery covers all events of an account. */
async function anOwner(events = ['price_alert']) {
  const accountId = await anAccount(desk.db);
  const pk = await aSubscription(desk.db, { accountId, events });
  const id = await idOf(pk);
  const recover = (fields: { hours?: number; onCommit?: (pk: bigint) => void; subscriptionId?: string } = {}) =>
    recoverDeliveries({
      db: desk.db,
      accountId,
      subscriptionId: fields.subscriptionId ?? id,
      since: new Date(Date.now() - (fields.hours ?? 24) * HOUR_MS),
      onCommit: fields.onCommit ?? (() => undefined),
    });
  return {
    accountId,
    pk,
    id,
    recover,
    delivery: (fields: Partial<DeliveryFields> = {}) =>
      aDelivery(desk.db, { accountId, subscriptionPk: pk, ...fields }),
    async event(fields: { type?: string; dedupeKey?: string; hoursAgo?: number } = {}) {
      const eventId = newId('evt');
      const { type = 'price_alert', dedupeKey = `test:${eventId}`, hoursAgo = 0 } = fields;
      await desk.db.query(AN_EVENT, [eventId, accountId, type, dedupeKey, hoursAgo]);
      return eventId;
    },
  };
}

const retryFor = (accountId: bigint, subscriptionId: string, deliveryId: string) =>
  desk.db.transaction((tx) => retryDelivery(tx, accountId, subscriptionId, deliveryId));

const recovered = (count: number) => ({ outcome: 'recovered', recovered: count });

describe('retryDelivery', () => {
  const retry = async (deliveryId: string, subscriptionId?: string) =>
    retryFor(desk.accountId, subscriptionId ?? (await idOf()), deliveryId);

  it.each(['failed', 'cancelled', 'delivered'] as const)(
    'makes a %s delivery due and keeps its attempt count',
    async (status) => {
      const { pk, id } = await due({ status, attemptCount: 3, dueInSeconds: 500 });
      expect(await retry(id)).toMatchObject({
        outcome: 'retried',
        subscriptionPk: desk.subscriptionPk,
        delivery: { id, status: 'pending', attempts: 3 },
      });
      expect(await storedDelivery(desk.db, pk)).toMatchObject({ status: 'pending', attemptCount: 3 });
      const claimed = await claimOne();
      expect(claimed).toMatchObject({ id, attemptCount: 3, scheduleFrom: 0 });
      await finish(claimed, { state: 'delivered' });
      expect((await storedAttempts(desk.db, pk)).map((row) => row.attemptNumber)).toEqual([4]);
    },
  );

  it('rejects pending, paused, foreign and unknown deliveries without a change', async () => {
    const pending = await due({ dueInSeconds: 600 });
    const failed = await due({ status: 'failed' });
    expect(await retry(pending.id)).toEqual({ outcome: 'pending' });
    expect((await storedDelivery(desk.db, pending.pk)).dueIn).toBeGreaterThan(500);
    const otherPk = await aSubscription(desk.db, { accountId: desk.accountId });
    expect(await retry(failed.id, await idOf(otherPk))).toEqual({ outcome: 'delivery_not_found' });
    expect(await retry(failed.id, 'wh_unknown')).toEqual({ outcome: 'webhook_not_found' });
    const stranger = await anAccount(desk.db);
    expect(await retryFor(stranger, await idOf(), failed.id)).toEqual({ outcome: 'webhook_not_found' });
    await desk.db.query(SET_STATUS, [desk.subscriptionPk, 'paused']);
    expect(await retry(failed.id)).toEqual({ outcome: 'paused' });
    expect(await storedDelivery(desk.db, failed.pk)).toMatchObject({ status: 'failed' });
  });

  it('accepts one of many concurrent retries, with one attempt in flight at a time', async () => {
    const { pk, id } = await due({ status: 'failed', attemptCount: 10 });
    const subscriptionId = await idOf();
    const [retries, claims] = await Promise.all([
      Promise.all(Array.from({ length: 6 }, () => retry(id, subscriptionId))),
      Promise.all(Array.from({ length: 6 }, () => desk.claim())),
    ]);
    expect(retries.map(({ outcome }) => outcome).sort()).toEqual([...Array(5).fill('pending'), 'retried']);
    const [only, ...others] = [...claims.flat(), ...(await desk.claim())];
    expect(others).toEqual([]);
    if (!only) throw new Error('no worker claimed it');
    await finish(only, { state: 'failed' });
    expect(await storedDelivery(desk.db, pk)).toMatchObject({ status: 'failed', attemptCount: 11 });
  });

  it('starts no second attempt while one of the cancelled delivery is in flight', async () => {
    const { pk, id } = await due();
    const flying = await claimOne();
    await updateSubscription(desk.db, desk.accountId, await idOf(), { status: 'paused' });
    await updateSubscription(desk.db, desk.accountId, await idOf(), { status: 'active' });
    expect(await retry(id)).toMatchObject({ outcome: 'retried' });
    expect(await desk.claim()).toEqual([]);
    expect(await finish(flying, { state: 'delivered' })).toEqual({ isRecorded: true });
    expect(await storedDelivery(desk.db, pk)).toMatchObject({ status: 'delivered', attemptCount: 1 });
    expect(await desk.claim()).toEqual([]);
  });

  it('keeps the first delivery time with any result of the second delivery', async () => {
    const { pk, id } = await due();
    await finish(await claimOne(), { state: 'delivered' });
    const { deliveredAt } = await storedDelivery(desk.db, pk);
    await retry(id);
    await finish(await claimOne(), { state: 'failed' });
    expect(await storedDelivery(desk.db, pk)).toMatchObject({
      status: 'failed',
      deliveredAt,
      lastError: 'http_status',
    });
  });
});

describe('recoverDeliveries', () => {
  it('makes failed, cancelled and missing deliveries due, and skips all others', async () => {
    const owner = await anOwner();
    const failed = await owner.delivery({ status: 'failed', attemptCount: 10 });
    const cancelled = await owner.delivery({ status: 'cancelled' });
    const pending = await owner.delivery({ dueInSeconds: 900, attemptCount: 2 });
    const delivered = await owner.delivery({ status: 'delivered', attemptCount: 1 });
    const missed = await owner.event();
    await owner.event({ type: 'transaction' });
    const commits: bigint[] = [];
    expect(await owner.recover({ onCommit: (pk) => commits.push(pk) })).toEqual(recovered(3));
    expect(commits).toEqual([owner.pk]);
    expect(await eventsOf(owner.pk)).toEqual([
      failed.eventId,
      cancelled.eventId,
      pending.eventId,
      delivered.eventId,
      missed,
    ]);
    expect(await states(owner.pk)).toEqual({ pending: 4, delivered: 1 });
    expect((await storedDelivery(desk.db, pending.pk)).dueIn).toBeGreaterThan(800);
    const claimed = (await claimTogether(desk.db, { subscriptionPk: owner.pk, limit: 8 }))?.deliveries ?? [];
    // The retry schedule starts anew after the recorded attempts.
    expect(claimed.find(({ id }) => id === failed.id)).toMatchObject({ attemptCount: 10, scheduleFrom: 10 });
    expect(claimed).toHaveLength(3);
    expect(await owner.recover()).toEqual(recovered(0));
  });

  it('covers events since the given moment only', async () => {
    const owner = await anOwner();
    for (const hours of [50, 24.1, 23.9, 5, 1]) {
      const { pk } = await owner.delivery({ status: 'failed' });
      await desk.db.query(AGE, [pk, hours]);
      if (hours === 50) await owner.event({ hoursAgo: 30 });
      if (hours === 5) await owner.event({ hoursAgo: 3 });
    }
    expect(await owner.recover()).toEqual(recovered(4));
    expect(await owner.recover({ hours: 40 })).toEqual(recovered(2));
  });

  it('skips test events and delivered events', async () => {
    const owner = await anOwner();
    await owner.delivery({ isTest: true, type: 'price_alert', status: 'failed' });
    const { pk, id } = await owner.delivery();
    const first = (await claimTogether(desk.db, { subscriptionPk: owner.pk, limit: 1 }))?.deliveries[0];
    if (!first) throw new Error('the delivery is not claimable');
    await desk.finish({ ...first }, { state: 'delivered' });
    await retryFor(owner.accountId, owner.id, id);
    const second = (await claimTogether(desk.db, { subscriptionPk: owner.pk, limit: 1 }))?.deliveries[0];
    if (!second) throw new Error('the retried delivery is not claimable');
    await desk.finish({ ...second }, { state: 'failed' });
    expect(await storedDelivery(desk.db, pk)).toMatchObject({ status: 'failed' });
    // A second subscription, which has no delivery of the event, does not recover it either.
    const other = await idOf(await aSubscription(desk.db, { accountId: owner.accountId }));
    expect(await owner.recover()).toEqual(recovered(0));
    expect(await owner.recover({ subscriptionId: other })).toEqual(recovered(0));
  });

  it('skips an alert that names another subscription, even a paused one', async () => {
    const owner = await anOwner();
    const named = await aSubscription(desk.db, { accountId: owner.accountId });
    const fields = { accountId: owner.accountId, condition: 'above', target: '1' } as const;
    const [toNamed, toNobody] = await desk.db.transaction(async (tx) => [
      await anAlert(tx, { ...fields, mint: newId('req'), webhookPk: named }),
      await anAlert(tx, { ...fields, mint: newId('req') }),
    ]);
    const addressed = await owner.event({ dedupeKey: `alert:${toNamed?.id}` });
    const open = await owner.event({ dedupeKey: `alert:${toNobody?.id}` });
    expect(await owner.recover()).toEqual(recovered(1));
    expect(await eventsOf(owner.pk)).toEqual([open]);
    // The other event has a delivery now: an alert without a webhook goes to one subscription.
    expect(await owner.recover({ subscriptionId: await idOf(named) })).toEqual(recovered(1));
    expect(await eventsOf(named)).toEqual([addressed]);
  });

  it.each(['price_alert', 'alert_expired'] as const)(
    'takes an undelivered %s event from a deleted subscription, not from an existing one',
    async (type) => {
      const owner = await anOwner([type]);
      const later = await aSubscription(desk.db, { accountId: owner.accountId, events: [type] });
      const laterId = await idOf(later);
      await owner.delivery({ type, status: 'failed' });
      await owner.delivery({ type, status: 'delivered' });
      expect(await owner.recover({ subscriptionId: laterId })).toEqual(recovered(0));
      await desk.db.query(sql('test_delete_it', 'UPDATE webhook_subscription SET deleted_at = now() WHERE pk = $1'), [
        owner.pk,
      ]);
      expect(await owner.recover({ subscriptionId: laterId })).toEqual(recovered(1));
    },
  );

  it('delivers wallet events to every subscription that lists them', async () => {
    const owner = await anOwner(['transaction', 'balance_change']);
    const other = await aSubscription(desk.db, { accountId: owner.accountId, events: ['transaction'] });
    await owner.delivery({ type: 'transaction', status: 'delivered' });
    await owner.event({ type: 'balance_change' });
    await owner.event({ type: 'price_alert' });
    expect(await owner.recover({ subscriptionId: await idOf(other) })).toEqual(recovered(1));
    expect(await owner.recover()).toEqual(recovered(1));
  });

  it('rejects a paused, deleted, foreign or unknown subscription', async () => {
    const owner = await anOwner();
    await owner.delivery({ status: 'failed' });
    expect(await owner.recover({ subscriptionId: await idOf() })).toEqual({ outcome: 'webhook_not_found' });
    expect(await owner.recover({ subscriptionId: 'wh_unknown' })).toEqual({ outcome: 'webhook_not_found' });
    await desk.db.query(SET_STATUS, [owner.pk, 'paused']);
    expect(await owner.recover()).toEqual({ outcome: 'paused' });
    expect(await states(owner.pk)).toEqual({ failed: 1 });
  });

  it('makes each event due once when two recoveries run at once over many batches', async () => {
    const owner = await anOwner();
    await desk.db.query(MANY_EVENTS, [owner.accountId, 2_500]);
    const both = await Promise.all([owner.recover(), owner.recover(), owner.recover()]);
    const counts = both.map((result) => (result.outcome === 'recovered' ? result.recovered : -1));
    expect(counts.reduce((sum, count) => sum + count, 0)).toBe(2_500);
    expect(await states(owner.pk)).toEqual({ pending: 2_500 });
  });

  it('gives an alert without a webhook to one of two subscriptions that recover at once', async () => {
    const owner = await anOwner();
    const other = await aSubscription(desk.db, { accountId: owner.accountId });
    const otherId = await idOf(other);
    await desk.db.query(MANY_EVENTS, [owner.accountId, 50]);
    await Promise.all([owner.recover(), owner.recover({ subscriptionId: otherId })]);
    expect((await eventsOf(owner.pk)).length + (await eventsOf(other)).length).toBe(50);
  });

  it('leaves due rows for the timer when the process dies before the wake-up, and a second call recovers the rest', async () => {
    const owner = await anOwner();
    await desk.db.query(MANY_EVENTS, [owner.accountId, 2_500]);
    const dying = owner.recover({
      onCommit() {
        throw new Error('killed');
      },
    });
    await expect(dying).rejects.toThrow('killed');
    expect(await states(owner.pk)).toEqual({ pending: 1_000 });
    expect(await dueSubscriptions(desk.db, 1_000)).toContain(owner.pk);
    expect(await owner.recover()).toEqual(recovered(1_500));
  });
});
