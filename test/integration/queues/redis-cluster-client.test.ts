import { once } from 'node:events';
import { setImmediate } from 'node:timers/promises';
import type { Cluster } from 'ioredis';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createRedisClient } from '../../../src/queues/redis-connection.ts';
import { eventually } from '../../support/eventually.ts';
import { hasProgram } from '../../support/processes/has-program.ts';
import { createTestBackend } from '../../support/redis/queue-backends.ts';
import { type RedisTopology, startBrokenCluster } from '../../support/redis/redis-topologies.ts';

/** More turns of the event loop than a connection to a server on this machine takes. */
const TURNS = 120;

/** A Cluster that lacks slots refuses every connection, so its clients wait between two attempts most of the time. */
describe.skipIf(!hasProgram('redis-server', 'a Cluster client'))('a client of a Redis Cluster', () => {
  let cluster: RedisTopology;
  beforeAll(async () => {
    cluster = await startBrokenCluster();
  });
  afterAll(() => cluster.stop());

  function createClient() {
    const client = createRedisClient(cluster.url, {
      maxRetriesPerRequest: null,
      enableOfflineQueue: true,
      lazyConnect: true,
    });
    client.on('error', () => undefined);
    return client;
  }

  it('ends, and rejects waiting commands, when it disconnects between two attempts', async () => {
    const client = createClient();
    const refused = expect(client.connect()).rejects.toThrow('closed');
    await once(client, 'reconnecting');
    const unanswered = expect(client.get('{x}')).rejects.toThrow();
    const ended = once(client, 'end');
    client.disconnect();
    await ended;
    await unanswered;
    await refused;
    expect(client.status).toBe('end');
  });

  it('ends when it disconnects before its first connection', async () => {
    const client = createClient();
    const refused = expect(client.connect()).rejects.toThrow();
    const ended = once(client, 'end');
    client.disconnect();
    await ended;
    await refused;
  });

  it('goes on when it disconnects between two attempts and connects again at once', async () => {
    const client = createClient();
    client.connect().catch(() => undefined);
    await once(client, 'reconnecting');
    client.disconnect();
    client.connect().catch(() => undefined);
    await once(client, 'connect');
    const ended = once(client, 'end');
    client.disconnect();
    await ended;
  });

  describe('of a whole Cluster', () => {
    let whole: RedisTopology;
    let base: Cluster;
    beforeAll(async () => {
      const own = await startBrokenCluster();
      whole = own;
      await own.addMissingSlots();
      base = createRedisClient(own.url, {
        maxRetriesPerRequest: null,
        enableOfflineQueue: true,
        lazyConnect: true,
      }) as Cluster;
      base.on('error', () => undefined);
      // The state of the Cluster follows its slots.
      await eventually(
        () => base.connect().then(() => true, String),
        (answer) => answer === true,
      );
    });
    afterAll(async () => {
      base?.disconnect();
      await whole?.stop();
    });

    /** A client as BullMQ makes its blocking connection: it connects by itself, or at its first call. */
    function aCopy(lazyConnect: boolean): Cluster {
      const copy = base.duplicate(undefined, { lazyConnect });
      copy.on('error', () => undefined);
      if (lazyConnect) copy.connect().catch(() => undefined);
      return copy;
    }

    async function pass(turns: number): Promise<void> {
      for (let turn = 0; turn < turns; turn += 1) await setImmediate();
    }

    it.each([true, false])('ends when it disconnects in any turn of its connection, lazy: %s', async (lazyConnect) => {
      for (let turns = 0; turns < TURNS; turns += 1) {
        const client = aCopy(lazyConnect);
        const ended = once(client, 'end');
        await pass(turns);
        client.disconnect();
        await ended;
        expect(client.status).toBe('end');
      }
    });

    it('ends and then works when it connects in any turn of its disconnection', async () => {
      const client = aCopy(true);
      await eventually(
        async () => client.status,
        (status) => status === 'ready',
      );
      for (let turns = 0; turns < TURNS; turns += 1) {
        const ended = once(client, 'end');
        client.disconnect();
        await pass(turns % 10);
        await Promise.all([ended, client.connect()]);
        expect(await client.get('{x}')).toBeNull();
      }
      client.disconnect();
    });

    it('ends when it disconnects again while it waits to connect', async () => {
      const client = aCopy(true);
      await eventually(
        async () => client.status,
        (status) => status === 'ready',
      );
      const ended = once(client, 'end');
      client.disconnect();
      const refused = expect(client.connect()).rejects.toThrow('closed');
      client.disconnect();
      await ended;
      await refused;
      await pass(TURNS);
      expect(client.status).toBe('end');
    });
  });

  it('lets a worker close between two attempts after its server died', async () => {
    const own = await startBrokenCluster();
    try {
      await own.addMissingSlots();
      const { backend } = await createTestBackend('redis', 2, own.url);
      // The client gives a slow cluster a second, and then tries again.
      await eventually(
        () => backend.ping().then(() => true, String),
        (answer) => answer === true,
      );
      const worker = backend.worker('alerts', async () => undefined, 1);
      worker.on('error', () => undefined);
      worker.run().catch(() => undefined);
      const blocking = await worker['backend'].blockingClient;
      const waits = new Promise<void>((resolve) => blocking?.on('reconnecting', resolve));
      // A worker whose other command has no answer waits for it without end: see closeWorkers.
      await own.hasBlockedClient();
      await own.killMaster('');
      await waits;
      await worker.close();
      await backend.close();
    } finally {
      await own.stop();
    }
  });
});
