import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { createTestDatabase, type TestDatabase } from '../support/postgres/database.ts';
import { type Fleet, ofEach, startFleet } from '../support/processes/fleet.ts';
import { callTo, readFrom, WEBHOOK_SECRET } from '../support/processes/system.ts';
import { type RoundRobin, startRoundRobin } from '../support/round-robin.ts';
import { createAlerts, quotes } from './campaign/near-alerts.ts';
import { deliveryCounts, expectNothingLost } from './campaign/settled.ts';

/** Clients that send sequential requests over persistent connections. */
const READERS = 6;
/** The pause between two requests of a client: this test does not measure load. */
const PAUSE_MS = 20;
/** Longer than the balancer needs to notice that an API is not ready. */
const DRAIN_DELAY_MS = '1500';
/** The time that an orchestrator waits before a kill. */
const STOP_LIMIT_MS = 20_000;

/** Every process is replaced, one after the other, as in an upgrade. */
describe('a rolling restart under load', () => {
  let database: TestDatabase;
  let fleet: Fleet;
  let balancer: RoundRobin;
  let tapeFrom: number;
  let webhookId: string;
  const failures: string[] = [];
  let answered = 0;
  let isOver = false;
  let load: Promise<unknown>;

  /** Sends requests until it is stopped, and records the failures. */
  async function keepAsking(ask: () => Promise<unknown>): Promise<void> {
    while (!isOver) {
      try {
        await ask();
        answered += 1;
      } catch (error) {
        failures.push(`${error} ${(error as Error).cause ?? ''}`);
      }
      await delay(PAUSE_MS);
    }
  }

  beforeAll(async () => {
    database = await createTestDatabase();
    fleet = await startFleet({
      databaseUrl: database.url,
      counts: ofEach(2),
      environmentOf: { api: { DRAIN_DELAY_MS } },
      exchange: { seed: 11, speed: 2, rollingSeconds: 0 },
    });
    balancer = await startRoundRobin(() => fleet.apis());
  });
  afterAll(async () => {
    isOver = true;
    await load;
    await balancer?.close();
    await fleet?.stop();
    await database?.drop();
  });

  it('ends every process with success, in time', async () => {
    const webhook = await fleet.call<{ id: string }>('POST', '/v1/webhooks', {
      url: `${fleet.receiver.url}/hook`,
      events: ['price_alert'],
      secret: WEBHOOK_SECRET,
    });
    webhookId = webhook.id;
    const tokens = await eventually(
      () => quotes(fleet),
      (found) => found.length >= 4,
    );
    tapeFrom = fleet.exchange.second();
    await createAlerts(fleet, webhookId, tokens);
    const { address } = balancer;
    const readers = Array.from({ length: READERS }, () =>
      keepAsking(() => readFrom(address, '/v1/polymarket/markets?status=open&limit=20')),
    );
    // Repeated writes: an alert that the current price meets fires at once.
    const body = { tokenMint: tokens[0]?.tokenId, condition: 'above', price: 0.001, webhookId };
    const writer = keepAsking(() => callTo(address, 'POST', '/v1/alerts', body));
    load = Promise.all([...readers, writer]);

    for (const member of fleet.members) {
      const name = member.process.name;
      const before = answered;
      const requestedAt = performance.now();
      expect(await member.process.end('SIGTERM'), `${name}: ${member.process.lines.slice(-5).join('\n')}`).toBe(0);
      expect(performance.now() - requestedAt, name).toBeLessThan(STOP_LIMIT_MS);
      await fleet.start(member);
      await eventually(
        async () => answered,
        (count) => count > before + 2 * READERS,
      );
    }
  });

  it('fails no request', async () => {
    isOver = true;
    await load;
    expect(failures).toEqual([]);
  });

  it('loses no fact and repeats no event', async () => {
    await expectNothingLost(fleet, database, tapeFrom);
    expect(deliveryCounts(fleet)[0]).toBe(1);
  });
});
