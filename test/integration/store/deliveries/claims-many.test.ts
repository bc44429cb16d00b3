import { describe, expect, it } from 'vitest';
import { Database, sql, type Tx } from '../../../../src/store/db/tx.ts';
import { claimDueOfMany, claimTogether, MAX_IN_FLIGHT } from '../../../../src/store/deliveries/claims.ts';
import { dueSubscriptionsOfLane } from '../../../../src/store/deliveries/due.ts';
import { aSubscription } from '../../../factories/alerts.ts';
import { aDelivery, storedDelivery } from '../../../factories/deliveries.ts';
import { deliveryDesk, SET_STATUS } from './delivery-desk.ts';

const desk = deliveryDesk();
const SET_FAILING = sql('test_failing_now', 'UPDATE webhook_subscription SET failing_since = now() WHERE pk = $1');
const SET_DELETED = sql('test_delete', 'UPDATE webhook_subscription SET deleted_at = now() WHERE pk = $1');
const HOLD = sql('test_hold_subscription', 'SELECT pk FROM webhook_subscription WHERE pk = $1 FOR UPDATE');

async function subscriptions(count: number, deliveriesEach: number): Promise<bigint[]> {
  const pks: bigint[] = [];
  for (let index = 0; index < count; index += 1) {
    const subscriptionPk = await aSubscription(desk.db, { accountId: desk.accountId, sealedSecret: `sealed ${index}` });
    for (let row = 0; row < deliveriesEach; row += 1) {
      await aDelivery(desk.db, { accountId: desk.accountId, subscriptionPk, dueInSeconds: -row });
    }
    pks.push(subscriptionPk);
  }
  return pks;
}

const wanting = (pks: readonly bigint[], limit: number, evenIfFailing = true) =>
  pks.map((subscriptionPk) => ({ subscriptionPk, limit, evenIfFailing: () => evenIfFailing }));

/** Counts transactions. */
class CountingDatabase extends Database {
  transactions = 0;
  override async transaction<T>(work: (tx: Tx) => Promise<T>): Promise<T> {
    this.transactions += 1;
    return super.transaction(work);
  }
}

