import { setTimeout as delay } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { afterEach, describe, expect, it } from 'vitest';
import { hasProgram } from '../support/processes/has-program.ts';
import { type RedisServer, spawnRedisServer } from '../support/redis/redis.ts';
import { ApiWatch } from './campaign/api-watch.ts';
import { type Campaign, startCampaign } from './campaign/campaign.ts';

/** Less than an empty Redis uses: it rejects every write. */
const TOO_LITTLE_BYTES = 100_000;
const AWAY_MS = 4_000;
const FULL_MS = 8_000;

let redis: RedisServer | undefined;
let campaign: Campaign | undefined;
afterEach(async () => {
  await campaign?.stop();
  await redis?.stop();
  campaign = undefined;
  redis = undefined;
});

/** One command on a connection of its own. */
async function sendCommand({ port }: RedisServer, command: string, ...words: string[]): Promise<void> {
  const client = new Redis({ port, lazyConnect: true, retryStrategy: null });
  try {
    await client.call(command, ...words);
  } finally {
    client.disconnect();
  }
}

/** The API and a starting process while the queue store is absent or rejects writes. */
async function meanwhile({ random, keeper, fleet, load }: Campaign): Promise<void> {
  const workers = fleet.members.filter(({ process }) => process.name !== 'api');
  await keeper.kill(random.pick(workers));
  const webhookId = load.webhookIds[0];
  // A single attempt: the API's own store is available.
  await fleet.call('POST', `/v1/webhooks/${webhookId}/test`);
  // A load balancer does not drop it either.
  expect(await fleet.read('/health/ready')).toEqual({ status: 'ready' });
}

const BLOWS: readonly { label: string; strike: (server: RedisServer, running: Campaign) => Promise<void> }[] = [
  {
    label: 'restarted',
    async strike(server, running) {
      await server.shutDown();
      await meanwhile(running);
      await delay(running.random.between(0, AWAY_MS));
      await server.start();
    },
  },
  {
    label: 'killed',
    async strike(server, running) {
      await server.kill();
      await meanwhile(running);
      await delay(running.random.between(0, AWAY_MS));
      await server.start();
    },
  },
  { label: 'emptied', strike: (server) => sendCommand(server, 'FLUSHALL') },
  {
    label: 'out of memory',
    async strike(server, running) {
      await sendCommand(server, 'CONFIG', 'SET', 'maxmemory', String(TOO_LITTLE_BYTES));
      await meanwhile(running);
      await delay(running.random.between(1_000, FULL_MS));
      await sendCommand(server, 'CONFIG', 'SET', 'maxmemory', '0');
    },
  },
];
/** Each of them, and two more at random. */
const MORE = 2;

describe.skipIf(!hasProgram('redis-server', 'faults of Redis'))('processes with a faulty Redis', () => {
  it('continue all work after a restart, a kill, a flush and an out-of-memory error', async () => {
    const server = await spawnRedisServer();
    redis = server;
    const redisUrl = `redis://127.0.0.1:${server.port}`;
    const running = await startCampaign({ name: 'Redis gone, emptied or full', backend: 'redis', redisUrl });
    campaign = running;
    const { random, fleet, load } = running;
    const watch = new ApiWatch(fleet, load.webhookIds[0]);
    const left = [...BLOWS, ...Array.from({ length: MORE }, () => random.pick(BLOWS))];
    while (left.length > 0) {
      const [blow] = left.splice(random.below(left.length), 1);
      await delay(random.between(500, 3_000));
      await running.blow(blow?.label ?? '', () => blow?.strike(server, running));
      await running.recovered();
    }
    await watch.stop();
    expect(watch.improper).toEqual([]);
    // Reads and writes need only the database: no client sees the outage of the queues.
    expect([...watch.counts.keys()].sort()).toEqual(['200', '202']);
    await running.expectNothingLost({ mayFailJobs: true });
  });
});
