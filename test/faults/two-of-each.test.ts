import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { createTestDatabase, type TestDatabase } from '../support/postgres/database.ts';
import { type Fleet, ofEach, startFleet } from '../support/processes/fleet.ts';
import { callTo, WEBHOOK_SECRET } from '../support/processes/system.ts';
import { BACKENDS, isAvailable } from '../support/redis/queue-backends.ts';
import { createAlerts, quotes } from './campaign/near-alerts.ts';
import { deliveryCounts, expectNothingLost } from './campaign/settled.ts';

interface Alert {
  id: string;
  status: string;
}

/** The rate limit of an account per minute, and the requests to each API: neither exceeds the limit alone. */
const RATE = 100;
const ASKED_EACH = 60;
/** Requests per API: an API that counts alone stays below the rate with these. */
const PROBES_EACH = 20;

/** `oddswire keys`, on the database of the fleet. */
function keys(fleet: Fleet, ...argv: string[]): string {
  return execFileSync(process.execPath, ['dist/bin/oddswire.js', 'keys', ...argv], {
    env: { PATH: process.env['PATH'], ...fleet.environment },
    encoding: 'utf8',
  }).trim();
}

async function statusOf(address: string, key: string): Promise<number> {
  const answer = await fetch(`${address}/v1/venues`, { headers: { authorization: `Bearer ${key}` } });
  await answer.arrayBuffer();
  return answer.status;
}

/** Ten processes on one database: each pair shares its work, without visible repetitions. */
describe.each(BACKENDS)('two of every process, queues on %s', (kind) => {
  describe.skipIf(!isAvailable(kind))('at work', () => {
    let database: TestDatabase;
    let fleet: Fleet;
    let webhookId: string;
    let tapeFrom: number;
    beforeAll(async () => {
      database = await createTestDatabase();
      const redisUrl = inject('redisUrl');
      fleet = await startFleet({
        databaseUrl: database.url,
        counts: ofEach(2),
        ...(kind === 'redis' && redisUrl !== null && { redisUrl }),
        queuePrefix: `two${randomBytes(5).toString('hex')}`,
        exchange: { seed: 11, speed: 2, rollingSeconds: 0 },
      });
    });
    afterAll(async () => {
      await fleet?.stop();
      await database?.drop();
    });

    it('serve writes of one API through the other at once', async () => {
      const [first = '', second = ''] = fleet.apis();
      const webhook = await fleet.call<{ id: string }>('POST', '/v1/webhooks', {
        url: `${fleet.receiver.url}/hook`,
        events: ['price_alert'],
        secret: WEBHOOK_SECRET,
      });
      webhookId = webhook.id;
      for (const address of [first, second]) {
        const listed = await callTo<{ id: string }[]>(address, 'GET', '/v1/webhooks');
        expect(listed.map(({ id }) => id)).toEqual([webhookId]);
      }
    });

    it('reject a key at both APIs after one revoked it', async () => {
      const key = keys(fleet, 'create', '--account', 'pair', '--name', 'revoked');
      for (const address of fleet.apis()) expect(await statusOf(address, key)).toBe(200);
      keys(fleet, 'revoke', key.split('_')[2] ?? '');
      await eventually(
        () => Promise.all(fleet.apis().map((address) => statusOf(address, key))),
        (statuses) => statuses.every((status) => status === 401),
        { timeoutMs: 10_000 },
      );
    });

    it('have one rate limit per account over both APIs', async () => {
      const key = keys(fleet, 'create', '--account', 'shared', '--name', 'limited');
      keys(fleet, 'quota', '--account', 'shared', '--rate', String(RATE));
      const ask = (times: number) =>
        Promise.all(
          fleet.apis().map(async (address) => {
            let last = 0;
            for (let time = 0; time < times; time++) last = await statusOf(address, key);
            return last;
          }),
        );
      // A minute may end in between, which resets the count: the next round repeats the test.
      for (let round = 1; ; round++) {
        await ask(ASKED_EACH);
        let left = PROBES_EACH;
        const isRefused = await eventually(
          async () => {
            left -= 1;
            return (await ask(1)).every((status) => status === 429);
          },
          (refused) => refused || left === 0,
        );
        if (isRefused) break;
        expect(round, 'rounds in which both APIs went on').toBeLessThan(3);
      }
    });

    it('fire alerts from both APIs, and emit each event once', async () => {
      const tokens = await eventually(
        () => quotes(fleet),
        (found) => found.length >= 4,
      );
      tapeFrom = fleet.exchange.second();
      await createAlerts(fleet, webhookId, tokens);
      for (const { tokenId, price } of tokens.slice(0, 4)) {
        const forced = (price > 0.5 ? price - 0.08 : price + 0.08).toFixed(2);
        fleet.exchange.forcePrice({ tokenId, price: forced, holdMs: 60_000 });
      }
      await eventually(
        () => fleet.call<Alert[]>('GET', '/v1/alerts?limit=1000'),
        (alerts) => alerts.filter((alert) => alert.status === 'triggered').length >= 8,
      );
    });

    it('store every trade once, fire every alert once, and deliver every event once', async () => {
      await expectNothingLost(fleet, database, tapeFrom);
      // Without a kill, not even the repeated delivery of a crash is allowed.
      expect(deliveryCounts(fleet)[0]).toBe(1);
    });

    it('end in time on request, all ten', async () => {
      expect(await fleet.stop()).toEqual(Array.from({ length: 10 }, () => 0));
    });
  });
});
