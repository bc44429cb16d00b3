import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Receiver, startReceiver } from '../../../../sim/receiver.ts';
import { newId } from '../../../../src/domain/values/ids.ts';
import { parseSecretsKeys } from '../../../../src/domain/values/secret-keys.ts';
import { headersOwner } from '../../../../src/domain/webhooks/headers.ts';
import { createSecretBox } from '../../../../src/webhooks/secret-box.ts';
import type { Sender } from '../../../../src/webhooks/sender.ts';
import { deliverWebhook } from '../../../../workers/jobs/deliver-webhook.ts';
import { anAccount, aSubscription, type SubscriptionFields } from '../../../factories/alerts.ts';
import { aDelivery, storedDelivery } from '../../../factories/deliveries.ts';
import { createTestDatabase, type TestDatabase } from '../../../support/postgres/database.ts';
import { SECRET, testSender } from '../../webhooks/deliveries.ts';
import { runDeliverer } from '../../webhooks/running-deliverer.ts';
import { jobContext, RING, testConfig, wakeRecorder } from '../worker-harness.ts';

let test: TestDatabase;
let receiver: Receiver;
let sender: Sender;
let accountId: bigint;
const box = createSecretBox(parseSecretsKeys(RING));
beforeAll(async () => {
  test = await createTestDatabase({ poolSize: 20 });
  receiver = await startReceiver();
  sender = await testSender({ extraCaPem: receiver.caPem });
  accountId = await anAccount(test.db);
});
afterAll(async () => {
  await sender.close();
  await receiver.close();
  await test.drop();
});

async function subscribed(path: string, fields: (id: string) => Partial<SubscriptionFields>) {
  const id = newId('wh');
  const sealedSecret = box.seal(SECRET, id);
  const url = `${receiver.url}/${path}`;
  return { id, pk: await aSubscription(test.db, { accountId, id, url, sealedSecret, ...fields(id) }) };
}
const run = (pk: bigint, fields = {}) =>
  deliverWebhook.run(
    { subscriptionPk: String(pk) },
    jobContext({ db: test.db, config: testConfig(test.url), sender, ...fields }),
  );

it('a request has the additional headers of its webhook beside those of oddswire', async () => {
  const headers = { Authorization: 'Bearer abc', 'X-Team': 'odds' };
  const { pk } = await subscribed('headers', (id) => ({
    sealedHeaders: box.seal(JSON.stringify(headers), headersOwner(id)),
  }));
  await aDelivery(test.db, { accountId, subscriptionPk: pk });
  await run(pk);
  const request = receiver.requests.find(({ path }) => path === '/headers');
  expect(request?.headers).toMatchObject({
    authorization: 'Bearer abc',
    'x-team': 'odds',
    'content-type': 'application/json',
    'x-webhook-attempt': '1',
  });
});

it('a delivery fails unsent when its headers belong to another webhook', async () => {
  const { pk } = await subscribed('moved', () => ({ sealedHeaders: box.seal('{}', headersOwner('wh_other')) }));
  const delivery = await aDelivery(test.db, { accountId, subscriptionPk: pk });
  await run(pk);
  expect(await storedDelivery(test.db, delivery.pk)).toMatchObject({ status: 'failed', lastError: 'protocol_error' });
  expect(receiver.requests.filter(({ path }) => path === '/moved')).toEqual([]);
});

it('a job leaves the deliveries beyond the rate to a delayed wake-up', async () => {
  const { pk } = await subscribed('rate', () => ({ maxPerSecond: 1 }));
  for (let count = 0; count < 3; count += 1) await aDelivery(test.db, { accountId, subscriptionPk: pk });
  const producer = wakeRecorder();
  expect(await run(pk, { producer })).toEqual({ attempts: 1 });
  expect(producer.woken).toEqual([expect.stringMatching(new RegExp(`^deliver-webhook ${pk} in \\d+ for a permit$`))]);
});

it('deliverers send a backlog at a limited rate until it is empty', async () => {
  const { pk } = await subscribed('backlog', () => ({ maxPerSecond: 20 }));
  for (let count = 0; count < 40; count += 1) await aDelivery(test.db, { accountId, subscriptionPk: pk });
  const deliverers = [await runDeliverer(test, sender), await runDeliverer(test, sender)];
  for (const { producer } of deliverers) producer.wakeDeliveries([pk]);
  await receiver.waitFor(() => receiver.requests.filter(({ path }) => path === '/backlog').length === 40, 30_000);
  const times = receiver.requests.filter(({ path }) => path === '/backlog').map(({ receivedAtMs }) => receivedAtMs);
  // 35 of them need a permit that comes after the start. The receiver's clock is another one than the database's.
  expect((times.at(-1) ?? 0) - (times[0] ?? 0)).toBeGreaterThan(1_500);
  for (const deliverer of deliverers) await deliverer.close();
});
