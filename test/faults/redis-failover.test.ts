import { randomBytes } from 'node:crypto';
import { afterEach, describe, expect, it } from 'vitest';
import { createRedisClient } from '../../src/queues/redis-connection.ts';
import { eventually } from '../support/eventually.ts';
import { createTestDatabase, type TestDatabase } from '../support/postgres/database.ts';
import { type Fleet, ofEach, startFleet } from '../support/processes/fleet.ts';
import { hasProgram } from '../support/processes/has-program.ts';
import { WEBHOOK_SECRET } from '../support/processes/system.ts';
import {
  type RedisTopology,
  startBrokenCluster,
  startRedisCluster,
  startRedisSentinel,
} from '../support/redis/redis-topologies.ts';
import { createAlerts, quotes } from './campaign/near-alerts.ts';
import { expectNothingLost } from './campaign/settled.ts';

interface Alert {
  status: string;
}

const TOPOLOGIES = [
  { name: 'behind three Sentinels', start: () => startRedisSentinel({ sentinels: 3 }) },
  { name: 'in a Cluster of three masters', start: () => startRedisCluster({ hasReplicas: true }) },
];

let topology: RedisTopology | undefined;
let database: TestDatabase | undefined;
let fleet: Fleet | undefined;
afterEach(async () => {
  await fleet?.stop();
  await database?.drop();
  await topology?.stop();
  fleet = undefined;
  database = undefined;
  topology = undefined;
});

/** The server with the queues dies, and another takes over, without the writes that it had not received yet. */
describe.skipIf(!hasProgram('redis-server', 'fail-overs of Redis'))('processes with queues on Redis', () => {
  it('get a connection that was requested from a broken Cluster when it is complete', async () => {
    const cluster = await startBrokenCluster();
    topology = cluster;
    const client = createRedisClient(cluster.url, {
      maxRetriesPerRequest: null,
      enableOfflineQueue: true,
      lazyConnect: true,
    });
    client.on('error', () => undefined);
    try {
      const connected = client.connect();
      const triesAgain = new Promise((resolve) => client.once('reconnecting', resolve));
      await triesAgain;
      await cluster.addMissingSlots();
      await connected;
      expect(await client.set('{x}', 'y')).toBe('OK');
      // A client that disconnects gets an error.
      client.disconnect();
      await expect(client.get('{x}')).rejects.toThrow();
    } finally {
      client.disconnect();
    }
  });

  it.each(TOPOLOGIES)('$name continue without a lost fact when a master dies', async ({ start }) => {
    topology = await start();
    database = await createTestDatabase();
    const queuePrefix = `over${randomBytes(5).toString('hex')}`;
    const running = await startFleet({
      databaseUrl: database.url,
      redisUrl: topology.url,
      queuePrefix,
      counts: ofEach(1),
      exchange: { seed: 11, speed: 2, rollingSeconds: 0 },
    });
    fleet = running;
    const webhook = await running.call<{ id: string }>('POST', '/v1/webhooks', {
      url: `${running.receiver.url}/hook`,
      events: ['price_alert'],
      secret: WEBHOOK_SECRET,
    });
    const tokens = await eventually(
      () => quotes(running),
      (found) => found.length >= 4,
    );
    const tapeFrom = running.exchange.second();
    await createAlerts(running, webhook.id, tokens);

    await topology.killMaster(queuePrefix);
    // Without a master, the API accepts writes, and due work waits in the database.
    await createAlerts(running, webhook.id, tokens.slice(0, 2));
    for (const { tokenId, price } of tokens.slice(0, 3)) {
      const forced = (price > 0.5 ? price - 0.08 : price + 0.08).toFixed(2);
      running.exchange.forcePrice({ tokenId, price: forced, holdMs: 120_000 });
    }
    await eventually(
      () => running.call<Alert[]>('GET', '/v1/alerts?limit=1000'),
      (alerts) => alerts.filter((alert) => alert.status === 'triggered').length >= 6,
      { timeoutMs: 120_000, everyMs: 250 },
    );
    await expectNothingLost(running, database, tapeFrom);
    const codes = await running.stop();
    const unwell = running.members.filter((_, index) => codes[index] !== 0);
    expect(unwell.map(({ process: { name, lines } }) => [name, ...lines.slice(-5)])).toEqual([]);
  });
});
