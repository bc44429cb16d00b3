import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { sql } from '../../../../src/store/db/tx.ts';
import { aStoredMarket } from '../../../factories/stored-market.ts';
import { type Client, startTestApi, type TestApi } from '../api-harness.ts';

let api: TestApi;
let client: Client;

const NOW = 1_764_000_000;
const SET_POLL = sql(
  'test_set_poll',
  `INSERT INTO poll_state (venue, kind, last_success_at, consecutive_failures) VALUES ('polymarket', $1, $2, $3)
   ON CONFLICT (venue, kind) DO UPDATE SET last_success_at = excluded.last_success_at,
     consecutive_failures = excluded.consecutive_failures`,
);

beforeAll(async () => {
  api = await startTestApi();
  api.clock.nowMs = NOW * 1000;
  client = await api.client();
});
afterAll(() => api.close());

async function polls(states: Record<string, [secondsAgo: number | null, failures: number]>): Promise<unknown> {
  for (const [kind, [secondsAgo, failures]] of Object.entries(states)) {
    const at = secondsAgo === null ? null : new Date((NOW - secondsAgo) * 1000).toISOString();
    await api.db.query(SET_POLL, [kind, at, failures]);
  }
  return (await client.market('/v1/venues')).body.data;
}

describe('GET /v1/venues', () => {
  it('omits the freshness of a venue that has not been polled', async () => {
    await aStoredMarket(api.db);
    expect(await polls({})).toEqual([
      {
        venue: 'polymarket',
        title: 'Polymarket',
        currency: 'USD',
        capabilities: {
          markets: true,
          prices: true,
          books: true,
          trades: true,
          history: true,
          wallets: true,
          tokens: false,
        },
        healthy: false,
        markets: 1,
      },
    ]);
  });

  it('reports a healthy venue while all polls succeed in time, with the lag of the stalest', async () => {
    expect(await polls({ markets: [40, 0], prices: [3, 2] })).toMatchObject([
      { healthy: true, last_success_at: NOW - 3, lag_seconds: 40 },
    ]);
  });

  it('reports an unhealthy venue when one kind of poll keeps failing, never succeeded or is stale', async () => {
    expect(await polls({ prices: [3, 3] })).toMatchObject([{ healthy: false }]);
    expect(await polls({ prices: [61, 0] })).toMatchObject([{ healthy: false, lag_seconds: 61 }]);
    expect(await polls({ prices: [1, 0], trades: [null, 1] })).toMatchObject([{ healthy: false }]);
    expect(await polls({ trades: [1, 0] })).toMatchObject([{ healthy: true }]);
  });

  it('reports the error of a failing poll until it succeeds', async () => {
    await api.db.query(
      sql('test_set_error', `UPDATE poll_state SET last_error = 'getaddrinfo ENOTFOUND' WHERE kind = 'prices'`),
    );
    expect(await polls({ prices: [1, 4] })).toMatchObject([
      { failing: [{ kind: 'prices', failures: 4, reason: 'getaddrinfo ENOTFOUND' }] },
    ]);
    await api.db.query(sql('test_clear_error', 'UPDATE poll_state SET last_error = NULL'));
    const [venue] = (await polls({ prices: [1, 0] })) as object[];
    expect(venue).not.toHaveProperty('failing');
  });
});
