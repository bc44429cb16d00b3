import { once } from 'node:events';
import { BullMQAdapter } from '@bull-board/api/bullMQAdapter';
import type { Job, Worker } from 'bullmq';
import { afterAll, afterEach, beforeAll, expect, it, vi } from 'vitest';
import { createLogger } from '../../../src/observe/logger.ts';
import { createProducer, type Producer } from '../../../src/queues/producer.ts';
import { reconcileSchedules } from '../../../src/queues/schedules.ts';
import { GUARD_MS } from '../../support/eventually.ts';
import type { TestBackend } from '../../support/redis/queue-backends.ts';

type Schedule = Parameters<typeof reconcileSchedules>[1][number];

const log = createLogger({ process: 'test', level: 'silent' });

/** The required behaviour of every queue store. The backend must allow for 20 workers. */
export function describeQueueBackend(create: () => Promise<TestBackend>): void {
  let test: TestBackend;
  let producer: Producer;
  let workers: Worker[] = [];

  beforeAll(async () => {
    test = await create();
    producer = createProducer({ backend: test.backend, log });
  });
  afterAll(async () => {
    await producer.close();
    await test.close();
  });
  afterEach(async () => {
    await Promise.all(workers.map((worker) => worker.close()));
    workers = [];
  });

  function work(queue: string, run: (job: Job) => Promise<unknown>, concurrency = 4): Worker {
    const worker = test.backend.worker(queue, run, concurrency);
    worker.on('error', () => undefined);
    worker.run().catch(() => undefined);
    workers.push(worker);
    return worker;
  }

  it('answer a ping', async () => {
    await test.backend.ping();
  });

  it('run a job with its data', async () => {
    const seen = new Promise((resolve) => work('alerts', async (job) => resolve([job.name, job.data])));
    await producer.enqueue('evaluate-alerts', { lane: 2 });
    expect(await seen).toEqual(['evaluate-alerts', { lane: 2 }]);
  });

  it('reject data outside the contract', async () => {
    await expect(producer.enqueue('evaluate-alerts', { lane: 99 })).rejects.toThrow();
    await expect(producer.enqueue('deliver-webhook', { subscriptionPk: 'x' })).rejects.toThrow();
  });

  it('fold many wake-ups into one active and one that follows', async () => {
    let runs = 0;
    let started: () => void = () => undefined;
    let finish: () => void = () => undefined;
    const firstStarted = new Promise<void>((resolve) => {
      started = resolve;
    });
    const mayFinish = new Promise<void>((resolve) => {
      finish = resolve;
    });
    const worker = work('candles', async () => {
      runs += 1;
      started();
      await mayFinish;
    });
    await producer.enqueue('fold-candles', { lane: 0 });
    await firstStarted;
    for (let call = 0; call < 30; call++) await producer.enqueue('fold-candles', { lane: 0 });
    const second = new Promise<void>((resolve) => {
      let completed = 0;
      worker.on('completed', () => {
        completed += 1;
        if (completed === 2) resolve();
      });
    });
    finish();
    await second;
    const { waiting, active, delayed } = await producer.queue('candles').getJobCounts();
    expect({ runs, waiting, active, delayed }).toEqual({ runs: 2, waiting: 0, active: 0, delayed: 0 });
  });

  it('run a prompt wake-up before a delayed one', async () => {
    const seen = new Promise((resolve) => work('deliveries', async (job) => resolve(job.data)));
    producer.wakeDeliveries([7n], 60_000);
    await producer.idle();
    producer.wakeDeliveries([7n]);
    expect(await seen).toEqual({ subscriptionPk: '7' });
  });

  it('run jobs of waiting clients before scheduled jobs', async () => {
    const queue = producer.queue('venue-p');
    await queue.add('tick', {}, { priority: 10 });
    await queue.add('asked', {});
    const order: string[] = [];
    await new Promise<void>((resolve) =>
      work('venue-p', async (job) => void (order.push(job.name) === 2 && resolve()), 1),
    );
    expect(order).toEqual(['asked', 'tick']);
  });

  it('show their jobs to the dashboard', async () => {
    const board = new BullMQAdapter(producer.queue('venue-b'));
    await producer.queue('venue-b').add('poll-books', { venue: 'b' }, { delay: 60_000 });
    expect((await board.getJobCounts()).delayed).toBe(1);
    const [job] = await board.getJobs(['delayed'], 0, 10);
    expect([job?.name, job?.data]).toEqual(['poll-books', { venue: 'b' }]);
    expect((await board.getDatastoreStats()) ?? (await board.getRedisInfo())).not.toBeNull();
    expect(await board.getJobSchedulers()).toEqual([]);
  });

  it('store a failure with an unstorable message after scrubbing it', async () => {
    const { createProcessor, defineJob } = await import('../../../workers/process/define.ts');
    const { createMetrics } = await import('../../../src/observe/metrics.ts');
    const failing = defineJob('evaluate-alerts', async () => {
      throw new Error('bad \u0000 text \ud800');
    });
    const { LivenessTracker } = await import('../../../src/observe/liveness.ts');
    const metrics = createMetrics('test', { ofNode: false });
    const deps = { metrics, log, tracker: new LivenessTracker(), stopping: new AbortController().signal };
    const processor = createProcessor([failing], deps as Parameters<typeof createProcessor>[1]);
    let runs = 0;
    const worker = work('alerts', (job) => {
      runs += 1;
      return Promise.resolve(processor(job));
    });
    const failed = once(worker, 'failed');
    await producer.enqueue('evaluate-alerts', { lane: 3 });
    const [job] = (await failed) as [Job];
    expect(job.failedReason).toBe('bad \uFFFD text \uFFFD');
    expect(runs).toBe(1);
  });

  it('keep schedulers according to the table: created once, changed, untouched when healthy', async () => {
    const schedule: Schedule = { id: 'poll-prices.x', job: 'poll-prices', data: { venue: 'x' }, everyMs: 60_000 };
    expect(await reconcileSchedules(producer, [schedule], Date.now())).toEqual(['poll-prices.x']);
    expect(await reconcileSchedules(producer, [schedule], Date.now())).toEqual([]);
    const faster = { ...schedule, everyMs: 30_000 };
    expect(await reconcileSchedules(producer, [faster], Date.now())).toEqual(['poll-prices.x']);
    expect(await producer.queue('venue-x').getJobSchedulersCount()).toBe(1);
    expect(await reconcileSchedules(producer, [faster], Date.now() + 3_600_000)).toEqual(['poll-prices.x']);
    // And one whose next run is an hour ahead, as after a clock was set back.
    expect(await reconcileSchedules(producer, [faster], Date.now() - 3_600_000)).toEqual(['poll-prices.x']);
    expect(await reconcileSchedules(producer, [faster], Date.now())).toEqual([]);
  });

  it('recover after the store was wiped under a running worker', async () => {
    const ticks: string[] = [];
    let ticked: () => void = () => undefined;
    work('venue-w', async (job) => {
      ticks.push(job.name);
      ticked();
    });
    const tick = () =>
      new Promise<void>((resolve) => {
        ticked = resolve;
      });
    const schedule: Schedule = { id: 'poll-trades.w', job: 'poll-trades', data: { venue: 'w' }, everyMs: 200 };
    await reconcileSchedules(producer, [schedule], Date.now());
    await tick();
    await test.wipe();
    ticks.length = 0;
    await vi.waitFor(
      async () => {
        await test.backend.restore();
        await reconcileSchedules(producer, [schedule], Date.now());
      },
      { timeout: GUARD_MS },
    );
    await tick();
    await tick();
    expect(ticks.length).toBeGreaterThanOrEqual(2);
  });
}
