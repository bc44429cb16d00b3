import type { Job, Worker } from 'bullmq';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { createLogger } from '../../../src/observe/logger.ts';
import { type QueueBackend, WORKER_SETTINGS } from '../../../src/queues/port.ts';
import { createPostgresQueues } from '../../../src/queues/postgres-backend.ts';
import { isDatabaseUnavailable, sql } from '../../../src/store/db/tx.ts';
import { gate } from '../../support/gate.ts';
import { useTestDatabase } from '../../support/postgres/database.ts';
import { startTcpProxy, type TcpProxy } from '../../support/processes/tcp-proxy.ts';
import { wipeQueues } from '../../support/redis/queue-backends.ts';
import { aCutWorker, processesLostJobs, reached } from './lost-hand-outs.ts';

const log = createLogger({ process: 'test', level: 'silent' });

const test = useTestDatabase();
let backend: QueueBackend;
beforeAll(async () => {
  backend = createPostgresQueues({ databaseUrl: test.url, prefix: 'test', workers: 1, log });
});
afterAll(() => backend.close());

/** Resolves at the next failed fetch. The search for stalled jobs fails too. */
function failedFetch(worker: Worker): Promise<void> {
  return new Promise((resolve) => {
    worker.on('error', ({ message }) => {
      if (message.includes('move_to_active')) resolve();
    });
  });
}

it('worker pauses after each failed fetch and processes jobs again when its schema was missing at its start', async () => {
  await backend.migrate();
  await wipeQueues('postgres', test.db, 'test');
  const worker = backend.worker('alerts', async (job) => job.data, 1);
  const queue = backend.queue('alerts');
  // BullMQ prints errors without a listener.
  worker.on('error', () => undefined);
  const ended = worker.run();
  try {
    await failedFetch(worker);
    const firstAt = performance.now();
    await failedFetch(worker);
    // Node fires a timer up to a millisecond early.
    expect(performance.now() - firstAt).toBeGreaterThan(248);
    expect(await backend.restore()).toBe(true);
    const completed = new Promise<Job>((resolve) => worker.once('completed', resolve));
    await queue.add('evaluate-alerts', { lane: 1 });
    expect((await completed).returnvalue).toEqual({ lane: 1 });
  } finally {
    await worker.close();
    await queue.close();
    await ended;
  }
});

/** A worker whose connections to the server can be cut. */
async function cutWorker(processor: (job: Job, proxy: TcpProxy) => Promise<unknown>) {
  const proxy = await startTcpProxy(test.url);
  const own = { databaseUrl: proxy.url, prefix: 'test', workers: 1, log, isUnavailable: isDatabaseUnavailable };
  const lost = createPostgresQueues(own);
  await lost.migrate();
  const worker = lost.worker('alerts', (job) => processor(job, proxy), 1);
  const errors = gate();
  worker.on('error', () => errors.open());
  const cut = aCutWorker({
    ...{ proxy, worker, queue: backend.queue('alerts') },
    async close() {
      await lost.close();
      await proxy.close();
    },
  });
  return { ...cut, failedOnce: errors.opened };
}

describe('worker records the end of a job when the server is back that went away while the job ran: a job that', () => {
  it.each([
    { what: 'succeeds', event: 'completed', error: undefined },
    { what: 'fails', event: 'failed', error: new Error('no such market') },
  ] as const)('$what', async ({ event, error }) => {
    let id = '';
    const { proxy, worker, queue, failedOnce, start } = await cutWorker(async () => {
      proxy.cut();
      if (error) throw error;
      return {};
    });
    const recorded = reached(worker, event, () => id);
    const stop = start();
    try {
      id = (await queue.add('evaluate-alerts', { lane: 2 })).id ?? '';
      await failedOnce;
      expect(await queue.getJobState(id)).toBe('active');
      proxy.resume();
      await recorded;
      expect(await queue.getJobState(id)).toBe(event);
      // Each repetition of a failure has its stack.
      expect((await queue.getJob(id))?.stacktrace).toHaveLength(error ? 1 : 0);
    } finally {
      await stop();
    }
  });
});

