import { randomBytes } from 'node:crypto';
import { Cluster } from 'ioredis';
import { inject } from 'vitest';
import { createLogger } from '../../../src/observe/logger.ts';
import { createQueueBackend } from '../../../src/queues/backend.ts';
import type { QueueBackend } from '../../../src/queues/port.ts';
import { createRedisClient } from '../../../src/queues/redis-connection.ts';
import type { Database } from '../../../src/store/db/tx.ts';
import { createTestDatabase } from '../postgres/database.ts';

export interface TestBackend {
  backend: QueueBackend;
  /** A second one on the same store, as another process would have. */
  another(): Promise<QueueBackend>;
  /** Deletes the content of the queue store, as an operator's accident would. */
  wipe(): Promise<void>;
  close(): Promise<void>;
}

export const BACKENDS = ['postgres', 'redis'] as const;
export type BackendKind = (typeof BACKENDS)[number];

/** Whether this run can test a backend; Redis needs a server (redis.ts prints a warning without one). */
export function isAvailable(kind: BackendKind): boolean {
  return kind === 'postgres' || inject('redisUrl') !== null;
}

/** Deletes all queues of a prefix. On Postgres the drop may deadlock with live workers, so it is retried. */
export async function wipeQueues(
  kind: BackendKind,
  db: Database,
  prefix: string,
  redisUrl = inject('redisUrl'),
): Promise<void> {
  if (kind === 'postgres') {
    await db.transaction((tx) => tx.em.query('DROP SCHEMA IF EXISTS bullmq CASCADE'));
    return;
  }
  const redis = createRedisClient(redisUrl ?? '', {
    maxRetriesPerRequest: 1,
    enableOfflineQueue: true,
    lazyConnect: true,
  });
  await redis.connect();
  for (const server of redis instanceof Cluster ? redis.nodes('master') : [redis]) {
    const keys = await server.keys(`{${prefix}}:*`);
    if (keys.length > 0) await server.del(...keys);
  }
  redis.disconnect();
}

/** Separate queues; on the run's Redis by default. */
export async function createTestBackend(
  kind: BackendKind,
  workers = 2,
  redisUrl = inject('redisUrl'),
): Promise<TestBackend> {
  const test = await createTestDatabase({ poolSize: 2 });
  const prefix = `t${randomBytes(6).toString('hex')}`;
  const log = createLogger({ process: 'test', level: 'silent' });
  const made: QueueBackend[] = [];
  const another = async () => {
    const backend = createQueueBackend({
      databaseUrl: test.url,
      ...(kind === 'redis' && redisUrl !== null && { redisUrl }),
      prefix,
      workers,
      log,
    });
    await backend.migrate();
    made.push(backend);
    return backend;
  };
  const backend = await another();
  return {
    backend,
    another,
    wipe: () => wipeQueues(kind, test.db, prefix, redisUrl),
    async close() {
      for (const item of made) await item.close();
      await test.drop();
    },
  };
}
