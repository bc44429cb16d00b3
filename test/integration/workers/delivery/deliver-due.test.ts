import { beforeEach, describe, expect, it } from 'vitest';
import { createProducer } from '../../../../src/queues/producer.ts';
import { Database, sql } from '../../../../src/store/db/tx.ts';
import { claimDueOfMany, MAX_IN_FLIGHT } from '../../../../src/store/deliveries/claims.ts';
import { deliverDue } from '../../../../workers/jobs/deliver-due.ts';
import { deliverWebhook } from '../../../../workers/jobs/deliver-webhook.ts';
import { GUARD_MS } from '../../../support/eventually.ts';
import { gate } from '../../../support/gate.ts';
import { createTestBackend } from '../../../support/redis/queue-backends.ts';
import { aDueWebhook } from '../../webhooks/running-deliverer.ts';
import { ALL_LANES, capturedLog, until } from '../worker-harness.ts';
import { deliveryDesk } from './delivery-desk.ts';

const MAX_FAILING_JOBS = 16;

const SET_FAILING = sql(
  'test_set_all_failing',
  'UPDATE webhook_subscription SET failing_since = now() WHERE pk = ANY ($1::bigint[])',
);
const CANCEL_LEFT = sql('test_cancel_left', `UPDATE delivery SET status = 'cancelled' WHERE status = 'pending'`);
const STATES = sql(
  'test_states_of',
  `SELECT status, count(*)::int AS rows, count(locked_until)::int AS locked FROM delivery
   WHERE subscription_pk = ANY ($1::bigint[]) GROUP BY status ORDER BY status`,
);

const desk = deliveryDesk();
// The job of a lane claims all due deliveries, also those of earlier tests.
beforeEach(() => desk.db.query(CANCEL_LEFT));

/** A separate process: its jobs share state through its database object. */
const aProcess = (fields = {}) => desk.context({ db: new Database(desk.db.dataSource), ...fields });
const newPaths = () => desk.newRequests().map(({ path }) => path);
const statesOf = (pks: readonly bigint[]) =>
  desk.db.query<{ status: string; rows: number; locked: number }>(STATES, [pks.map(String)]);

async function subscribed(
  count: number,
  deliveriesEach: number,
  path: string,
  at = desk.receiver.url,
): Promise<bigint[]> {
  const pks: bigint[] = [];
  for (let index = 0; index < count; index += 1) {
    pks.push(await aDueWebhook(desk.db, desk.accountId, `${at}/${path}/${index}`, deliveriesEach));
  }
  return pks;
}

describe('deliver-due', () => {
  it('sends each due delivery once when two processes run all lanes', async () => {
    const pks = await subscribed(24, 2, 'crowd');
    const runs = [aProcess(), aProcess()].flatMap((context) =>
      ALL_LANES.map((lane) => deliverDue.run({ lane }, context)),
    );
    const reports = await Promise.all(runs);
    expect(reports.reduce((sum, { attempts }) => sum + Number(attempts), 0)).toBe(48);
    const paths = newPaths();
    expect(paths).toHaveLength(48);
    expect(new Set(paths).size).toBe(24);
    expect(await statesOf(pks)).toEqual([{ status: 'delivered', rows: 48, locked: 0 }]);
  });

  it('sends to healthy receivers while others hang', async () => {
    const mayAnswer = gate();
    desk.receiver.replyWith(async ({ path }) => {
      if (path.startsWith('/hangs')) await mayAnswer.opened;
      return {};
    });
    // Connections are kept per origin, so the other receivers have another origin.
    const hanging = await subscribed(20, 5, 'hangs', desk.receiver.url.replace('127.0.0.1', 'localhost'));
    await desk.db.query(SET_FAILING, [hanging.map(String)]);
    const healthy = await subscribed(20, 3, 'healthy');
    const stopping = new AbortController();
    const context = aProcess({ stopping: stopping.signal });
    const runs = ALL_LANES.map((lane) => deliverDue.run({ lane }, context));
    await until(
      () => statesOf(healthy),
      ([state]) => state?.status === 'delivered' && state.rows === 60,
    );
    const [held] = await statesOf(hanging);
    expect(held?.locked).toBeGreaterThan(0);
    expect(held?.locked).toBeLessThanOrEqual(ALL_LANES.length * 16);
    stopping.abort();
    mayAnswer.open();
    await Promise.all(runs);
    expect((await statesOf(hanging)).find(({ status }) => status === 'pending')?.locked).toBe(0);
  });

  it('skips deliveries that another process claimed', async () => {
    const pks = await subscribed(12, 9, 'taken');
    await claimDueOfMany(
      desk.db,
      pks.map((subscriptionPk) => ({ subscriptionPk, limit: MAX_IN_FLIGHT })),
    );
    const reports = await Promise.all(ALL_LANES.map((lane) => deliverDue.run({ lane }, aProcess())));
    expect(reports).toEqual(ALL_LANES.map(() => ({ attempts: 0 })));
    expect(newPaths()).toEqual([]);
  });
});

