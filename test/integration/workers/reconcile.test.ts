import type { Worker } from 'bullmq';
import { afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import type { MarketRecord } from '../../../src/domain/markets/market.ts';
import type { JobName, Role } from '../../../src/queues/jobs.ts';
import { createProducer, type Producer } from '../../../src/queues/producer.ts';
import { schedulesOf } from '../../../src/queues/schedules.ts';
import { writeMarkets } from '../../../src/store/catalog/markets.ts';
import { createPresence } from '../../../src/store/db/presence.ts';
import { sql } from '../../../src/store/db/tx.ts';
import type { Stage } from '../../../src/store/marks/detail.ts';
import { insertMarks } from '../../../src/store/marks/marks.ts';
import type { WorkerDeps } from '../../../workers/process/deps.ts';
import { reconcile, startReconciling } from '../../../workers/process/reconcile.ts';
import { gaugesOf } from '../../../workers/process/role-gauges.ts';
import { anAccount, aSubscription } from '../../factories/alerts.ts';
import { aDelivery } from '../../factories/deliveries.ts';
import { aMarketRecord } from '../../factories/markets.ts';
import { useTestDatabase } from '../../support/postgres/database.ts';
import { BACKENDS, createTestBackend, isAvailable, type TestBackend } from '../../support/redis/queue-backends.ts';
import { capturedLog, jobContext, LosableDatabase, testConfig, until, wakeRecorder } from './worker-harness.ts';

const CLEAR = sql('test_clear_work', 'TRUNCATE mark, parked_mark, delivery CASCADE');
const COUNT_MARKS = sql('test_count_marks', 'SELECT count(*)::int AS marks FROM mark');
const BEGIN_FORMER = sql(
  'test_begin_former',
  `INSERT INTO process_heartbeat (process, host, pid, version) VALUES ('alerter', 'former', 1, '0.1.0')`,
);
const END_FORMER = sql('test_end_former', `DELETE FROM process_heartbeat WHERE host = 'former'`);
/** Another look of a new process finds none. */
const AGE_RESULTS = sql(
  'test_age_results',
  `UPDATE market_resolution SET received_at = received_at - interval '1 day'`,
);
/** Keys of shards 1, 2 and 5: lanes 1 and 2. */
const KEYS = [1n, 2n, 5n, 17n];

const test = useTestDatabase();
let accountId: bigint;
beforeAll(async () => {
  accountId = await anAccount(test.db);
});
beforeEach(() => test.db.query(CLEAR));

const mark = (stage: Stage) =>
  test.db.transaction((tx) =>
    insertMarks(
      tx,
      stage,
      KEYS.map((key) => ({ key, detail: 60n })),
    ),
  );

async function dueRow(): Promise<bigint> {
  const subscriptionPk = await aSubscription(test.db, { accountId });
  await aDelivery(test.db, { accountId, subscriptionPk, dueInSeconds: -30 });
  await aDelivery(test.db, {
    accountId,
    subscriptionPk: await aSubscription(test.db, { accountId }),
    dueInSeconds: 60,
  });
  return subscriptionPk;
}

const depsOf = (producer: Producer, over: Partial<WorkerDeps> = {}): WorkerDeps =>
  jobContext({ db: test.db, config: testConfig(test.url), producer, ...over });

/** The scraped metrics of a process of this role. */
function scraped(role: Role, deps: WorkerDeps): Promise<string> {
  deps.metrics.collectors.add(...gaugesOf(role, deps));
  return deps.metrics.text();
}

describe.each(BACKENDS)('a round of the reconcile timer on %s', (kind) => {
  describe.skipIf(!isAvailable(kind))('after the queue store was wiped', () => {
    let queues: TestBackend;
    let producer: Producer;
    const closers: (() => Promise<unknown>)[] = [];

    beforeEach(async () => {
      queues = await createTestBackend(kind, 3);
      producer = createProducer({ backend: queues.backend, log: capturedLog().log });
      closers.push(
        () => producer.close(),
        () => queues.close(),
      );
    });
    afterEach(async () => {
      for (const close of closers.splice(0)) await close();
    });

    /** Wipes the queue store and runs a round for one role. Every job in its queue is a restored one. */
    async function wipedAndRestored(role: Role, over: Partial<WorkerDeps> = {}): Promise<WorkerDeps> {
      await queues.wipe();
      const deps = depsOf(producer, over);
      await reconcile(role, { ...deps, backend: queues.backend });
      await producer.idle();
      return deps;
    }
    const waiting = async (queue: string) =>
      (await producer.queue(queue).getJobs(['waiting', 'prioritized', 'delayed']))
        .map((job) => ({ name: job.name as JobName, data: job.data as unknown }))
        .sort((a, b) => JSON.stringify(a).localeCompare(JSON.stringify(b)));

    it.each(['poller', 'aggregator'] as const)(
      're-creates every schedule of the %s with its next tick',
      async (role) => {
        const { config } = depsOf(producer);
        const expected = schedulesOf(role, config);
        const queue = producer.queue(role === 'poller' ? 'polls' : 'candles');
        const { log, lines } = capturedLog();
        await reconcile(role, { ...depsOf(producer), backend: queues.backend });
        await wipedAndRestored(role, { log });
        const schedulers = await queue.getJobSchedulers();
        expect(schedulers.map(({ key, every, pattern }) => [key, pattern ?? Number(every)]).sort()).toEqual(
          expected.map(({ id, everyMs, pattern }) => [id, pattern ?? everyMs]).sort(),
        );
        const planned = await queue.getJobs(['waiting', 'prioritized', 'delayed']);
        expect(planned.map((job) => job.name).sort()).toEqual(expected.map(({ job }) => job).sort());
        expect(lines.some((line) => line.includes('schedules set'))).toBe(true);
        expect(lines.some((line) => line.includes('queue store was gone'))).toBe(kind === 'postgres');
        const again = capturedLog();
        await reconcile(role, { ...depsOf(producer, { log: again.log }), backend: queues.backend });
        expect(again.lines).toEqual([]);
      },
    );

    it.each([
      ['aggregator', 'fold-candles', 'candles'],
      ['alerter', 'evaluate-alerts', 'alerts'],
    ] as const)('wakes the %s for its pending marks, one job per lane', async (role, stage, queue) => {
      await mark(stage);
      const deps = await wipedAndRestored(role);
      expect((await waiting(queue)).filter(({ name }) => name === stage)).toEqual([
        { name: stage, data: { lane: 1 } },
        { name: stage, data: { lane: 2 } },
      ]);
      if (role === 'aggregator') {
        expect(await scraped(role, deps)).toMatch(/stage_marks_waiting\{stage="fold-candles".*\} 4/);
      }
    });

    it('wakes the deliverer for subscriptions with due rows, and measures the oldest row', async () => {
      const subscriptionPk = await dueRow();
      const deps = await wipedAndRestored('deliverer');
      expect(await waiting('deliveries')).toEqual([
        { name: 'deliver-webhook', data: { subscriptionPk: String(subscriptionPk) } },
      ]);
      const metrics = await scraped('deliverer', deps);
      expect(Number(/webhook_oldest_due_seconds\{.*\} ([\d.]+)/.exec(metrics)?.[1])).toBeGreaterThanOrEqual(30);
    });

    it('removes the schedules of single polls when no poller of the former release runs', async () => {
      const queue = producer.queue('venue-polymarket');
      const schedule = (name: string) =>
        queue.upsertJobScheduler(`${name}.polymarket`, { every: 60_000 }, { name, data: { venue: 'polymarket' } });
      const ids = async () => (await queue.getJobSchedulers()).map(({ key }) => key).sort();
      await schedule('poll-trades');
      await schedule('poll-markets');
      await schedule('of-an-operator');
      /** A round of a process that has not looked yet. */
      const round = async () => {
        const fresh = createProducer({ backend: queues.backend, log: capturedLog().log });
        closers.unshift(() => fresh.close());
        await reconcile('poller', { ...depsOf(fresh), backend: queues.backend });
      };
      const poller = async (workers: Record<string, string>) => {
        const presence = createPresence({ databaseUrl: test.url, log: capturedLog().log });
        closers.push(() => presence.close());
        await presence.register(workers, async () => undefined);
        return presence;
      };
      const ours = await poller({ polls: 'a', 'venue-polymarket': 'b' });
      const former = await poller({ 'venue-polymarket': 'c' });
      await round();
      expect(await ids()).toEqual(['of-an-operator.polymarket', 'poll-markets.polymarket', 'poll-trades.polymarket']);
      await former.close();
      // A look that fails is repeated in the next round of the process.
      const db = new LosableDatabase(test.db.dataSource);
      const deps = { ...depsOf(producer, { db }), backend: queues.backend };
      db.loseStatements = ['has_presence'];
      await expect(reconcile('poller', deps)).rejects.toThrow();
      db.loseStatements = [];
      await reconcile('poller', deps);
      expect(await ids()).toEqual(['of-an-operator.polymarket']);
      // A former poller that starts makes its schedules again, and they remain with it.
      await poller({ 'venue-polymarket': 'd' });
      await schedule('poll-trades');
      await round();
      expect(await ids()).toEqual(['of-an-operator.polymarket', 'poll-trades.polymarket']);
      await ours.close();
    });

    it('enqueues a repeated wake-up once', async () => {
      await dueRow();
      await mark('evaluate-alerts');
      for (let round = 0; round < 3; round++) {
        await reconcile('deliverer', { ...depsOf(producer), backend: queues.backend });
        await reconcile('alerter', { ...depsOf(producer), backend: queues.backend });
        await producer.idle();
      }
      expect(await waiting('deliveries')).toHaveLength(1);
      expect(await waiting('alerts')).toHaveLength(2);
    });

    it('gives the work to a worker that never stopped', async () => {
      const got: unknown[] = [];
      let arrived: () => void = () => undefined;
      const arrival = new Promise<void>((resolve) => {
        arrived = resolve;
      });
      const worker: Worker = queues.backend.worker(
        'deliveries',
        async (job) => {
          got.push(job.data);
          arrived();
        },
        4,
      );
      worker.on('error', () => undefined);
      closers.unshift(() => worker.close());
      worker.run().catch(() => undefined);
      await worker.waitUntilReady();
      // The drop may deadlock with transactions of the worker.
      await until(
        () =>
          queues.wipe().then(
            () => true,
            () => false,
          ),
        (isWiped) => isWiped,
      );
      const subscriptionPk = await dueRow();
      const isWoken = () =>
        reconcile('deliverer', { ...depsOf(producer), backend: queues.backend }).then(
          () => true,
          () => false,
        );
      await until(isWoken, (isDone) => isDone);
      await arrival;
      expect(got).toContainEqual({ subscriptionPk: String(subscriptionPk) });
    });
  });
});

describe('a round of the reconcile timer', () => {
  const idleStore = { restore: async () => false } as WorkerDeps['backend'];

  it('wakes no stage without a backlog', async () => {
    for (const role of ['alerter', 'deliverer'] as const) {
      const producer = wakeRecorder();
      await reconcile(role, { ...depsOf(producer), backend: idleStore });
      expect(producer.woken).toEqual([]);
    }
  });

  it('evaluates results again at its start, and while and after an alerter of the former release runs', async () => {
    await aSubscription(test.db, { accountId, events: ['market_resolution'] });
    const page = [aMarketRecord({ marketId: 'm', resolutionSteps: [{ state: 'proposed' }] })];
    const write = (records: MarketRecord[]) =>
      test.db.transaction((tx) => writeMarkets(tx, 'again', 'USD', records, Date.now()));
    await write([aMarketRecord({ marketId: 'm' })]);
    await write(page);
    const clock = vi.spyOn(performance, 'now');
    const producer = wakeRecorder();
    let nowMs = 1_000_000;
    const marksAfter = async (seconds: number) => {
      nowMs += seconds * 1_000;
      clock.mockReturnValue(nowMs);
      await test.db.query(CLEAR);
      await reconcile('alerter', { ...depsOf(producer), backend: idleStore });
      return (await test.db.query<{ marks: number }>(COUNT_MARKS))[0]?.marks;
    };
    try {
      expect(await marksAfter(0)).toBe(1);
      expect(producer.woken).toContain('evaluate-alerts');
      expect(await marksAfter(40)).toBe(0);
      await test.db.query(BEGIN_FORMER);
      expect(await marksAfter(40)).toBe(1);
      expect(await marksAfter(1)).toBe(0);
      await test.db.query(END_FORMER);
      expect(await marksAfter(200)).toBe(1);
      expect(await marksAfter(200)).toBe(0);
    } finally {
      clock.mockRestore();
      await test.db.query(AGE_RESULTS);
    }
  });

  it.each([
    ['aggregator', 'republish_resolutions'],
    ['alerter', 'former_alerters'],
    ['alerter', 'mark_results_again'],
  ] as const)(
    'of the %s repeats %s in the next round when it failed, and not when it succeeded',
    async (role, name) => {
      const db = new LosableDatabase(test.db.dataSource);
      const query = vi.spyOn(db, 'query');
      const deps = depsOf(wakeRecorder(), { db });
      const looks = async () => {
        query.mockClear();
        // A round fails with any of its steps, and the recorder has no queues for the schedules.
        await reconcile(role, { ...deps, backend: idleStore }).catch(() => undefined);
        return query.mock.calls.filter(([statement]) => statement.name === name).length;
      };
      db.loseStatements = [name];
      expect(await looks()).toBe(1);
      expect(await looks()).toBe(1);
      db.loseStatements = [];
      expect(await looks()).toBe(1);
      expect(await looks()).toBe(0);
    },
  );

  it('wakes only the stages of its own role', async () => {
    await mark('fold-candles');
    await mark('sample-snapshots');
    await dueRow();
    const producer = wakeRecorder();
    await reconcile('alerter', { ...depsOf(producer), backend: idleStore });
    expect(producer.woken).toEqual([]);
  });

  it('is followed by another one after a failure, until the process stops', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    try {
      let rounds = 0;
      const away = {
        restore: async () => {
          rounds += 1;
          throw new Error('queue store away');
        },
      } as unknown as WorkerDeps['backend'];
      const { log, lines } = capturedLog();
      const stopping = new AbortController();
      // The database is down too, so no step of the round waits for real time.
      const db = new LosableDatabase(test.db.dataSource);
      db.loseStatements = ['count_trade_histories'];
      const timer = startReconciling(
        'poller',
        depsOf(wakeRecorder(), { db, log, stopping: stopping.signal, backend: away }),
      );
      await vi.advanceTimersByTimeAsync(60_000);
      expect(rounds).toBeGreaterThanOrEqual(10);
      expect(rounds).toBeLessThanOrEqual(15);
      expect(lines.filter((line) => line.includes('restoring round failed'))).toHaveLength(rounds);
      const before = rounds;
      stopping.abort();
      await timer.stop();
      await vi.advanceTimersByTimeAsync(60_000);
      expect(rounds).toBe(before);
    } finally {
      vi.useRealTimers();
    }
  });
});
