import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Receiver, startReceiver } from '../../../sim/receiver.ts';
import { sql } from '../../../src/store/db/tx.ts';
import { MAX_IN_FLIGHT } from '../../../src/store/deliveries/claims.ts';
import type { Sender } from '../../../src/webhooks/sender.ts';
import { anAccount } from '../../factories/alerts.ts';
import { GUARD_MS } from '../../support/eventually.ts';
import { gate } from '../../support/gate.ts';
import { useTestDatabase } from '../../support/postgres/database.ts';
import { type RawServer, startTlsServer, testAuthority } from '../../support/tls.ts';
import { until } from '../workers/worker-harness.ts';
import { testSender } from './deliveries.ts';
import { aDueWebhook, runDeliverer } from './running-deliverer.ts';

const HEALTHY = 98;
const EACH = 3;

const test = useTestDatabase();
let receiver: Receiver;
let dead: RawServer;
let sender: Sender;
beforeAll(async () => {
  receiver = await startReceiver();
  dead = await startTlsServer({ onRequest: () => undefined });
  sender = await testSender({ extraCaPem: receiver.caPem + (await testAuthority()).caPem });
});
afterAll(async () => {
  await sender.close();
  await receiver.close();
});

const STATES = sql(
  'test_delivery_states',
  `SELECT w.url, d.status, count(*)::int AS rows, count(d.locked_until)::int AS locked
   FROM delivery d JOIN webhook_subscription w ON w.pk = d.subscription_pk GROUP BY w.url, d.status`,
);

it('the deliverer delays none of 98 receivers when one is dead and one is slow', async () => {
  const accountId = await anAccount(test.db);
  const subscribe = (url: string, deliveries: number) => aDueWebhook(test.db, accountId, url, deliveries);
  const bad = [await subscribe(dead.url, 50), await subscribe(`${receiver.url}/slow`, 50)];
  const good: bigint[] = [];
  for (let index = 0; index < HEALTHY; index += 1) good.push(await subscribe(`${receiver.url}/quick`, EACH));

  const mayAnswer = gate();
  receiver.replyWith(async ({ path }) => {
    if (path === '/slow') await mayAnswer.opened;
    return {};
  });
  const { producer, stopping, close } = await runDeliverer(test, sender);

  // The bad ones first, so that they can take all shared resources.
  producer.wakeDeliveries(bad);
  await producer.idle();
  await until(
    async () => dead.requests(),
    (requests) => requests === MAX_IN_FLIGHT,
  );
  await receiver.waitForCount(MAX_IN_FLIGHT, GUARD_MS);
  producer.wakeDeliveries(good);
  await receiver.waitForCount(MAX_IN_FLIGHT + HEALTHY * EACH, GUARD_MS);
  const states = await until(
    () => test.db.query<{ url: string; status: string; rows: number; locked: number }>(STATES),
    (rows) => rows.some(({ status, rows: count }) => status === 'delivered' && count === HEALTHY * EACH),
  );
  // Throughout the test, each of the two had as many attempts in flight as allowed, and no more.
  expect(states.filter(({ status }) => status !== 'delivered')).toEqual(
    expect.arrayContaining([
      { url: dead.url, status: 'pending', rows: 50, locked: MAX_IN_FLIGHT },
      { url: `${receiver.url}/slow`, status: 'pending', rows: 50, locked: MAX_IN_FLIGHT },
    ]),
  );
  expect(states).toHaveLength(3);
  expect(dead.requests()).toBe(MAX_IN_FLIGHT);
  expect(receiver.requests.filter(({ path }) => path === '/slow')).toHaveLength(MAX_IN_FLIGHT);
  expect(receiver.requests.every(({ duplicate }) => !duplicate)).toBe(true);

  stopping.abort();
  mayAnswer.open();
  await dead.close();
  await close();
});
