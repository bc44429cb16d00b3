import { Redis } from 'ioredis';
import { eventually } from '../eventually.ts';
import { steadyPort } from '../processes/steady-port.ts';
import { type RedisServer, spawnRedisServer, spawnSentinel } from './redis.ts';

/** Several redis-servers that act as one. */
export interface RedisTopology {
  /** In the form of REDIS_URL. */
  readonly url: string;
  /** kill -9 of the server with the queues of this prefix; a replica, if any, takes over. */
  killMaster(prefix: string): Promise<void>;
  stop(): Promise<void>;
}

/** A password with characters that a URL must escape. */
const PASSWORD = 'p@ss:word/1';
const SENTINEL_PASSWORD = 'sentinel&word';
const MASTER_NAME = 'queues';
/** After this silence a server counts as down. */
const DOWN_AFTER_MS = 1_000;

/** The started servers; when one does not start, the others are stopped again. */
async function startAll<Server extends RedisServer>(starts: readonly (() => Promise<Server>)[]): Promise<Server[]> {
  const results = await Promise.allSettled(starts.map((start) => start()));
  const servers = results.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : []));
  const failed = results.find((result) => result.status === 'rejected');
  if (failed === undefined) return servers;
  await stopAll(servers);
  throw failed.reason;
}

async function stopAll(servers: readonly RedisServer[]): Promise<void> {
  await Promise.all(servers.map((server) => server.stop()));
}

/** One master, one replica, and sentinels that promote the replica when the master dies; all with passwords. */
export async function startRedisSentinel(options: { sentinels: number }): Promise<RedisTopology> {
  const secured = { requirepass: PASSWORD, masterauth: PASSWORD };
  const master = await spawnRedisServer(secured);
  const started: RedisServer[] = [master];
  const conf = [
    `sentinel monitor ${MASTER_NAME} 127.0.0.1 ${master.port} ${Math.floor(options.sentinels / 2) + 1}`,
    `sentinel auth-pass ${MASTER_NAME} ${PASSWORD}`,
    `sentinel down-after-milliseconds ${MASTER_NAME} ${DOWN_AFTER_MS}`,
    `sentinel failover-timeout ${MASTER_NAME} 4000`,
    `requirepass ${SENTINEL_PASSWORD}`,
    `sentinel sentinel-pass ${SENTINEL_PASSWORD}`,
  ];
  try {
    const replica = await spawnRedisServer({ ...secured, replicaof: `127.0.0.1 ${master.port}` });
    started.push(replica);
    await isFollowing(replica);
    const sentinels = await startAll(Array.from({ length: options.sentinels }, () => () => spawnSentinel(conf)));
    started.push(...sentinels);
    for (const sentinel of sentinels) await knowsEverybody(sentinel, options.sentinels - 1);
    const hosts = sentinels.map(({ port }) => `127.0.0.1:${port}`).join(',');
    const query = `sentinelPassword=${encodeURIComponent(SENTINEL_PASSWORD)}&db=1`;
    return {
      url: `redis-sentinel://:${encodeURIComponent(PASSWORD)}@${hosts}/${MASTER_NAME}?${query}`,
      killMaster: () => master.kill(),
      stop: () => stopAll(started),
    };
  } catch (error) {
    await stopAll(started);
    throw error;
  }
}

/** A sentinel that knows neither replica nor other sentinels cannot fail over. */
async function knowsEverybody(sentinel: RedisServer, colleagues: number): Promise<void> {
  await eventually(
    async () => {
      const flat = await call(sentinel, ['SENTINEL', 'MASTER', MASTER_NAME], SENTINEL_PASSWORD);
      const words = (Array.isArray(flat) ? flat : []).map(String);
      const numberOf = (name: string) => Number(words[words.indexOf(name) + 1]);
      return { replicas: numberOf('num-slaves'), colleagues: numberOf('num-other-sentinels') };
    },
    (known) => known.replicas === 1 && known.colleagues === colleagues,
  );
}

interface ClusterNode extends RedisServer {
  /** The port of the nodes' own protocol. */
  readonly busPort: number;
}

async function spawnClusterNode(): Promise<ClusterNode> {
  const busPort = await steadyPort();
  const server = await spawnRedisServer({
    'cluster-enabled': 'yes',
    'cluster-port': String(busPort),
    // A node that never met another does not know its own address.
    'cluster-announce-ip': '127.0.0.1',
    'cluster-node-timeout': String(DOWN_AFTER_MS),
    requirepass: PASSWORD,
    masterauth: PASSWORD,
  });
  return { ...server, busPort };
}

