import { setImmediate } from 'node:timers/promises';
import { Cluster, Redis, type RedisOptions } from 'ioredis';
import { parseRedisUrl, type RedisAddress } from '../config/redis-address.ts';
import { OddswireError } from '../domain/values/errors.ts';
import { SILENCE_MS } from './port.ts';

/** One Redis or a cluster: both run the same commands, each key on the server that owns it. */
export type RedisClient = Redis | Cluster;

/** The settings that differ between the users of a connection. */
export interface RedisBehaviour {
  /** The number of retries of a command on a new connection; null means without a limit. */
  readonly maxRetriesPerRequest: number | null;
  /** Whether commands wait for a lost connection; otherwise they fail at once. */
  readonly enableOfflineQueue: boolean;
  /** Whether the first connection waits for `connect` or a command; it then fails once, instead of being tried without a limit. */
  readonly lazyConnect: boolean;
}

const SENTINEL_ANSWER_MS = 5_000;

/** Waits 1 s to 5 s between connection attempts, without a limit: due work starts at most 5 s after Redis is back. */
function reconnectDelayMs(attempt: number): number {
  return Math.max(1_000, Math.min(2 ** attempt * 100, 5_000));
}

/** A server that has just lost the role of master refuses writes: the next connection finds the new master. */
function isDemoted(error: Error): boolean {
  return error.message.startsWith('READONLY');
}

/**
 * A client of the Redis of a REDIS_URL that reconnects without a limit. The caller listens to its `error` event and disconnects it.
 * @throws RedisUrlError
 */
export function createRedisClient(redisUrl: string, behaviour: RedisBehaviour): RedisClient {
  const address = parseRedisUrl(redisUrl);
  return address.kind === 'cluster' ? clusterClient(address, behaviour) : serverClient(address, behaviour);
}

function serverClient(address: Exclude<RedisAddress, { kind: 'cluster' }>, behaviour: RedisBehaviour): Redis {
  const options: RedisOptions & { replyMapping?: 'legacy' } = {
    ...loginOf(address),
    ...behaviour,
    ...(address.kind === 'single' ? { ...address.node } : sentinelOptions(address)),
    ...(address.isTls && { tls: {} }),
    db: address.db,
    socketTimeout: SILENCE_MS,
    retryStrategy: reconnectDelayMs,
    reconnectOnError: isDemoted,
  };
  return new Redis(options);
}

function sentinelOptions(address: RedisAddress & { kind: 'sentinel' }): Omit<RedisOptions, 'replyMapping'> {
  const { username, password } = address.sentinelLogin;
  return {
    sentinels: address.nodes.map((node) => ({ ...node })),
    name: address.masterName,
    sentinelRetryStrategy: reconnectDelayMs,
    // A hanging connection does not delay the next request.
    sentinelCommandTimeout: SENTINEL_ANSWER_MS,
    ...(username !== undefined && { sentinelUsername: username }),
    ...(password !== undefined && { sentinelPassword: password }),
    ...(address.isTls && { enableTLSForSentinelMode: true, sentinelTLS: {} }),
  };
}

function clusterClient(address: RedisAddress & { kind: 'cluster' }, behaviour: RedisBehaviour): Cluster {
  const cluster = new Cluster(
    address.nodes.map((node) => ({ ...node })),
    {
      lazyConnect: behaviour.lazyConnect,
      enableOfflineQueue: behaviour.enableOfflineQueue,
      clusterRetryStrategy: reconnectDelayMs,
      redisOptions: {
        ...loginOf(address),
        maxRetriesPerRequest: behaviour.maxRetriesPerRequest,
        socketTimeout: SILENCE_MS,
        ...(address.isTls && { tls: {} }),
      },
      // Certificates are for names: hosts must not be resolved to addresses before the check.
      ...(address.isTls && {
        dnsLookup: (host: string, done: (error: null, address: string) => void) => done(null, host),
      }),
    },
  );
  return settlingCluster(cluster);
}

