import type { QueueBackend, QueueBackendOptions } from './port.ts';
import { createPostgresQueues } from './postgres-backend.ts';
import { createRedisQueues } from './redis-backend.ts';

/** The queue store, chosen here and nowhere else: `REDIS_URL` means Redis, otherwise the queues live in Postgres. */
export function createQueueBackend(options: QueueBackendOptions): QueueBackend {
  return options.redisUrl === undefined
    ? createPostgresQueues(options)
    : createRedisQueues({ ...options, redisUrl: options.redisUrl });
}
