import { once } from 'node:events';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createRedisClient } from '../../../src/queues/redis-connection.ts';
import { eventually } from '../../support/eventually.ts';
import { hasProgram } from '../../support/processes/has-program.ts';
import { createTestBackend } from '../../support/redis/queue-backends.ts';
import { type RedisTopology, startBrokenCluster } from '../../support/redis/redis-topologies.ts';

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
    const connected = client.connect();
    await once(client, 'reconnecting');
    const answer = client.get('{x}');
    const ended = once(client, 'end');
    client.disconnect();
    await ended;
    await expect(answer).rejects.toThrow();
    await expect(connected).rejects.toThrow('closed');
    expect(client.status).toBe('end');
  });

  it('ends when it disconnects before its first connection', async () => {
    const client = createClient();
    const connected = client.connect();
    const ended = once(client, 'end');
    client.disconnect();
    await ended;
    await expect(connected).rejects.toThrow();
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
