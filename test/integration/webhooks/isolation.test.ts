import type { Worker } from 'bullmq';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Receiver, startReceiver } from '../../../sim/receiver.ts';
import { parseSecretsKeys } from '../../../src/domain/values/secret-keys.ts';
import { concurrencyOf } from '../../../src/queues/jobs.ts';
import { createProducer } from '../../../src/queues/producer.ts';
import { sql } from '../../../src/store/db/tx.ts';
import { MAX_IN_FLIGHT } from '../../../src/store/deliveries/claims.ts';
import { createSecretBox } from '../../../src/webhooks/secret-box.ts';
import type { Sender } from '../../../src/webhooks/sender.ts';
import { deliverDue } from '../../../workers/jobs/deliver-due.ts';
import { deliverWebhook } from '../../../workers/jobs/deliver-webhook.ts';
import { createProcessor } from '../../../workers/process/define.ts';
import { anAccount, aSubscription } from '../../factories/alerts.ts';
import { aDelivery } from '../../factories/deliveries.ts';
import { gate } from '../../support/gate.ts';
import { createTestDatabase, type TestDatabase } from '../../support/postgres/database.ts';
import { createTestBackend } from '../../support/redis/queue-backends.ts';
import { type RawServer, startTlsServer, testAuthority } from '../../support/tls.ts';
import { jobContext, keptLog, RING, testConfig, until } from '../workers/worker-harness.ts';
import { SECRET, testSender } from './deliveries.ts';

const HEALTHY = 98;
const EACH = 3;
const WAIT_MS = 30_000;

let test: TestDatabase;
let receiver: Receiver;
let dead: RawServer;
let sender: Sender;
beforeAll(async () => {
  test = await createTestDatabase();
  receiver = await startReceiver();
  dead = await startTlsServer({ onRequest: () => undefined });
  sender = await testSender({ extraCaPem: receiver.caPem + (await testAuthority()).caPem });
});
afterAll(async () => {
  await sender.close();
  await receiver.close();
  await test.drop();
});

const STATES = sql(
  'test_delivery_states',
  `SELECT w.url, d.status, count(*)::int AS rows, count(d.locked_until)::int AS locked
   FROM delivery d JOIN webhook_subscription w ON w.pk = d.subscription_pk GROUP BY w.url, d.status`,
);

it('the deliverer delays none of 98 receivers when one is dead and one is slow', async () => {
  const accountId = await anAccount(test.db);
  const box = createSecretBox(parseSecretsKeys(RING));
  async function subscribe(url: string, deliveries: number): Promise<bigint> {
    const id = `wh_${crypto.randomUUID()}`;
    const pk = await aSubscription(test.db, { accountId, id, url, sealedSecret: box.seal(SECRET, id) });
    for (let count = 0; count < deliveries; count += 1) await aDelivery(test.db, { accountId, subscriptionPk: pk });
    return pk;
  }
  const bad = [await subscribe(dead.url, 50), await subscribe(`${receiver.url}/slow`, 50)];
  const good: bigint[] = [];
  for (let index = 0; index < HEALTHY; index += 1) good.push(await subscribe(`${receiver.url}/quick`, EACH));

  const mayAnswer = gate();
  receiver.replyWith(async ({ path }) => {
    if (path === '/slow') await mayAnswer.opened;
    return {};
  });
  const queues = await createTestBackend('postgres', 2);
  const { log } = keptLog();
  const producer = createProducer({ backend: queues.backend, log });
  const stopping = new AbortController();
  const deps = jobContext({ db: test.db, config: testConfig(test.url), sender, producer, stopping: stopping.signal });
  const worker: Worker = queues.backend.worker(
    'deliveries',
    createProcessor([deliverWebhook, deliverDue], deps),
    concurrencyOf('deliveries'),
  );
  worker.on('error', () => undefined);
  worker.run().catch(() => undefined);

  // The bad ones first, so that they can take all shared resources.
  producer.wakeDeliveries(bad);
  await producer.idle();
  await until(
    async () => dead.requests(),
    (requests) => requests === MAX_IN_FLIGHT,
  );
  await receiver.waitForCount(MAX_IN_FLIGHT, WAIT_MS);
  producer.wakeDeliveries(good);
  await receiver.waitForCount(MAX_IN_FLIGHT + HEALTHY * EACH, WAIT_MS);
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
  await worker.close();
  await producer.close();
  await queues.close();
});