it('deliver-webhook leaves places for healthy receivers when the jobs of many failing ones begin at once', async () => {
  const mayAnswer = gate();
  desk.receiver.replyWith(async ({ path }) => {
    if (path.startsWith('/failing')) await mayAnswer.opened;
    return {};
  });
  const elsewhere = desk.receiver.url.replace('127.0.0.1', 'localhost');
  const failing = await subscribed(MAX_FAILING_JOBS + 4, 1, 'failing', elsewhere);
  await desk.db.query(SET_FAILING, [failing.map(String)]);
  const [healthy = 0n] = await subscribed(1, 1, 'well');
  const context = aProcess();
  const run = (pk: bigint) => deliverWebhook.run({ subscriptionPk: String(pk) }, context);
  let heldBack: bigint[] = [];
  const busy = failing.map(async (pk) => {
    const report = await run(pk);
    if (report['attempts'] === 0) heldBack = [...heldBack, pk];
  });
  await desk.receiver.waitForCount(desk.seen + MAX_FAILING_JOBS, GUARD_MS);
  await until(
    async () => heldBack.length,
    (count) => count === failing.length - MAX_FAILING_JOBS,
  );
  expect(await run(healthy)).toEqual({ attempts: 1 });
  mayAnswer.open();
  await Promise.all(busy);
  expect(await run(heldBack[0] ?? 0n)).toEqual({ attempts: 1 });
});

it('wakeDeliveries wakes lanes for many subscriptions, and one job each for a few or for a retry', async () => {
  const queues = await createTestBackend('postgres', 0);
  const producer = createProducer({ backend: queues.backend, log: capturedLog().log });
  const jobs = async () =>
    (await producer.queue('deliveries').getJobs(['waiting', 'delayed']))
      .map(({ name, data }) => `${name} ${JSON.stringify(data)}`)
      .sort();
  try {
    producer.wakeDeliveries([5n, 6n, 5n]);
    await producer.idle();
    expect(await jobs()).toEqual(['deliver-webhook {"subscriptionPk":"5"}', 'deliver-webhook {"subscriptionPk":"6"}']);
    await producer.queue('deliveries').drain(true);
    producer.wakeDeliveries(Array.from({ length: 40 }, (_, index) => BigInt(index * 2)));
    await producer.idle();
    expect(await jobs()).toEqual(['deliver-due {"lane":0}', 'deliver-due {"lane":2}']);
    await producer.queue('deliveries').drain(true);
    producer.wakeDeliveries(
      Array.from({ length: 20 }, (_, index) => BigInt(index)),
      60_000,
    );
    await producer.idle();
    expect(await jobs()).toHaveLength(20);
  } finally {
    await producer.close();
    await queues.close();
  }
});
