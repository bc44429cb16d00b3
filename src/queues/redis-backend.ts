import { type ConnectionOptions, createRedisBackend, Queue, type RedisQueueBackend, withBackend } from 'bullmq';
import { tlsFailure } from '../domain/values/failure-reasons.ts';
import type { AddUsage } from '../domain/values/usage.ts';
import { logLimited } from '../observe/limited-lines.ts';
import type { Logger } from '../observe/logger.ts';
import { requeueLocked } from './active-jobs.ts';
import { JOB_RETENTION, type QueueBackend, type QueueBackendOptions, WORKER_SETTINGS } from './port.ts';
import { createRedisClient, type RedisBehaviour, type RedisClient } from './redis-connection.ts';

/** Queues in Redis, single, behind Sentinel or as a Cluster: the scale-out engine. */
export function createRedisQueues(options: QueueBackendOptions & { redisUrl: string }): QueueBackend {
  // A producer fails at once while Redis is away: the database has the facts, and a timer wakes the stage later.
  const producer = connection({ maxRetriesPerRequest: 1, enableOfflineQueue: false, lazyConnect: true });
  let consumer: RedisClient | undefined;
  /** Of the workers. */
  let lostConnections = 0;
  /** The reason why the producer is not connected: its commands state only that the connection is closed. */
  let lastError: Error | undefined;
  producer.on('error', (error: Error) => {
    lastError = error;
  });
  producer.on('ready', () => {
    lastError = undefined;
  });

  function connection(behaviour: RedisBehaviour): RedisClient {
    const client = createRedisClient(options.redisUrl, behaviour);
    return client.on('error', (error: Error) => options.log.warn({ err: error }, 'redis connection error'));
  }

  /**
   * The connection of all workers. BullMQ duplicates it and waits for the duplicate once: a lazy one would fail while Redis is away, and
   * its worker would never work.
   */
  function workerConnection(): RedisClient {
    if (!consumer) {
      consumer = connection({ maxRetriesPerRequest: null, enableOfflineQueue: true, lazyConnect: false });
      // A Cluster has a connection for each server.
      for (const event of ['close', '-node']) consumer.on(event, () => (lostConnections += 1));
    }
    return consumer;
  }

  async function ping(): Promise<void> {
    try {
      if (producer.status === 'wait') await producer.connect();
      // Not PING: in a cluster, the server that holds the queues must answer.
      await producer.exists(prefix);
    } catch (error) {
      throw lastError ?? error;
    }
  }
  // The hash tag keeps all keys of all queues in one slot, which BullMQ's scripts need on a cluster.
  const prefix = `{${options.prefix}}`;

  async function locksOf(client: RedisClient, toKey: (name: string) => string): Promise<Map<string, string>> {
    const ids = await client.lrange(toKey('active'), 0, -1);
    if (ids.length === 0) return new Map();
    const tokens = await client.mget(ids.map((id) => `${toKey(id)}:lock`));
    return new Map(ids.flatMap((id, at): [string, string][] => (tokens[at] == null ? [] : [[id, tokens[at]]])));
  }

  const bull = withBackend<RedisQueueBackend, ConnectionOptions>((name, ...rest) =>
    returningLost(createRedisBackend(name, ...rest), {
      log: options.log,
      lostConnections: () => lostConnections,
      locks: () => locksOf(workerConnection(), (key) => `${prefix}:${name}:${key}`),
    }),
  );

  return {
    kind: 'redis',
    async migrate() {
      // Nothing to migrate. A refused client reconnects without end and emits an `error`, which does not prevent the start.
      if (producer.status === 'wait') await producer.connect().catch(() => undefined);
      if (tlsFailure(lastError) !== undefined) throw lastError;
    },
    async restore() {
      // Writes re-create the keys: reconciliation the schedulers, wake-ups the jobs.
      return false;
    },
    ping,
    addUsage: createRedisUsage(producer, prefix),
    queue(name) {
      const queue = new Queue(name, {
        connection: producer,
        prefix,
        defaultJobOptions: JOB_RETENTION,
        // A first use during an outage of Redis would wait for Redis, and delay the end of the process, instead of failing at
        // once. A failed version check would be final; workers still make it.
        skipWaitingForReady: true,
        skipVersionCheck: true,
      });
      queue.on('error', (error) => options.log.warn({ err: error, queue: name }, 'queue error'));
      return queue;
    },
    locks: (queue) => locksOf(producer, (key) => queue.toKey(key)),
    worker(name, processor, concurrency) {
      return new bull.Worker(name, processor, {
        connection: workerConnection(),
        prefix,
        concurrency,
        autorun: false,
        ...WORKER_SETTINGS,
      });
    },
    async close() {
      producer.disconnect();
      consumer?.disconnect();
    },
  };
}

/**
 * Gives back the jobs of lost hand-outs. ioredis repeats a command whose answer was lost with its connection: a fetch that Redis ran twice
 * took two jobs with one token, and the worker gets the second.
 */
function returningLost(
  backend: RedisQueueBackend,
  {
    log,
    lostConnections,
    locks,
  }: { log: Logger; lostConnections(): number; locks(): Promise<ReadonlyMap<string, string>> },
): RedisQueueBackend {
  async function answered<T>(token: string, ended: string, fetch: () => Promise<T>, taken: (answer: T) => unknown) {
    const before = lostConnections();
    let handedOut: unknown;
    try {
      const answer = await fetch();
      handedOut = taken(answer);
      return answer;
    } finally {
      if (lostConnections() !== before)
        await requeueLocked(locks(), {
          isLost: (id, lockedWith) => lockedWith === token && id !== handedOut && id !== ended,
          move: (id) => backend.moveJobFromActiveToWait(id, token),
        }).catch((error: unknown) => {
          logLimited(log, {
            level: 'warn',
            fields: { err: error },
            message: 'a lost job waits for the end of its lock',
          });
        });
    }
  }
  type End = Parameters<RedisQueueBackend['moveToCompleted' | 'moveToFailed']>;
  const ending =
    <Arguments extends End>(end: (...given: Arguments) => ReturnType<RedisQueueBackend['moveToCompleted']>) =>
    (...given: Arguments) =>
      answered(
        given[3],
        given[0].id ?? '',
        () => end.apply(backend, given),
        ({ result }) => result?.[1],
      );
  const fetch = backend.moveToActive;
  backend.moveToActive = (token, ...rest) =>
    answered(
      token,
      '',
      () => fetch.call(backend, token, ...rest),
      ([, id]) => id,
    );
  backend.moveToCompleted = ending(backend.moveToCompleted);
  backend.moveToFailed = ending(backend.moveToFailed);
  return backend;
}

/** Longer than any window, so that Redis expires the counters of past windows. */
const KEPT_MS = 180_000;

/**
 * `AddUsage` in Redis: one round trip for all subjects. `prefix` contains a hash tag, so that all keys are on one server of a
 * cluster. Each window has its own key, so no window is ever later than another.
 */
function createRedisUsage(redis: RedisClient, prefix: string): AddUsage {
  return async (entries) => {
    if (entries.length === 0) return [];
    const pipeline = redis.pipeline();
    for (const { kind, subject, windowStartMs, used } of entries) {
      const key = `${prefix}:usage:${kind}:${subject}:${windowStartMs}`;
      pipeline.incrby(key, used);
      pipeline.pexpire(key, KEPT_MS);
    }
    const replies = (await pipeline.exec()) ?? [];
    return entries.map((_, i) => {
      const [error, total] = replies[2 * i] ?? [new Error('no reply')];
      if (error) throw error;
      return Number(total);
    });
  };
}
