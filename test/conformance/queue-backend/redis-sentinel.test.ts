import { afterAll, beforeAll, describe } from 'vitest';
import { hasProgram } from '../../support/processes/has-program.ts';
import { createTestBackend } from '../../support/redis/queue-backends.ts';
import { type RedisTopology, startRedisSentinel } from '../../support/redis/redis-topologies.ts';
import { describeQueueBackend } from './conformance.ts';

describe.skipIf(!hasProgram('redis-server', 'Redis Sentinel'))('queues on Redis behind Sentinel', () => {
  let sentinel: RedisTopology;
  beforeAll(async () => {
    sentinel = await startRedisSentinel({ sentinels: 1 });
  });
  afterAll(() => sentinel.stop());

  describeQueueBackend(() => createTestBackend('redis', 20, sentinel.url));
});
