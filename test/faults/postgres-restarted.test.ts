import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, describe, expect, it } from 'vitest';
import { BACKENDS, isAvailable } from '../support/redis/queue-backends.ts';
import { ApiWatch } from './campaign/api-watch.ts';
import { type Campaign, startCampaign } from './campaign/campaign.ts';
import { type OwnPostgres, startOwnPostgres } from './campaign/own-postgres.ts';

const RESTARTS = 4;
/** The longest outage of the server. */
const AWAY_MS = 4_000;

let postgres: OwnPostgres | undefined;
let campaign: Campaign | undefined;
afterEach(async () => {
  await campaign?.stop();
  await postgres?.stop();
  campaign = undefined;
  postgres = undefined;
});

describe.each(BACKENDS)('processes with a restarted Postgres, queues on %s', (backend) => {
  it.skipIf(!isAvailable(backend))('wait and continue', async () => {
    postgres = await startOwnPostgres();
    const { server, database } = postgres;
    campaign = await startCampaign({ name: 'Postgres restarted', backend, database });
    const { random, fleet } = campaign;
    const watch = new ApiWatch(fleet);
    for (let restart = 0; restart < RESTARTS; restart++) {
      await delay(random.between(500, 3_000));
      const mode = random.chance(700_000) ? 'fast' : 'immediate';
      await campaign.blow(mode, async () => {
        await server.shutDown(mode);
        await delay(random.between(0, AWAY_MS));
        await server.start();
      });
      await campaign.recovered();
    }
    await watch.stop();
    expect(watch.improper).toEqual([]);
    expect([...watch.counts.keys()].sort()).toEqual(['200', '503 not_ready']);
    await campaign.expectNothingLost({ mayFailJobs: true });
  });
});
