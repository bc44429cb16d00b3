import { setImmediate } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { RandomStream } from '../../../../sim/random.ts';
import { Database } from '../../../../src/store/db/tx.ts';
import { deliverDue } from '../../../../workers/jobs/deliver-due.ts';
import { emitOrdered } from '../../../factories/deliveries.ts';
import { deliverAll, expectMarked, expectOrdered } from '../../../support/ordered-receipts.ts';
import { ALL_LANES } from '../worker-harness.ts';
import { deliveryDesk } from './delivery-desk.ts';

const MARKETS = ['a', 'b', 'c', 'd'];

const desk = deliveryDesk({ WEBHOOK_RETRY_SCHEDULE: '60,60' });

it('several deliverers send the events of each key in order to a receiver that rejects some', async () => {
  const random = new RandomStream(7, 1);
  const { pk: subscriptionPk } = await desk.subscribed({ orderBy: 'market' });
  const emitted = new Map(MARKETS.map((market) => [market, [] as string[]]));
  const rejected = new Set<string>();
  for (let round = 0; round < 40; round += 1) {
    const markets = Array.from({ length: random.between(1, 5) }, () => random.pick(MARKETS));
    const ids = await emitOrdered(desk.db, desk.accountId, subscriptionPk, markets);
    for (const [index, eventId] of ids.entries()) {
      emitted.get(markets[index] ?? '')?.push(eventId);
      if (random.chance(150_000)) rejected.add(eventId);
    }
  }
  const inFlight = new Set<string>();
  desk.receiver.replyWith(async ({ headers, json }) => {
    const eventId = String(headers['webhook-id']);
    const { marketId } = (json as { data: { marketId: string } }).data;
    expect(inFlight.has(marketId), 'two attempts of a key at once').toBe(false);
    inFlight.add(marketId);
    await setImmediate();
    const mayPass = !rejected.has(eventId) && !random.chance(200_000);
    inFlight.delete(marketId);
    return { status: mayPass || headers['x-webhook-attempt'] === '3' ? (rejected.has(eventId) ? 500 : 200) : 500 };
  });
  const aProcess = () => desk.context({ db: new Database(desk.db.dataSource) });
  await deliverAll(desk.db, subscriptionPk, () =>
    Promise.all([
      ...[1, 2, 3].map(() => desk.run(subscriptionPk, { db: new Database(desk.db.dataSource) })),
      ...ALL_LANES.map((lane) => deliverDue.run({ lane }, aProcess())),
    ]),
  );
  expectOrdered(desk.receiver.requests, emitted);
  expectMarked(desk.receiver.requests, emitted, rejected);
});
