import { Queue, Worker } from 'bullmq';
import { Redis } from 'ioredis';
import type { QueueBackend, QueueBackendOptions } from './port.ts';
import { JOB_RETENTION, WORKER_SETTINGS } from './settings.ts';

/** Waits 1 s to 20 s between connection attempts, for ever. */
function reconnectDelayMs(attempt: number): number {
  return Math.max(1_000, Math.min(2 ** attempt * 100, 20_000));
}

/** Queues in Redis: the scale-out engine. */
export function createRedisQueues(options: QueueBackendOptions & { redisUrl: string }): QueueBackend {
  // A producer fails at once while Redis is away: the database has the facts, and a timer wakes the stage later.
  const producer = new Redis(options.redisUrl, {
    maxRetriesPerRequest: 1,
    enableOfflineQueue: false,
    retryStrategy: reconnectDelayMs,
    lazyConnect: true,
  });
  const consumer = new Redis(options.redisUrl, {
    maxRetriesPerRequest: null,
    retryStrategy: reconnectDelayMs,
    lazyConnect: true,
  });
  for (const connection of [producer, consumer]) {
    connection.on('error', (error) => options.log.warn({ err: error }, 'redis connection error'));
  }
  // The hash tag keeps all keys of all queues in one slot, which BullMQ's scripts need on a cluster.
  const prefix = `{${options.prefix}}`;

  return {
    kind: 'redis',
    async migrate() {
      for (const connection of [producer, consumer]) {
        if (connection.status === 'wait') await connection.connect();
      }
    },
    async restore() {
      // Keys come back by being written: schedulers by reconciling, jobs by wake-ups.
      return false;
    },
    async ping() {
      await producer.ping();
    },
    queue(name) {
      const queue = new Queue(name, { connection: producer, prefix, defaultJobOptions: JOB_RETENTION });
      queue.on('error', (error) => options.log.warn({ err: error, queue: name }, 'queue error'));
      return queue;
    },
    worker(name, processor, concurrency) {
      return new Worker(name, processor, {
        connection: consumer,
        prefix,
        concurrency,
        autorun: false,
        ...WORKER_SETTINGS,
      });
    },
    async close() {
      producer.disconnect();
      consumer.disconnect();
    },
  };
}
