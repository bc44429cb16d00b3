import { beforeEach, expect, it } from 'vitest';
import { newId } from '../../../../src/domain/values/ids.ts';
import type { EventFilter } from '../../../../src/domain/webhooks/filter.ts';
import { sql } from '../../../../src/store/db/tx.ts';
import { recoverDeliveries } from '../../../../src/store/deliveries/recovery.ts';
import { updateSubscription } from '../../../../src/store/deliveries/subscriptions.ts';
import { anAccount, aSubscription } from '../../../factories/alerts.ts';
import { emitOrdered } from '../../../factories/deliveries.ts';
import { useTestDatabase } from '../../../support/postgres/database.ts';

const EVENTS_OF = sql(
  'test_filtered_events',
  `SELECT e.id, d.order_key IS NOT NULL AS is_ordered FROM delivery d JOIN event e ON e.pk = d.event_pk
   WHERE d.subscription_pk = $1 ORDER BY d.pk`,
);
const ONLY_A: EventFilter = [{ field: 'data.marketId', equal: 'a' }];

const test = useTestDatabase();
let accountId: bigint;
beforeEach(async () => {
  accountId = await anAccount(test.db);
});

const eventsOf = async (pk: bigint) => (await test.db.query<{ id: string }>(EVENTS_OF, [pk])).map(({ id }) => id);
const recover = (subscriptionId: string) =>
  recoverDeliveries({
    db: test.db,
    accountId,
    subscriptionId,
    since: new Date(Date.now() - 3_600_000),
    onCommit: () => undefined,
  });

it('a filter excludes events when their deliveries are made', async () => {
  const pk = await aSubscription(test.db, { accountId, filter: ONLY_A });
  const [first, , third] = await emitOrdered(test.db, accountId, pk, ['a', 'b', 'a']);
  expect(await eventsOf(pk)).toEqual([first, third]);
});

it('a filter applies to an ordered webhook too', async () => {
  const pk = await aSubscription(test.db, { accountId, filter: ONLY_A, orderBy: 'market' });
  await emitOrdered(test.db, accountId, pk, ['b', 'a']);
  expect(await test.db.query(EVENTS_OF, [pk])).toMatchObject([{ isOrdered: true }]);
});

it('a recovery applies the filter to events without a delivery, and keeps deliveries that passed an earlier one', async () => {
  const id = newId('wh');
  const pk = await aSubscription(test.db, { id, accountId, filter: ONLY_A });
  const [a, b] = await emitOrdered(test.db, accountId, pk, ['a', 'b', 'c']);
  await updateSubscription(test.db, accountId, id, { status: 'paused' });
  const filter = [{ field: 'data.marketId', equal: 'b' }];
  await updateSubscription(test.db, accountId, id, { status: 'active', filter });
  expect(await recover(id)).toEqual({ outcome: 'recovered', recovered: 2 });
  expect(await eventsOf(pk)).toEqual([a, b]);
  expect(await recover(id)).toEqual({ outcome: 'recovered', recovered: 0 });
});
