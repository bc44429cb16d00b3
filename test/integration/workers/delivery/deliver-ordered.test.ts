import { setImmediate } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { RandomStream } from '../../../../sim/random.ts';
import { type Receiver, startReceiver } from '../../../../sim/receiver.ts';
import { newId } from '../../../../src/domain/values/ids.ts';
import { parseSecretsKeys } from '../../../../src/domain/values/secret-keys.ts';
import { Database } from '../../../../src/store/db/tx.ts';
import { createSecretBox } from '../../../../src/webhooks/secret-box.ts';
import type { Sender } from '../../../../src/webhooks/sender.ts';
import { deliverDue } from '../../../../workers/jobs/deliver-due.ts';
import { deliverWebhook } from '../../../../workers/jobs/deliver-webhook.ts';
import { anAccount, aSubscription } from '../../../factories/alerts.ts';
import { emitOrdered } from '../../../factories/deliveries.ts';
import { deliverAll, expectMarked, expectOrdered } from '../../../support/ordered-receipts.ts';
import { createTestDatabase, type TestDatabase } from '../../../support/postgres/database.ts';
import { SECRET, testSender } from '../../webhooks/deliveries.ts';
import { ALL_LANES, jobContext, RING, testConfig } from '../worker-harness.ts';

const MARKETS = ['a', 'b', 'c', 'd'];

let test: TestDatabase;
let receiver: Receiver;
let sender: Sender;
const box = createSecretBox(parseSecretsKeys(RING));
beforeAll(async () => {
  test = await createTestDatabase({ poolSize: 20 });
  receiver = await startReceiver();
  sender = await testSender({ extraCaPem: receiver.caPem });
});
afterAll(async () => {
  await sender.close();
  await receiver.close();
  await test.drop();
});

it('several deliverers send the events of each key in order to a receiver that rejects some', {
  timeout: 120_000,
}, async () => {
  const random = new RandomStream(7, 1);
  const accountId = await anAccount(test.db);
  const id = newId('wh');
  const sealedSecret = box.seal(SECRET, id);
  const url = `${receiver.url}/ordered`;
  const subscriptionPk = await aSubscription(test.db, { accountId, id, url, sealedSecret, orderBy: 'market' });
  const emitted = new Map(MARKETS.map((market) => [market, [] as string[]]));
  const rejected = new Set<string>();
  for (let round = 0; round < 40; round += 1) {
    const markets = Array.from({ length: random.between(1, 5) }, () => random.pick(MARKETS));
    const ids = await emitOrdered(test.db, accountId, subscriptionPk, markets);
    for (const [index, eventId] of ids.entries()) {
      emitted.get(markets[index] ?? '')?.push(eventId);
      if (random.chance(150_000)) rejected.add(eventId);
    }
  }
  const inFlight = new Set<string>();
  receiver.replyWith(async ({ headers, json }) => {
    const eventId = String(headers['webhook-id']);
    const { marketId } = (json as { data: { marketId: string } }).data;
    expect(inFlight.has(marketId), 'two attempts of a key at once').toBe(false);
    inFlight.add(marketId);
    await setImmediate();
    const mayPass = !rejected.has(eventId) && !random.chance(200_000);
    inFlight.delete(marketId);
    return { status: mayPass || headers['x-webhook-attempt'] === '3' ? (rejected.has(eventId) ? 500 : 200) : 500 };
  });
  const config = testConfig(test.url, { WEBHOOK_RETRY_SCHEDULE: '60,60' });
  const aProcess = () => jobContext({ db: new Database(test.db.dataSource), config, sender });
  await deliverAll(test.db, subscriptionPk, () =>
    Promise.all([
      ...[1, 2, 3].map(() => deliverWebhook.run({ subscriptionPk: String(subscriptionPk) }, aProcess())),
      ...ALL_LANES.map((lane) => deliverDue.run({ lane }, aProcess())),
    ]),
  );
  expectOrdered(receiver.requests, emitted);
  expectMarked(receiver.requests, emitted, rejected);
});
