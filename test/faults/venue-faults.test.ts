import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, describe, expect, it } from 'vitest';
import type { FaultRequest } from '../../sim/exchange.ts';
import type { RandomStream } from '../../sim/random.ts';
import { impossibleRows } from '../e2e/venue-ledger.ts';
import { BACKENDS, isAvailable } from '../support/redis/queue-backends.ts';
import { type Campaign, startCampaign } from './campaign/campaign.ts';

/** The hosts of the venue: listings, books, trades. */
const HOSTS = ['gamma', 'clob', 'data'] as const;
type Host = (typeof HOSTS)[number];
const ROUNDS = 6;

/** A required field of each host's records. */
const FIELDS: Record<Host, readonly string[]> = {
  gamma: ['conditionId', 'clobTokenIds', 'outcomes', 'question'],
  clob: ['asset_id', 'bids', 'price'],
  data: ['price', 'size', 'timestamp', 'asset'],
};
const WRONG_VALUES = [7, -1, 'x', null, [], {}, '1e99', '\u0000'];

/** A random fault that the host supports. */
function anyFault(random: RandomStream, host: Host): FaultRequest {
  const probability = random.between(5, 10) / 10;
  const field = random.pick(FIELDS[host]);
  return random.pick<FaultRequest>([
    { host, probability, kind: 'status429', retryAfterSeconds: random.between(0, 2) },
    { host, probability, kind: 'status500', status: random.pick([500, 502, 503]) },
    { host, probability, kind: 'hang' },
    { host, probability, kind: 'reset' },
    { host, probability, kind: 'latency', latencyMs: random.between(500, 4_000) },
    { host, probability, kind: 'drip', latencyMs: random.between(500, 4_000) },
    { host, probability, kind: 'html' },
    { host, probability, kind: 'truncate', contentLength: random.pick(['cut', 'full']) },
    { host, probability, kind: 'rename_field', field: { from: field, to: `${field}V2` } },
    { host, probability, kind: 'set_field', set: { field, value: random.pick(WRONG_VALUES) } },
  ]);
}

describe.each(BACKENDS)('polling of a venue that misbehaves, queues on %s', (backend) => {
  let campaign: Campaign | undefined;
  afterEach(async () => {
    await campaign?.stop();
    campaign = undefined;
  });

  it.skipIf(!isAvailable(backend))(
    'stores no wrong record, catches up, and compensates a broken host with the others',
    async () => {
      campaign = await startCampaign({ name: 'venue faults', backend });
      const { random, fleet, database, load } = campaign;
      const { exchange } = fleet;
      for (let round = 1; round <= ROUNDS; round++) {
        const host = random.pick(HOSTS);
        const fault = anyFault(random, host);
        const lastsMs = random.between(2_000, 6_000);
        await campaign.blow(JSON.stringify(fault), async () => {
          exchange.addFault(fault);
          // A second one on the same host: another kind, or the same more often.
          if (random.chance(300_000)) exchange.addFault(anyFault(random, host));
          const over = delay(lastsMs);
          // Books and trades each report a crossing, so that one of them delivers it while the other is broken.
          await campaign?.probe();
          await over;
          exchange.clearFaults();
        });
        await campaign.recovered();
      }
      expect(load.failedCalls, 'calls of the API that failed').toBe(0);
      await campaign.expectNothingLost();
      expect(await impossibleRows(database.db)).toEqual([]);
    },
  );
});
