import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Receiver, startReceiver } from '../../../sim/receiver.ts';
import { sql } from '../../../src/store/db/tx.ts';
import { MAX_IN_FLIGHT } from '../../../src/store/deliveries/claims.ts';
import { dueSubscriptions } from '../../../src/store/deliveries/due.ts';
import type { Sender } from '../../../src/webhooks/sender.ts';
import { anAccount } from '../../factories/alerts.ts';
import { gate } from '../../support/gate.ts';
import { useTestDatabase } from '../../support/postgres/database.ts';
import { until } from '../workers/worker-harness.ts';
import { testSender } from './deliveries.ts';
import { aDueWebhook, runDeliverer } from './running-deliverer.ts';

/** 25 webhooks of the slow account, as many attempts in flight as they may have: 200. */
const SLOW_WEBHOOKS = 25;
/** Half of the connections of an origin. */
const SLOW_CONNECTIONS = 64;
/** No attempt of this test reaches it. */
const DEADLINE_MS = 300_000;

const test = useTestDatabase();
let receiver: Receiver;
let sender: Sender;
beforeAll(async () => {
  receiver = await startReceiver();
  sender = await testSender({ extraCaPem: receiver.caPem, deadlineMs: DEADLINE_MS });
});
afterAll(async () => {
  await sender.close();
  await receiver.close();
});

const STATES = sql(
  'test_states_by_account',
  `SELECT w.account_id, d.status, d.attempt_count AS attempts, d.last_error, count(*)::int AS rows,
     (SELECT count(*)::int FROM delivery_attempt t JOIN delivery o ON o.pk = t.delivery_pk
      JOIN webhook_subscription s ON s.pk = o.subscription_pk WHERE s.account_id = w.account_id) AS logged
   FROM delivery d JOIN webhook_subscription w ON w.pk = d.subscription_pk GROUP BY 1, 2, 3, 4`,
);

it('an account with 200 hanging deliveries neither delays nor fails a delivery of another account to the same host', async () => {
  const [slowAccount, quickAccount] = [await anAccount(test.db), await anAccount(test.db)];
  const subscribe = (accountId: bigint, path: string, deliveries: number) =>
    aDueWebhook(test.db, accountId, `${receiver.url}${path}`, deliveries);
  const slow: bigint[] = [];
  for (let index = 0; index < SLOW_WEBHOOKS; index += 1) {
    slow.push(await subscribe(slowAccount, '/slow', MAX_IN_FLIGHT));
  }
  const quick = await subscribe(quickAccount, '/quick', 3);

  const mayAnswer = gate();
  receiver.replyWith(async ({ path }) => {
    if (path === '/slow') await mayAnswer.opened;
    return {};
  });
  const { db } = test;
  const { producer, metrics, stopping, close } = await runDeliverer(test, sender);
  const postponed = async () => (await metrics.deliveriesPostponed.get()).values[0]?.value ?? 0;
  const rowsOf = async (accountId: bigint) => {
    const rows = await db.query<{ accountId: bigint; status: string; attempts: number; lastError: string | null }>(
      STATES,
    );
    return rows.filter((row) => row.accountId === accountId);
  };

  producer.wakeDeliveries(slow);
  const slowRequests = async () => receiver.requests.filter(({ path }) => path === '/slow');
  await until(slowRequests, ({ length }) => length === SLOW_CONNECTIONS);
  // From here on every attempt of the slow account that is not connected waits, or has returned to the queue.
  await until(postponed, (count) => count > 0);
  producer.wakeDeliveries([quick]);
  await until(
    () => rowsOf(quickAccount),
    (rows) => rows.every(({ status }) => status === 'delivered'),
  );
  expect(await rowsOf(quickAccount)).toMatchObject([{ status: 'delivered', attempts: 1, rows: 3, logged: 3 }]);
  expect(await slowRequests()).toHaveLength(SLOW_CONNECTIONS);
  expect(await rowsOf(slowAccount)).toMatchObject([
    { status: 'pending', attempts: 0, lastError: null, rows: SLOW_WEBHOOKS * MAX_IN_FLIGHT, logged: 0 },
  ]);

  mayAnswer.open();
  await until(
    async () => {
      // The reconcile timer of a worker process does this.
      producer.wakeDeliveries(await dueSubscriptions(db, 100));
      await producer.idle();
      return rowsOf(slowAccount);
    },
    (rows) => rows.every(({ status }) => status === 'delivered'),
  );
  expect(await rowsOf(slowAccount)).toMatchObject([
    { status: 'delivered', attempts: 1, rows: SLOW_WEBHOOKS * MAX_IN_FLIGHT },
  ]);
  expect(receiver.requests.every(({ duplicate }) => !duplicate)).toBe(true);

  stopping.abort();
  await close();
});
