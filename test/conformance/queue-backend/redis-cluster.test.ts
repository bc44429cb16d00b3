import { afterAll, beforeAll, describe } from 'vitest';
import { hasProgram } from '../../support/processes/has-program.ts';
import { createTestBackend } from '../../support/redis/queue-backends.ts';
import { type RedisTopology, startRedisCluster } from '../../support/redis/redis-topologies.ts';
import { describeQueueBackend } from './conformance.ts';

describe.skipIf(!hasProgram('redis-server', 'Redis Cluster'))('queues on a Redis Cluster', () => {
  let cluster: RedisTopology;
  beforeAll(async () => {
    cluster = await startRedisCluster({ hasReplicas: false });
  });
  afterAll(() => cluster.stop());

  describeQueueBackend(() => createTestBackend('redis', 20, cluster.url));
});
