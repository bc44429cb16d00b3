import { expect, it } from 'vitest';
import { newId } from '../../../../src/domain/values/ids.ts';
import { headersOwner } from '../../../../src/domain/webhooks/headers.ts';
import { storedDelivery } from '../../../factories/deliveries.ts';
import { GUARD_MS } from '../../../support/eventually.ts';
import { runDeliverer } from '../../webhooks/running-deliverer.ts';
import { wakeRecorder } from '../worker-harness.ts';
import { deliveryDesk } from './delivery-desk.ts';

const desk = deliveryDesk();
const { box, due, newRequests, run } = desk;

it('a request has the additional headers of its webhook beside those of oddswire', async () => {
  const id = newId('wh');
  const headers = { Authorization: 'Bearer abc', 'X-Team': 'odds' };
  const { pk } = await desk.subscribed({ id, sealedHeaders: box.seal(JSON.stringify(headers), headersOwner(id)) });
  await due(pk);
  await run(pk);
  const [request] = newRequests();
  expect(request?.headers).toMatchObject({
    authorization: 'Bearer abc',
    'x-team': 'odds',
    'content-type': 'application/json',
    'x-webhook-attempt': '1',
  });
});

it('a delivery fails unsent when its headers belong to another webhook', async () => {
  const { pk } = await desk.subscribed({ sealedHeaders: box.seal('{}', headersOwner('wh_other')) });
  const delivery = await due(pk);
  await run(pk);
  expect(await storedDelivery(desk.db, delivery.pk)).toMatchObject({ status: 'failed', lastError: 'protocol_error' });
  expect(newRequests()).toEqual([]);
});

it('a job leaves the deliveries beyond the rate to a delayed wake-up', async () => {
  const { pk } = await desk.subscribed({ maxPerSecond: 1 });
  for (let count = 0; count < 3; count += 1) await due(pk);
  const producer = wakeRecorder();
  expect(await run(pk, { producer })).toEqual({ attempts: 1 });
  expect(producer.woken).toEqual([expect.stringMatching(new RegExp(`^deliver-webhook ${pk} in \\d+ for a permit$`))]);
});

it('deliverers send a backlog at a limited rate until it is empty', async () => {
  const { pk } = await desk.subscribed({ maxPerSecond: 20 });
  for (let count = 0; count < 40; count += 1) await due(pk);
  const deliverers = [await runDeliverer(desk, desk.sender), await runDeliverer(desk, desk.sender)];
  const startedMs = Date.now();
  for (const { producer } of deliverers) producer.wakeDeliveries([pk]);
  await desk.receiver.waitForCount(desk.seen + 40, GUARD_MS);
  const times = newRequests().map(({ receivedAtMs }) => receivedAtMs);
  // 35 of them need a permit that comes after the start. The receiver's clock is another one than the database's.
  expect((times.at(-1) ?? 0) - startedMs).toBeGreaterThan(1_700);
  for (const deliverer of deliverers) await deliverer.close();
});