describe('claimDueOfMany', () => {
  it('returns the rows of each subscription, oldest due first, up to its limit', async () => {
    const pks = await subscriptions(3, 4);
    const claims = await claimDueOfMany(desk.db, [
      { subscriptionPk: pks[0] ?? 0n, limit: 3 },
      { subscriptionPk: pks[1] ?? 0n, limit: 1 },
      { subscriptionPk: pks[2] ?? 0n, limit: 100 },
      { subscriptionPk: 999_999n, limit: 8 },
    ]);
    expect([...claims.keys()].sort()).toEqual([...pks].sort());
    expect(pks.map((pk) => claims.get(pk)?.deliveries.length)).toEqual([3, 1, 4]);
    expect(pks.map((pk) => claims.get(pk)?.subscription.sealedSecret)).toEqual(['sealed 0', 'sealed 1', 'sealed 2']);
    const [oldest] = claims.get(pks[1] ?? 0n)?.deliveries ?? [];
    expect((await storedDelivery(desk.db, oldest?.pk ?? 0n)).dueIn).toBeLessThan(-2.9);
    const again = await claimDueOfMany(desk.db, wanting(pks, 8));
    expect(pks.map((pk) => again.get(pk)?.deliveries.length)).toEqual([1, 3, 0]);
  });

  it('returns each row once and at most eight rows per subscription when many processes claim at once', async () => {
    const pks = await subscriptions(5, 20);
    const rounds = await Promise.all(Array.from({ length: 8 }, () => claimDueOfMany(desk.db, wanting(pks, 5))));
    for (const pk of pks) {
      const claimed = rounds.flatMap((claims) => claims.get(pk)?.deliveries.map((delivery) => delivery.pk) ?? []);
      expect(new Set(claimed).size).toBe(claimed.length);
      expect(claimed.length).toBeLessThanOrEqual(MAX_IN_FLIGHT);
      expect(claimed.length).toBeGreaterThanOrEqual(5);
    }
  });

  it('cancels pending deliveries of paused and deleted subscriptions, and returns test events of paused ones', async () => {
    const pks = await subscriptions(3, 2);
    const [paused = 0n, deleted = 0n, live = 0n] = pks;
    const test = await aDelivery(desk.db, { accountId: desk.accountId, subscriptionPk: paused, isTest: true });
    const late = await aDelivery(desk.db, { accountId: desk.accountId, subscriptionPk: deleted, isTest: true });
    await desk.db.query(SET_STATUS, [paused, 'paused']);
    await desk.db.query(SET_DELETED, [deleted]);
    const claims = await claimDueOfMany(desk.db, wanting(pks, 8));
    expect(claims.get(paused)?.deliveries.map(({ pk }) => pk)).toEqual([test.pk]);
    expect(claims.get(deleted)?.deliveries).toEqual([]);
    expect(claims.get(live)?.deliveries).toHaveLength(2);
    expect((await storedDelivery(desk.db, late.pk)).status).toBe('cancelled');
  });

  it('withholds failing subscriptions when the claim wants only healthy ones', async () => {
    const pks = await subscriptions(2, 2);
    const [failing = 0n, healthy = 0n] = pks;
    await desk.db.query(SET_FAILING, [failing]);
    const claims = await claimDueOfMany(desk.db, wanting(pks, 8, false));
    expect(claims.get(failing)).toMatchObject({ deliveries: [], subscription: { isFailing: true } });
    expect(claims.get(healthy)).toMatchObject({ subscription: { isFailing: false } });
    expect(claims.get(healthy)?.deliveries).toHaveLength(2);
    expect((await claimDueOfMany(desk.db, wanting([failing], 8))).get(failing)?.deliveries).toHaveLength(2);
  });

  it('skips locked subscriptions, while a claim of one subscription waits', async () => {
    const [held = 0n, free = 0n] = await subscriptions(2, 1);
    const single = await desk.db.transaction(async (tx) => {
      await tx.query(HOLD, [held]);
      const claims = await claimDueOfMany(desk.db, wanting([held, free], 8));
      expect([...claims.keys()]).toEqual([free]);
      expect(claims.get(free)?.deliveries).toHaveLength(1);
      return { claim: claimTogether(desk.db, { subscriptionPk: held, limit: 8 }) };
    });
    expect((await single.claim)?.deliveries).toHaveLength(1);
  });

  it('shares one transaction among concurrent claims of a process', async () => {
    const pks = await subscriptions(12, 1);
    const db = new CountingDatabase(desk.db.dataSource);
    const claims = await Promise.all(pks.map((subscriptionPk) => claimTogether(db, { subscriptionPk, limit: 8 })));
    expect(claims.map((claim) => claim?.subscription.pk)).toEqual(pks);
    expect(claims.map((claim) => claim?.deliveries.length)).toEqual(pks.map(() => 1));
    expect(db.transactions).toBe(2);
    expect(await claimTogether(db, { subscriptionPk: 999_999n, limit: 8 })).toBeNull();
  });

  it('gives each delivery to one of several claims of a subscription at once', async () => {
    const [pk = 0n] = await subscriptions(1, MAX_IN_FLIGHT);
    const calls = Array.from({ length: MAX_IN_FLIGHT / 2 }, () =>
      claimTogether(desk.db, { subscriptionPk: pk, limit: 2 }),
    );
    const claimed = (await Promise.all(calls)).flatMap((claim) => claim?.deliveries.map(({ id }) => id) ?? []);
    expect(claimed).toHaveLength(MAX_IN_FLIGHT);
    expect(new Set(claimed).size).toBe(MAX_IN_FLIGHT);
  });
});

it('dueSubscriptionsOfLane lists subscriptions by lane and page, and omits those without due rows', async () => {
  const due = await subscriptions(9, 2);
  const idle = await subscriptions(3, 0);
  const [held = 0n] = await subscriptions(1, 1);
  await claimDueOfMany(desk.db, wanting([held], 8));
  const found: bigint[] = [];
  for (const lane of [0, 1]) {
    let after = 0n;
    for (;;) {
      const page = await dueSubscriptionsOfLane(desk.db, { lane, lanes: 2, after, limit: 2 });
      expect(page.every(({ pk }) => pk > after && pk % 2n === BigInt(lane))).toBe(true);
      found.push(...page.map(({ pk }) => pk));
      after = page.at(-1)?.pk ?? 0n;
      if (page.length < 2) break;
    }
  }
  expect(new Set(found).size).toBe(found.length);
  expect(found).toEqual(expect.arrayContaining(due));
  for (const pk of [...idle, held]) expect(found).not.toContain(pk);
});
