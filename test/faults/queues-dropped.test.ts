import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, expect, it } from 'vitest';
import { wipeQueues } from '../support/redis/queue-backends.ts';
import { ApiWatch } from './campaign/api-watch.ts';
import { type Campaign, startCampaign } from './campaign/campaign.ts';

const DROPS = 6;

let campaign: Campaign | undefined;
afterEach(async () => {
  await campaign?.stop();
  campaign = undefined;
});

it('processes reconcile the queues in Postgres when they are dropped repeatedly under load', async () => {
  campaign = await startCampaign({ name: 'queue schema dropped', backend: 'postgres' });
  const { random, fleet, load, database, queuePrefix } = campaign;
  const watch = new ApiWatch(fleet, load.webhookIds[0]);
  for (let drop = 1; drop <= DROPS; drop++) {
    await delay(random.between(0, 3_000));
    await campaign.blow('drop', () => wipeQueues('postgres', database.db, queuePrefix));
    // Sometimes the next drop comes before the schema is reconciled.
    if (drop === DROPS || random.chance(700_000)) await campaign.recovered();
  }
  await watch.stop();
  expect(watch.improper).toEqual([]);
  expect([...watch.counts.keys()].sort()).toEqual(['200', '202']);
  await campaign.expectNothingLost({ mayFailJobs: true });
});
