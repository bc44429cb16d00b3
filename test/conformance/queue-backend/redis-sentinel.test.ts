import { afterAll, beforeAll, describe } from 'vitest';
import { createTestBackend } from '../../support/redis/queue-backends.ts';
import { hasRedisServer } from '../../support/redis/redis.ts';
import { type RedisTopology, startRedisSentinel } from '../../support/redis/redis-topologies.ts';
import { describeQueueBackend } from './conformance.ts';

describe.skipIf(!hasRedisServer('the queue tests behind Redis Sentinel are'))('queues on Redis behind Sentinel', () => {
  let sentinel: RedisTopology;
  beforeAll(async () => {
    sentinel = await startRedisSentinel({ sentinels: 1 });
  });
  afterAll(() => sentinel.stop());

  describeQueueBackend(() => createTestBackend('redis', 20, sentinel.url));
});
