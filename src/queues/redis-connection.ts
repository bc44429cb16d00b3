import { Cluster, Redis, type RedisOptions } from 'ioredis';
import { parseRedisUrl, type RedisAddress } from '../config/redis-address.ts';
import { settlingCluster } from './redis-cluster.ts';
import { SILENCE_MS } from './settings.ts';

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
