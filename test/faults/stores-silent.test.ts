import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, describe, expect, it } from 'vitest';
import { hasProgram } from '../support/processes/has-program.ts';
import { startTcpProxy, type TcpProxy } from '../support/processes/tcp-proxy.ts';
import { BACKENDS, isAvailable } from '../support/redis/queue-backends.ts';
import { type RedisServer, spawnRedisServer } from '../support/redis/redis.ts';
import { ApiWatch } from './campaign/api-watch.ts';
import { type Campaign, startCampaign } from './campaign/campaign.ts';
import { type OwnPostgres, startOwnPostgres } from './campaign/own-postgres.ts';

/** Longer than the API waits for an answer and a poll lease lasts, shorter than workers wait. */
const HELD_MS = 20_000;
/** The API waits 8 s for Postgres, and 3 s for its list of active sessions; a loaded machine delays its checks. */
const ANSWER_LIMIT_MS = 30_000;
/** Statements wait 30 s for an answer, and their callers retry afterwards. */
const RECOVERY_LIMIT_MS = 90_000;

let postgres: OwnPostgres | undefined;
let redis: RedisServer | undefined;
let network: TcpProxy | undefined;
let campaign: Campaign | undefined;
afterEach(async () => {
  await campaign?.stop();
  await network?.close();
  await postgres?.stop();
  await redis?.stop();
  [campaign, network, postgres, redis] = [undefined, undefined, undefined, undefined];
});

/** The network is silent for a while and then delivers everything; or connections die silently. */
async function strike(running: Campaign, proxy: TcpProxy): Promise<void> {
  const { random } = running;
  await delay(random.between(500, 3_000));
  await running.blow('silent for a while', async () => {
    proxy.hold();
    await delay(HELD_MS);
    proxy.resume();
  });
  await running.recovered();
  await delay(random.between(500, 3_000));
  await running.blow('silent for good', () => proxy.forsake());
  await running.recovered(RECOVERY_LIMIT_MS);
  proxy.bury();
}

describe.each(BACKENDS)('processes with a silent network to Postgres, queues on %s', (backend) => {
  it.skipIf(!isAvailable(backend))('replace their connections and continue', async () => {
    postgres = await startOwnPostgres();
    network = await startTcpProxy(postgres.database.url);
    const database = { ...postgres.database, url: network.url };
    campaign = await startCampaign({ name: 'Postgres silent', backend, database });
    const watch = new ApiWatch(campaign.fleet, undefined, ANSWER_LIMIT_MS);
    await strike(campaign, network);
    await watch.stop();
    expect(watch.improper).toEqual([]);
    expect([...watch.counts.keys()].sort()).toEqual(['200', '503 not_ready']);
    await campaign.expectNothingLost({ mayFailJobs: true });
  });
});

describe.skipIf(!hasProgram('redis-server', 'a silent network to Redis'))(
  'processes with a silent network to Redis',
  () => {
    it('replace their connections and continue, unnoticed by clients', async () => {
      redis = await spawnRedisServer();
      network = await startTcpProxy(`redis://127.0.0.1:${redis.port}`);
      campaign = await startCampaign({ name: 'Redis silent', backend: 'redis', redisUrl: network.url });
      const watch = new ApiWatch(campaign.fleet, campaign.load.webhookIds[0]);
      await strike(campaign, network);
      await watch.stop();
      expect(watch.improper).toEqual([]);
      expect([...watch.counts.keys()].sort()).toEqual(['200', '202']);
      await campaign.expectNothingLost({ mayFailJobs: true });
    });
  },
);
