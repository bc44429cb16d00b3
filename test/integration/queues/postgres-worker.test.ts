import type { Job, Worker } from 'bullmq';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createLogger } from '../../../src/observe/logger.ts';
import type { QueueBackend } from '../../../src/queues/port.ts';
import { createPostgresQueues } from '../../../src/queues/postgres-backend.ts';
import { isDatabaseUnavailable } from '../../../src/store/db/tx.ts';
import { gate } from '../../support/gate.ts';
import { useTestDatabase } from '../../support/postgres/database.ts';
import { startTcpProxy } from '../../support/processes/tcp-proxy.ts';
import { wipeQueues } from '../../support/redis/queue-backends.ts';

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

describe('the end of a job that runs while the server goes away is recorded when it is back: a job that', () => {
  it.each([
    { what: 'succeeds', event: 'completed', error: undefined },
    { what: 'fails', event: 'failed', error: new Error('no such market') },
  ] as const)('$what', async ({ event, error }) => {
    const proxy = await startTcpProxy(test.url);
    const own = { databaseUrl: proxy.url, prefix: 'test', workers: 1, log, isUnavailable: isDatabaseUnavailable };
    const lost = createPostgresQueues(own);
    await lost.migrate();
    const tried = gate();
    const run = async () => {
      proxy.cut();
      if (error) throw error;
      return {};
    };
    const worker = lost.worker('alerts', run, 1);
    worker.on('error', () => tried.open());
    const recorded = new Promise<Job | undefined>((resolve) => {
      if (event === 'completed') worker.once(event, resolve);
      else worker.once(event, resolve);
    });
    const ended = worker.run();
    const queue = backend.queue('alerts');
    try {
      const { id = '' } = await queue.add('evaluate-alerts', { lane: 2 });
      await tried.opened;
      expect(await queue.getJobState(id)).toBe('active');
      proxy.resume();
      expect((await recorded)?.id).toBe(id);
      expect(await queue.getJobState(id)).toBe(event);
    } finally {
      proxy.resume();
      await worker.close();
      await queue.close();
      await ended;
      await lost.close();
      await proxy.close();
    }
  });
});