describe('worker processes a job at once whose hand-out was lost with the connection', () => {
  processesLostJobs(cutWorker);

  it('by the schedule of the next job of its chain', async () => {
    const { proxy, worker, queue, stalled, start } = await cutWorker(async ({ data }) => data as unknown);
    const processed = new Promise<void>((resolve) => worker.on('completed', () => resolve()));
    const stop = start();
    try {
      await worker.waitUntilReady();
      // The name of the column in the answer of the statement that schedules the next job.
      const cut = proxy.cutAt('job_id');
      await queue.upsertJobScheduler('chain', { every: 3_600_000 }, { name: 'evaluate-alerts', data: { lane: 6 } });
      await cut;
      proxy.resume();
      await processed;
      expect(stalled).toEqual([]);
      expect(await queue.getActiveCount()).toBe(0);
    } finally {
      await stop();
    }
  });
});

type OnBackend = Worker & {
  readonly backend: { moveStalledJobsToWait(): Promise<string[]>; waitForJob(seconds: number): Promise<unknown> };
};

it('worker looks for a job after ten seconds when it knows no delayed job, as after the loss of its connection that listens', async () => {
  await backend.migrate();
  const worker = backend.worker('alerts', async () => undefined, 1) as unknown as OnBackend;
  const queue = backend.queue('alerts');
  const timers = vi.spyOn(globalThis, 'setTimeout');
  try {
    const waited = worker.backend.waitForJob(3_600);
    await queue.add('evaluate-alerts', { lane: 7 });
    expect(await waited).toMatchObject({ score: 0 });
    expect(Math.max(...timers.mock.calls.map(([, ms]) => ms ?? 0))).toBe(10_000);
  } finally {
    timers.mockRestore();
    await worker.close();
    await queue.close();
  }
});

describe('the check for stalled jobs', () => {
  const MARKED = sql('test_marked_jobs', `SELECT stalled_marked AS is_marked FROM bullmq.job WHERE state = 'active'`);
  const LEFT = sql(
    'test_left_of_lock',
    `SELECT (locked_until_ms - $1)::float8 AS left_ms FROM bullmq.job WHERE state = 'active'`,
  );
  const CHECKED = sql('test_stalled_checks', `SELECT FROM bullmq.meta WHERE field = 'stalled-check'`);
  const PASS = sql(
    'test_pass_of_locks',
    `WITH checked AS (UPDATE bullmq.meta SET value = (value::bigint - $1)::text WHERE field = 'stalled-check')
     UPDATE bullmq.job SET locked_until_ms = locked_until_ms - $1 WHERE state = 'active'`,
  );

  it('writes nothing while locks are renewed, and gives a job back at the next check after the end of its lock', async () => {
    await wipeQueues('postgres', test.db, 'test');
    await backend.migrate();
    const worker = backend.worker('alerts', async () => undefined, 1);
    const queue = backend.queue('alerts');
    // A new backend for each check: workers of a process share a look for a second, which is why a check may use one that is a second old.
    const check = async () => {
      const other = createPostgresQueues({ databaseUrl: test.url, prefix: 'test', workers: 1, log });
      const checking = other.worker('alerts', async () => undefined, 1) as unknown as OnBackend;
      try {
        return await checking.backend.moveStalledJobsToWait();
      } finally {
        await checking.close();
        await other.close();
      }
    };
    try {
      const { id } = await queue.add('evaluate-alerts', { lane: 1 });
      await worker.getNextJob('a suspended worker');
      expect(await check()).toEqual([]);
      expect(await test.db.query(CHECKED)).toEqual([]);
      await test.db.query(PASS, [5_100]);
      expect(await check()).toEqual([]);
      expect(await test.db.query(MARKED)).toEqual([{ isMarked: true }]);
      await test.db.query(PASS, [5_100]);
      expect(await check()).toEqual([id]);
    } finally {
      await worker.close();
      await queue.close();
    }
  });

  it('marks a job whose lock ends before the next check that uses the same look', async () => {
    await wipeQueues('postgres', test.db, 'test');
    await backend.migrate();
    const worker = backend.worker('alerts', async () => undefined, 1);
    const queue = backend.queue('alerts');
    try {
      await queue.add('evaluate-alerts', { lane: 1 });
      await worker.getNextJob('a suspended worker');
      const [job] = await test.db.query<{ leftMs: number }>(LEFT, [Date.now()]);
      // The lock ends a moment after one interval from now: only a look ahead by more than an interval finds it.
      await test.db.query(PASS, [Math.ceil((job?.leftMs ?? 0) - WORKER_SETTINGS.stalledInterval - 500)]);
      await (worker as unknown as OnBackend).backend.moveStalledJobsToWait();
      expect(await test.db.query(MARKED)).toEqual([{ isMarked: true }]);
    } finally {
      await worker.close();
      await queue.close();
    }
  });
});
