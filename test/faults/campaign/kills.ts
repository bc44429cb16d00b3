import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, it } from 'vitest';
import type { Member } from '../../support/processes/fleet.ts';
import { type BackendKind, isAvailable, wipeQueues } from '../../support/redis/queue-backends.ts';
import { type Campaign, startCampaign } from './campaign.ts';

/** In each file, because each backend has a file. */
const KILLS = Number(process.env['FAULTS_KILLS'] ?? 30);
const KILLS_IN_A_ROW = 6;
/** With the recovery after each row. A busy machine needs several times as long as a quiet one. */
const KILL_LIMIT_MS = 4_000;
const LIMIT_MS = 360_000 + KILLS * KILL_LIMIT_MS;

/** Kills random processes, sometimes two at once, also during a start: no fact may be lost, and no event sent as two. */
export function describeKills(backend: BackendKind): void {
  let campaign: Campaign | undefined;
  afterEach(async () => {
    await campaign?.stop();
    campaign = undefined;
  });

  it.skipIf(!isAvailable(backend))(
    `lose no fact in ${KILLS} kills, and emit one event per alert`,
    async () => {
      campaign = await startCampaign({ name: 'kill -9', backend });
      const running = campaign;
      const { random, fleet, keeper } = running;
      const kill = (member: Member) => running.blow(`kill ${member.process.name}`, () => keeper.kill(member));
      let kills = 0;
      let wipeAt = random.between(KILLS / 3, KILLS / 2);
      while (kills < KILLS) {
        for (let inARow = 0; inARow < KILLS_IN_A_ROW && kills < KILLS; ) {
          const first = random.pick(fleet.members);
          const second = random.chance(300_000) ? random.pick(fleet.members) : first;
          const victims = [...new Set([first, second])].filter((member) => member.process.isRunning);
          await Promise.all(victims.map((member) => kill(member)));
          kills += victims.length;
          inARow += victims.length;
          // A start takes about as long, so many kills hit a process that is still starting.
          await delay(random.between(20, 1_500));
        }
        if (kills >= wipeAt) {
          wipeAt = Number.POSITIVE_INFINITY;
          const { database, queuePrefix, redisUrl } = running;
          await running.blow('queues wiped', () => wipeQueues(backend, database.db, queuePrefix, redisUrl));
        }
        await running.recovered();
      }
      await running.expectNothingLost();
    },
    LIMIT_MS,
  );
}
