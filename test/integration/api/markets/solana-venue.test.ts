import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { enabledVenues } from '../../../../api/reads/venue-catalog.ts';
import { sql } from '../../../../src/store/db/tx.ts';
import { aStoredMarket } from '../../../factories/stored-market.ts';
import { type Client, startTestApi, type TestApi } from '../api-harness.ts';

const NOW = 1_790_000_000;
const POLLED = sql(
  'test_tokens_polled',
  `INSERT INTO poll_state (venue, kind, last_success_at) VALUES ('solana', 'tokens', $1)
   ON CONFLICT (venue, kind) DO UPDATE SET last_success_at = excluded.last_success_at`,
);

let api: TestApi;
let client: Client;
beforeAll(async () => {
  const pollMs = { markets: 60_000, prices: 5_000, books: 5_000, trades: 2_000 };
  api = await startTestApi({ venues: enabledVenues(['polymarket', 'solana'], pollMs) });
  api.clock.nowMs = NOW * 1000;
  client = await api.client();
});
afterAll(() => api.close());

describe('a venue without markets', () => {
  it.each([
    '/v1/solana/markets',
    '/v1/solana/markets/x',
    '/v1/solana/markets/x/prices',
    '/v1/solana/prices?market_ids=x',
  ])('is venue_not_found on %s', async (path) => {
    const { status, body } = await client.market(path);
    expect(status).toBe(404);
    expect(body.error).toMatchObject({ code: 'venue_not_found', message: expect.not.stringContaining('solana') });
  });

  it('rejects wallets when no node is configured', async () => {
    const pollMs = { markets: 1, prices: 1, books: 1, trades: 1 };
    const without = await startTestApi({
      venues: enabledVenues(['polymarket', 'solana'], pollMs, { wallets: ['solana'] }),
    });
    try {
      const { body } = await (await without.client()).market('/v1/venues');
      expect(body.data).toMatchObject([
        { venue: 'polymarket', capabilities: { wallets: true } },
        { venue: 'solana', capabilities: { wallets: false, tokens: true } },
      ]);
    } finally {
      await without.close();
    }
  });

  it('does not affect reads of the other venues', async () => {
    await aStoredMarket(api.db);
    const { status, body } = await client.market('/v1/all/markets');
    expect(status).toBe(200);
    expect(body.data).toHaveLength(1);
  });

  it.each([
    [3, true],
    [61, false],
  ])('is listed with tokens priced %s s ago and healthy: %s', async (ago, healthy) => {
    await api.db.query(POLLED, [new Date((NOW - ago) * 1000).toISOString()]);
    const { body } = await client.market('/v1/venues');
    expect(body.data).toMatchObject([
      { venue: 'polymarket' },
      {
        venue: 'solana',
        title: 'Solana',
        currency: 'USD',
        capabilities: { markets: false, prices: false, wallets: true, tokens: true },
        healthy,
        lag_seconds: ago,
        markets: 0,
      },
    ]);
  });
});
