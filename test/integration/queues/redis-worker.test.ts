import { randomBytes } from 'node:crypto';
import type { Job } from 'bullmq';
import { describe, expect, it } from 'vitest';
import { createLogger } from '../../../src/observe/logger.ts';
import { createRedisQueues } from '../../../src/queues/redis-backend.ts';
import { hasProgram } from '../../support/processes/has-program.ts';
import { startTcpProxy } from '../../support/processes/tcp-proxy.ts';
import { createTestBackend, type TestBackend } from '../../support/redis/queue-backends.ts';
import { spawnRedisServer } from '../../support/redis/redis.ts';
import { startBrokenCluster } from '../../support/redis/redis-topologies.ts';
import { aCutWorker, type CutWorker, processesLostJobs } from './lost-hand-outs.ts';

/** The result of a job for a worker that was made while Redis was away. */
async function resultAfter(test: TestBackend, repair: () => Promise<void>): Promise<unknown> {
  const worker = test.backend.worker('alerts', async () => 'done', 1);
  // Not with `once`, which rejects for each lost attempt to connect.
  const failed = new Promise((resolve) => worker.on('error', resolve));
  const completed = new Promise((resolve) => worker.on('completed', (_job, result) => resolve(result)));
  worker.run().catch(() => undefined);
  await failed;
  await repair();
  await (await test.another()).queue('alerts').add('evaluate-alerts', { lane: 0 });
  const result = await completed;
  await worker.close();
  return result;
}

describe.skipIf(!hasProgram('redis-server', 'a worker without its Redis'))(
  'a worker works when, as it was made,',
  () => {
    it('its Redis was away', async () => {
      const redis = await spawnRedisServer();
      const test = await createTestBackend('redis', 1, `redis://127.0.0.1:${redis.port}`);
      await redis.kill();
      expect(await resultAfter(test, () => redis.start())).toBe('done');
      await test.close();
      await redis.stop();
    });

    it('its Redis Cluster was away', async () => {
      const cluster = await startBrokenCluster();
      await cluster.addMissingSlots();
      const test = await createTestBackend('redis', 1, cluster.url);
      await cluster.killMaster('');
      expect(await resultAfter(test, () => cluster.restart())).toBe('done');
      await test.close();
      await cluster.stop();
    });
  },
);

/** A worker whose connections to one Redis, or to a Cluster of one, can be cut, and its queue on connections of its own. */
async function cutWorker(kind: 'redis' | 'cluster', processor: (job: Job) => Promise<unknown>): Promise<CutWorker> {
  const cluster = kind === 'cluster' ? await startBrokenCluster() : undefined;
  await cluster?.addMissingSlots();
  const single = cluster ? undefined : await spawnRedisServer();
  const url = cluster?.url ?? `redis://127.0.0.1:${single?.port}`;
  const proxy = await startTcpProxy(url);
  await cluster?.announce(Number(new URL(proxy.url).port));
  const options = {
    ...{ databaseUrl: '', workers: 1, log: createLogger({ process: 'test', level: 'silent' }) },
    prefix: `t${randomBytes(6).toString('hex')}`,
  };
  const lost = createRedisQueues({ ...options, redisUrl: proxy.url });
  // A Cluster of one answers a client of a single server too, which never uses the announced port.
  const other = createRedisQueues({ ...options, redisUrl: url.replace('redis-cluster:', 'redis:') });
  const worker = lost.worker('alerts', processor, 1);
  await other.migrate();
  return aCutWorker({
    ...{ proxy, worker, queue: other.queue('alerts') },
    async close() {
      await lost.close();
      await other.close();
      await proxy.close();
      await cluster?.stop();
      await single?.stop();
    },
  });
}

describe.skipIf(!hasProgram('redis-server', 'lost hand-outs'))(
  'worker processes a job whose hand-out was lost with the connection when it is back, and not when its lock ends:',
  () => {
    describe.concurrent.each(['redis', 'cluster'] as const)('%s,', (kind) => {
      processesLostJobs((processor) => cutWorker(kind, processor));
    });
  },
);
