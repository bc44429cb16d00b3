import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, describe, expect, it } from 'vitest';
import { sql } from '../../src/store/db/tx.ts';
import { eventually } from '../support/eventually.ts';
import { BACKENDS, isAvailable } from '../support/redis/queue-backends.ts';
import { ApiWatch } from './campaign/api-watch.ts';
import { type Campaign, startCampaign } from './campaign/campaign.ts';
import { type OwnPostgres, startOwnPostgres } from './campaign/own-postgres.ts';

/** The targets of kill -9: the server with all its sessions, one session, the server and two workers. */
const BLOWS = ['server', 'session', 'server', 'server and two workers'] as const;
const AWAY_MS = 3_000;

const ONE = sql('test_one', 'SELECT 1');

let postgres: OwnPostgres | undefined;
let campaign: Campaign | undefined;
afterEach(async () => {
  await campaign?.stop();
  await postgres?.stop();
  campaign = undefined;
  postgres = undefined;
});

async function strike(
  blow: (typeof BLOWS)[number],
  { random, keeper, fleet }: Campaign,
  { server, database }: OwnPostgres,
) {
  if (blow === 'session') {
    await server.killSession();
    // It ends all sessions and recovers by itself.
    await eventually(
      () => database.db.query(ONE).catch(String),
      (answer) => Array.isArray(answer),
    );
    return;
  }
  const workers = fleet.members.filter(({ process }) => process.name !== 'api');
  const [first, second] = [workers.splice(random.below(workers.length), 1)[0], random.pick(workers)];
  const kills = blow === 'server' || !first ? [] : [first, second].map((member) => keeper.kill(member));
  await Promise.all([server.kill(), ...kills]);
  await delay(random.between(0, AWAY_MS));
  await server.start();
}

describe.each(BACKENDS)('processes with a killed Postgres, queues on %s', (backend) => {
  it.skipIf(!isAvailable(backend))('wait and continue', async () => {
    const own = await startOwnPostgres();
    postgres = own;
    const running = await startCampaign({ name: 'Postgres killed', backend, database: own.database });
    campaign = running;
    const { random } = running;
    const watch = new ApiWatch(running.fleet);
    for (const blow of BLOWS) {
      await delay(random.between(500, 3_000));
      await running.blow(blow, () => strike(blow, running, own));
      await running.recovered();
    }
    await watch.stop();
    expect(watch.improper).toEqual([]);
    expect([...watch.counts.keys()].sort()).toEqual(['200', '503 not_ready']);
    await running.expectNothingLost({ mayFailJobs: true });
  });
});
