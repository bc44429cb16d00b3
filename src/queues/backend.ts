import type { QueueBackend, QueueBackendOptions } from './port.ts';
import { createPostgresQueues } from './postgres-backend.ts';
import { createRedisQueues } from './redis-backend.ts';

/** Creates the queue store: Redis with `REDIS_URL`, otherwise Postgres. No other place makes this choice. */
export function createQueueBackend(options: QueueBackendOptions): QueueBackend {
  return options.redisUrl === undefined
    ? createPostgresQueues(options)
    : createRedisQueues({ ...options, redisUrl: options.redisUrl });
}
