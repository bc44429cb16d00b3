import { describe, expect, it } from 'vitest';
import { hasProgram } from '../../support/processes/has-program.ts';
import { createTestBackend, type TestBackend } from '../../support/redis/queue-backends.ts';
import { spawnRedisServer } from '../../support/redis/redis.ts';
import { startBrokenCluster } from '../../support/redis/redis-topologies.ts';

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