/** The first and the last slot of each master. */
const SLOTS = [
  [0, 5_460],
  [5_461, 10_922],
  [10_923, 16_383],
] as const;

/** A Cluster of one server that lacks half of its slots until a call, and rejects work meanwhile. */
export async function startBrokenCluster(): Promise<
  RedisTopology & {
    addMissingSlots(): Promise<void>;
    /** Tells clients another port of the server. */
    announce(port: number): Promise<void>;
    /** Resolves when a client waits in a blocking command. */
    hasBlockedClient(): Promise<void>;
    restart(): Promise<void>;
  }
> {
  const node = await spawnClusterNode();
  await call(node, ['CLUSTER', 'ADDSLOTSRANGE', '0', '8000']);
  return {
    url: `redis-cluster://:${encodeURIComponent(PASSWORD)}@127.0.0.1:${node.port}`,
    killMaster: () => node.kill(),
    restart: () => node.start(),
    stop: () => node.stop(),
    async addMissingSlots() {
      await call(node, ['CLUSTER', 'ADDSLOTSRANGE', '8001', '16383']);
      await eventually(
        async () => String(await call(node, ['CLUSTER', 'INFO'])),
        (info) => info.includes('cluster_state:ok'),
        { everyMs: 20 },
      );
    },
    async announce(port) {
      await call(node, ['CONFIG', 'SET', 'cluster-announce-port', String(port)]);
    },
    async hasBlockedClient() {
      await eventually(
        async () => String(await call(node, ['INFO', 'clients'])),
        (info) => /blocked_clients:[1-9]/.test(info),
        { everyMs: 20 },
      );
    },
  };
}

/** Three masters that share the slots, each with a replica on request. */
export async function startRedisCluster(options: { hasReplicas: boolean }): Promise<RedisTopology> {
  const nodes = await startAll(Array.from({ length: options.hasReplicas ? 6 : 3 }, () => spawnClusterNode));
  const masters = nodes.slice(0, SLOTS.length);
  try {
    await joinUp(masters, nodes.slice(SLOTS.length));
  } catch (error) {
    await stopAll(nodes);
    throw error;
  }
  // Not every node: a client discovers the others.
  const hosts = nodes.slice(0, 2).map(({ port }) => `127.0.0.1:${port}`);
  return {
    url: `redis-cluster://:${encodeURIComponent(PASSWORD)}@${hosts.join(',')}`,
    async killMaster(prefix) {
      const slot = Number(await call(nodes[0], ['CLUSTER', 'KEYSLOT', `{${prefix}}`]));
      const owner = SLOTS.findIndex(([from, to]) => slot >= from && slot <= to);
      await masters[owner]?.kill();
    },
    stop: () => stopAll(nodes),
  };
}

async function joinUp(masters: readonly ClusterNode[], replicas: readonly ClusterNode[]): Promise<void> {
  const [first, ...others] = [...masters, ...replicas];
  for (const node of others) {
    await call(first, ['CLUSTER', 'MEET', '127.0.0.1', String(node.port), String(node.busPort)]);
  }
  for (const [index, range] of SLOTS.entries()) {
    await call(masters[index], ['CLUSTER', 'ADDSLOTSRANGE', ...range.map(String)]);
  }
  for (const [index, replica] of replicas.entries()) {
    const id = String(await call(masters[index], ['CLUSTER', 'MYID']));
    // Rejected until the two know each other.
    await eventually(
      () => call(replica, ['CLUSTER', 'REPLICATE', id]).catch(String),
      (answer) => answer === 'OK',
    );
  }
  const count = masters.length + replicas.length;
  for (const node of [...masters, ...replicas]) {
    await eventually(
      async () => String(await call(node, ['CLUSTER', 'INFO'])),
      (info) => info.includes('cluster_state:ok') && info.includes(`cluster_known_nodes:${count}\r`),
    );
  }
  for (const replica of replicas) await isFollowing(replica);
}

/** Resolves when a replica has its master's data. */
async function isFollowing(replica: RedisServer): Promise<void> {
  await eventually(
    async () => String(await call(replica, ['INFO', 'replication'])),
    (info) => info.includes('master_link_status:up'),
  );
}

/** One command on a connection of its own. */
async function call(server: RedisServer | undefined, words: readonly string[], password = PASSWORD): Promise<unknown> {
  const redis = new Redis({ port: server?.port ?? 0, password, lazyConnect: true, retryStrategy: null });
  const [name = '', ...rest] = words;
  try {
    return await redis.call(name, ...rest);
  } finally {
    redis.disconnect();
  }
}
