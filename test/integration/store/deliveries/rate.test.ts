import { beforeAll, describe, expect, it } from 'vitest';
import { Database, sql } from '../../../../src/store/db/tx.ts';
import { claimDueOfMany, claimTogether } from '../../../../src/store/deliveries/claims.ts';
import { dueSubscriptionsOfLane, oldestOverdueSeconds } from '../../../../src/store/deliveries/due.ts';
import { anAccount, aSubscription } from '../../../factories/alerts.ts';
import { aDelivery } from '../../../factories/deliveries.ts';
import { useTestDatabase } from '../../../support/postgres/database.ts';
import { END_LEASE } from './delivery-desk.ts';

const SET_RATE_AT = sql(
  'test_set_rate_at',
  `UPDATE webhook_subscription SET rate_at = clock_timestamp() + $2 * interval '1 second' WHERE pk = $1`,
);
const MOMENT = sql('test_moment', 'SELECT extract(epoch FROM clock_timestamp())::float8 AS seconds');

const test = useTestDatabase({ poolSize: 20 });
let accountId: bigint;
beforeAll(async () => {
  accountId = await anAccount(test.db);
});

async function limited(maxPerSecond: number, deliveries: number): Promise<bigint> {
  const pk = await aSubscription(test.db, { accountId, maxPerSecond });
  for (let count = 0; count < deliveries; count += 1)
    await aDelivery(test.db, { accountId, subscriptionPk: pk, dueInSeconds: -60 });
  return pk;
}
const seconds = async () => (await test.db.query<{ seconds: number }>(MOMENT))[0]?.seconds ?? 0;

describe('the rate of a webhook', () => {
  it.each([8, 40, 400])(
    'permits at most the documented attempts at %i per second when many claims compete',
    async (rate) => {
      const pk = await limited(rate, 60);
      const startedAt = await seconds();
      let claimed = 0;
      // Each claims like a process of its own.
      const claimer = async () => {
        const db = new Database(test.db.dataSource);
        for (let round = 0; round < 30; round += 1) {
          const claim = await claimTogether(db, { subscriptionPk: pk, limit: 3 });
          claimed += claim?.deliveries.length ?? 0;
          for (const delivery of claim?.deliveries ?? []) await test.db.query(END_LEASE, [delivery.pk]);
        }
      };
      await Promise.all([claimer(), claimer(), claimer(), claimer()]);
      const elapsed = (await seconds()) - startedAt;
      expect(claimed).toBeGreaterThan(0);
      expect(claimed).toBeLessThanOrEqual(elapsed * rate + Math.max(1, rate * 0.25));
    },
  );

  it('grants permits one interval apart, and states when the next one comes', async () => {
    const pk = await limited(0.1, 3);
    const first = await claimTogether(test.db, { subscriptionPk: pk, limit: 8 });
    expect(first?.deliveries).toHaveLength(1);
    const second = await claimTogether(test.db, { subscriptionPk: pk, limit: 8 });
    expect(second?.deliveries).toEqual([]);
    expect(second?.waitMs).toBeGreaterThan(0);
    expect(second?.waitMs).toBeLessThanOrEqual(10_001);
    await test.db.query(SET_RATE_AT, [pk, -10]);
    expect((await claimTogether(test.db, { subscriptionPk: pk, limit: 8 }))?.deliveries).toHaveLength(1);
  });

  it('states no time when no due delivery is left', async () => {
    const pk = await limited(4, 0);
    expect((await claimTogether(test.db, { subscriptionPk: pk, limit: 8 }))?.waitMs).toBeUndefined();
  });

  it('limits only its own webhook in a claim of many', async () => {
    const pk = await limited(1, 3);
    const free = await aSubscription(test.db, { accountId });
    for (let count = 0; count < 3; count += 1) await aDelivery(test.db, { accountId, subscriptionPk: free });
    const claims = await claimDueOfMany(
      test.db,
      [pk, free].map((subscriptionPk) => ({ subscriptionPk, limit: 8 })),
    );
    expect([pk, free].map((each) => claims.get(each)?.deliveries.length)).toEqual([1, 3]);
    const lane = await dueSubscriptionsOfLane(test.db, { lane: 0, lanes: 1, after: pk - 1n, limit: 1 });
    expect(lane.map((due) => due.pk)).not.toContain(pk);
  });

  it('does not count as overdue', async () => {
    await limited(0.1, 2);
    expect(await oldestOverdueSeconds(test.db)).toBeLessThan(30);
  });
});

describe('a hold of a service', () => {
  const HELD = sql(
    'test_held',
    `UPDATE webhook_subscription SET held_until = clock_timestamp() + $2 * interval '1 second' WHERE pk = $1`,
  );

  it('hides overdue deliveries until its end, and they are overdue from then on', async () => {
    const pk = await aSubscription(test.db, { accountId });
    await aDelivery(test.db, { accountId, subscriptionPk: pk, dueInSeconds: -4_000 });
    await test.db.query(HELD, [pk, 60]);
    expect(await oldestOverdueSeconds(test.db)).toBeLessThan(30);
    await test.db.query(HELD, [pk, -600]);
    const seconds = await oldestOverdueSeconds(test.db);
    expect(seconds).toBeGreaterThanOrEqual(600);
    expect(seconds).toBeLessThan(4_000);
  });
});
