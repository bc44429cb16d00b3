import { afterAll, beforeAll, describe } from 'vitest';
import { createTestBackend } from '../../support/redis/queue-backends.ts';
import { hasRedisServer } from '../../support/redis/redis.ts';
import { type RedisTopology, startRedisCluster } from '../../support/redis/redis-topologies.ts';
import { describeQueueBackend } from './conformance.ts';

describe.skipIf(!hasRedisServer('the queue tests on Redis Cluster are'))('queues on a Redis Cluster', () => {
  let cluster: RedisTopology;
  beforeAll(async () => {
    cluster = await startRedisCluster({ hasReplicas: false });
  });
  afterAll(() => cluster.stop());

  describeQueueBackend(() => createTestBackend('redis', 20, cluster.url));
});
