import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { eventually } from '../support/eventually.ts';
import { type System, startSystem } from '../support/system.ts';

interface Venue {
  venue: string;
  currency: string;
  healthy: boolean;
  markets: number;
  failing?: { kind: string; reason: string }[];
}
interface Market {
  market_id: string;
  venue: string;
}

/** All three venues at once, each in its own wire format, polled by one poller process. */
describe('three venues', () => {
  let database: TestDatabase;
  let system: System;
  beforeAll(async () => {
    database = await createTestDatabase();
    system = await startSystem({ databaseUrl: database.url, environment: { VENUES: 'polymarket,kalshi,manifold' } });
  });
  afterAll(async () => {
    await system.stop();
    await database.drop();
  });

  const venues = () => system.read<Venue[]>('/v1/venues');

  it('are all polled, in their own currency', async () => {
    const found = await eventually(venues, (all) => all.every((venue) => venue.healthy && venue.markets > 0));
    expect(found.map(({ venue, currency }) => [venue, currency])).toEqual([
      ['polymarket', 'USD'],
      ['kalshi', 'USD'],
      ['manifold', 'MANA'],
    ]);
  });

  it.each(['polymarket', 'kalshi', 'manifold'])('%s serves prices and trades of its own markets', async (venue) => {
    const served = await eventually(
      async () => {
        const markets = await system.read<Market[]>(`/v1/${venue}/markets?status=open&limit=50`);
        for (const { market_id: id } of markets) {
          const path = `/v1/${venue}/markets/${encodeURIComponent(id)}`;
          const trades = await system.read<unknown[]>(`${path}/trades?limit=5`);
          const price = await system.read<{ outcomes: unknown[] }>(`${path}/prices`).catch(() => null);
          if (trades.length > 0 && price !== null) return { markets, price };
        }
        return null;
      },
      (answer) => answer !== null,
    );
    expect(new Set(served?.markets.map((market) => market.venue))).toEqual(new Set([venue]));
    expect(served?.price.outcomes.length).toBeGreaterThan(0);
  });

  it('one that breaks is unhealthy and says why; the others go on', async () => {
    system.exchange.addFault({ host: 'kalshi', kind: 'status500' });
    const all = await eventually(venues, (list) => list.some((venue) => venue.venue === 'kalshi' && !venue.healthy));
    const kalshi = all.find((venue) => venue.venue === 'kalshi');
    expect(kalshi?.failing?.length).toBeGreaterThan(0);
    expect(all.filter((venue) => venue.venue !== 'kalshi').map((venue) => venue.healthy)).toEqual([true, true]);
    system.exchange.clearFaults();
    await eventually(venues, (list) => list.every((venue) => venue.healthy), { timeoutMs: 90_000 });
  }, 180_000);
});
