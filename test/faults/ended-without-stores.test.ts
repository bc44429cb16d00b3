import { randomBytes } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, describe, expect, it } from 'vitest';
import { type Fleet, ofEach, startFleet } from '../support/processes/fleet.ts';
import { hasProgram } from '../support/processes/has-program.ts';
import { WEBHOOK_SECRET } from '../support/processes/system.ts';
import { startTcpProxy, type TcpProxy } from '../support/processes/tcp-proxy.ts';
import { type RedisServer, spawnRedisServer } from '../support/redis/redis.ts';
import { type OwnPostgres, startOwnPostgres } from './campaign/own-postgres.ts';

/** The age of an outage at the signal: some processes have noticed it, others have a query in flight. */
const AWAY_MS = [0, 2_000];

let postgres: OwnPostgres | undefined;
let redis: RedisServer | undefined;
let network: TcpProxy | undefined;
let fleet: Fleet | undefined;
afterEach(async () => {
  await fleet?.stop();
  await network?.close();
  await postgres?.stop();
  await redis?.stop();
  fleet = undefined;
  network = undefined;
  postgres = undefined;
  redis = undefined;
});

async function start(databaseUrl: string, redisUrl?: string): Promise<Fleet> {
  return startFleet({
    databaseUrl,
    ...(redisUrl !== undefined && { redisUrl }),
    queuePrefix: `end${randomBytes(5).toString('hex')}`,
    counts: ofEach(1),
    exchange: { seed: 11, speed: 2, rollingSeconds: 0 },
  });
}

/** A process that is stopped during an outage of a store ends in order and in time. */
describe('stopping processes', () => {
  it.each(AWAY_MS)('end during an outage of Postgres of %i ms', async (awayMs) => {
    postgres = await startOwnPostgres();
    fleet = await start(postgres.database.url);
    await postgres.server.kill();
    await delay(awayMs);
    expect(await fleet.stop()).toEqual([0, 0, 0, 0, 0]);
  });

  it.each(AWAY_MS)('end while the network to Postgres is silent for %i ms', async (awayMs) => {
    postgres = await startOwnPostgres();
    network = await startTcpProxy(postgres.database.url);
    fleet = await start(network.url);
    network.hold();
    await delay(awayMs);
    expect(await fleet.stop()).toEqual([0, 0, 0, 0, 0]);
  });

  it.skipIf(!hasProgram('redis-server', 'ends without Redis')).each(AWAY_MS)(
    'end during an outage of Redis of %i ms',
    async (awayMs) => {
      postgres = await startOwnPostgres();
      redis = await spawnRedisServer();
      fleet = await start(postgres.database.url, `redis://127.0.0.1:${redis.port}`);
      const webhook = await fleet.call<{ id: string }>('POST', '/v1/webhooks', {
        url: `${fleet.receiver.url}/hook`,
        events: ['price_alert'],
        secret: WEBHOOK_SECRET,
      });
      await redis.kill();
      // The first use of a queue by the API.
      await fleet.call('POST', `/v1/webhooks/${webhook.id}/test`);
      await delay(awayMs);
      expect(await fleet.stop()).toEqual([0, 0, 0, 0, 0]);
    },
  );
});
