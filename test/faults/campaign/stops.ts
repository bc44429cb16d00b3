import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, expect, it } from 'vitest';
import { POLL_LEASES } from '../../../src/store/catalog/poll-state.ts';
import { MAX_IN_FLIGHT } from '../../../src/store/deliveries/claims.ts';
import { ofEach } from '../../support/processes/fleet.ts';
import type { ProcessName } from '../../support/processes/system.ts';
import { type BackendKind, isAvailable } from '../../support/redis/queue-backends.ts';
import { type Campaign, startCampaign } from './campaign.ts';
import { deliveryCounts } from './settled.ts';

const NAMES: readonly ProcessName[] = ['api', 'poller', 'aggregator', 'alerter', 'deliverer'];
/** Longer than the poll lease, the lock of a job and the idle limit of a transaction; then longer than a delivery's lease. */
const WINDOWS_MS = [(POLL_LEASES.seconds + 4) * 1000, (60 + 4) * 1000];
/** The longest attempts: a stopped process often has some in flight. */
const SLOWEST_ANSWER_MS = 400;

/** Stops one of each pair of processes during its work, and continues it after others have taken over. */
export function describeStops(backend: BackendKind): void {
  let campaign: Campaign | undefined;
  afterEach(async () => {
    await campaign?.stop();
    campaign = undefined;
  });

  it.skipIf(!isAvailable(backend))(
    'lose no fact while a process of each role is stopped, nor after it continues',
    async () => {
      campaign = await startCampaign({ name: 'SIGSTOP, SIGCONT', backend, counts: ofEach(2) });
      const { random, fleet } = campaign;
      campaign.replyWith(() => ({ delayMs: random.below(SLOWEST_ANSWER_MS) }));
      for (const windowMs of WINDOWS_MS) {
        await delay(random.between(500, 3_000));
        const stopped = NAMES.map((name) => random.pick(fleet.membersOf(name)).process);
        for (const process of stopped) {
          await delay(random.below(400));
          await campaign.blow(`stop ${process.name}`, () => process.signal('SIGSTOP'));
        }
        const wakeAtMs = performance.now() + windowMs;
        await campaign.recovered();
        await delay(Math.max(0, wakeAtMs - performance.now()));
        for (const process of stopped) {
          await campaign.blow(`wake ${process.name}`, () => process.signal('SIGCONT'));
          await delay(random.below(400));
        }
        await campaign.recovered();
      }
      await campaign.expectNothingLost();
      // Attempts in flight are repeated when their lease ends; no other request is repeated.
      const counts = deliveryCounts(fleet);
      expect(counts.filter((count) => count > 1).length).toBeLessThanOrEqual(WINDOWS_MS.length * MAX_IN_FLIGHT);
      expect(counts[0]).toBeLessThanOrEqual(1 + WINDOWS_MS.length);
    },
  );
}