function loginOf({ username, password }: RedisAddress): { username?: string; password?: string } {
  return { ...(username !== undefined && { username }), ...(password !== undefined && { password }) };
}

/**
 * Makes `connect` and `disconnect` of a Cluster client always settle (ioredis 6.0.0): each disconnection emits `end`, and a connection
 * begins when the last disconnection is complete. A BullMQ worker waits without end for any of the following.
 *
 * - A Cluster that has just lost a master answers, but reports that it is not ready; ioredis then reconnects and never settles the
 *   promise of the first attempt. This happens in about one of four fail-overs.
 * - A client without a connection, between two attempts or before its first, emits no `end` after `disconnect`, because ioredis waits for
 *   a last connection to close.
 * - A client that is disconnected while it reads its slots becomes ready again, or reconnects, when they arrive.
 * - A client that connects while old connections close emits no `end`, or takes their `close` for its own. A worker does both at once
 *   when it interrupts its blocking command: the command's failure connects, and the interruption waits for `end`.
 */
function settlingCluster(cluster: Cluster): Cluster {
  const connect = cluster.connect.bind(cluster);
  const disconnect = cluster.disconnect.bind(cluster);
  /** The last disconnection until its `end`. */
  let ending: Promise<void> | undefined;
  let disconnections = 0;
  /** Between a disconnection and the next call of `connect`. */
  let isEnded = false;
  for (const event of ['connect', 'ready', 'reconnecting']) cluster.on(event, () => isEnded && cluster.disconnect());

  const attempt = (since: number) => (since === disconnections ? connect() : Promise.reject(closedError()));
  // One promise for all callers: ioredis calls `connect` for each of its own attempts too.
  let outcome: Promise<void> | undefined;
  cluster.connect = () => {
    isEnded = false;
    const since = disconnections;
    const begun = ending?.then(() => attempt(since)) ?? attempt(since);
    outcome ??= outcomeOf(cluster, ending).finally(() => {
      outcome = undefined;
    });
    return Promise.race([begun, outcome]);
  };

  async function end(): Promise<void> {
    let hasEnded = false;
    const nodes = cluster.nodes();
    cluster.once('end', () => {
      hasEnded = true;
    });
    disconnect();
    await Promise.all(
      nodes.map((node) => node.status === 'end' || new Promise((resolve) => node.once('end', resolve))),
    );
    // Each node that closes emits a `close` of the client in the next turn.
    await setImmediate();
    ending = undefined;
    if (hasEnded) return;
    cluster['manuallyClosing'] = true;
    cluster['handleCloseEvent']();
  }
  cluster.disconnect = (reconnect = false) => {
    if (reconnect) return disconnect(true);
    disconnections += 1;
    if (cluster.status !== 'end') ending ??= end();
    isEnded = true;
  };

  // BullMQ duplicates the given connection for its blocking connection. A client that connects in its constructor would use the original
  // `connect`.
  const duplicate: (...args: Parameters<Cluster['duplicate']>) => Cluster = cluster.duplicate.bind(cluster);
  cluster.duplicate = (nodes, options) => {
    const { lazyConnect = false } = { ...cluster.options, ...options };
    const copy = settlingCluster(duplicate(nodes, { ...options, lazyConnect: true }));
    copy.options.lazyConnect = lazyConnect;
    // ioredis reports a failure as an event `error` too.
    if (!lazyConnect) copy.connect().catch(() => undefined);
    return copy;
  };
  return cluster;
}

/** Resolves when any attempt after the end of a disconnection makes the client ready, and rejects when the client gives up. */
async function outcomeOf(cluster: Cluster, ending: Promise<void> | undefined): Promise<void> {
  await ending;
  return new Promise<void>((resolve, reject) => {
    const onReady = () => {
      cluster.off('end', onEnd);
      resolve();
    };
    const onEnd = () => {
      cluster.off('ready', onReady);
      reject(closedError());
    };
    cluster.once('ready', onReady).once('end', onEnd);
  });
}

function closedError(): OddswireError {
  return new OddswireError('redis_closed', 'the connection to the Redis Cluster was closed');
}
