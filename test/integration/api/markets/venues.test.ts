import { beforeAll, describe, expect, it } from 'vitest';
import { sql } from '../../../../src/store/db/tx.ts';
import { openGap } from '../../../../src/store/feeds/gaps.ts';
import { reportFeeds } from '../../../../src/store/feeds/streamers.ts';
import { aStoredMarket } from '../../../factories/stored-market.ts';
import { type Client, useTestApi } from '../api-harness.ts';

const api = useTestApi();
let client: Client;

const NOW = 1_764_000_000;
const SET_POLL = sql(
  'test_set_poll',
  `INSERT INTO poll_state (venue, kind, last_success_at, consecutive_failures) VALUES ('polymarket', $1, $2, $3)
   ON CONFLICT (venue, kind) DO UPDATE SET last_success_at = excluded.last_success_at,
     consecutive_failures = excluded.consecutive_failures`,
);

beforeAll(async () => {
  api.clock.nowMs = NOW * 1000;
  client = await api.client();
});

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
        never_succeeded: ['markets', 'prices', 'books', 'trades'],
        markets: 1,
        feed: { state: 'stopped', subscribed: 0, messages_per_second: 0, gaps_24h: 0 },
      },
    ]);
  });

  it('reports a healthy venue while all polls succeed in time, with the lag of the stalest', async () => {
    // A kind that was never tried is unknown, which is not healthy.
    expect(await polls({ markets: [40, 0], prices: [3, 2] })).toMatchObject([
      { healthy: false, never_succeeded: ['books', 'trades'] },
    ]);
    expect(await polls({ books: [5, 0], trades: [4, 0] })).toMatchObject([
      { healthy: true, last_success_at: NOW - 3, lag_seconds: 40 },
    ]);
  });

  it('reports an unhealthy venue when one kind of poll keeps failing, never succeeded or is stale', async () => {
    expect(await polls({ prices: [3, 3] })).toMatchObject([{ healthy: false }]);
    expect(await polls({ prices: [61, 0] })).toMatchObject([{ healthy: false, lag_seconds: 61 }]);
    expect(await polls({ prices: [1, 0], trades: [null, 1] })).toMatchObject([{ healthy: false }]);
    expect(await polls({ trades: [1, 0] })).toMatchObject([{ healthy: true }]);
  });

  it('counts a poll with nothing to request neither as a success nor as late', async () => {
    const idle = sql(
      'test_idle_books',
      `INSERT INTO poll_state (venue, kind, idle_at) VALUES ('polymarket', 'books', $1)
       ON CONFLICT (venue, kind) DO UPDATE SET idle_at = excluded.idle_at`,
    );
    const idleSince = (secondsAgo: number) => api.db.query(idle, [new Date((NOW - secondsAgo) * 1000).toISOString()]);
    await api.db.query(sql('test_forget_polls', 'DELETE FROM poll_state'));
    await idleSince(2);
    const [alone] = (await polls({ markets: [null, 4] })) as object[];
    expect(alone).toMatchObject({ healthy: false, never_succeeded: ['markets', 'prices', 'books', 'trades'] });
    expect(alone).not.toHaveProperty('last_success_at');
    expect(alone).not.toHaveProperty('lag_seconds');
    expect(await polls({ markets: [30, 0], prices: [3, 0], trades: [1, 0] })).toMatchObject([
      { healthy: true, never_succeeded: ['books'], last_success_at: NOW - 1, lag_seconds: 30 },
    ]);
    await polls({ books: [500, 0] });
    expect(await polls({})).toMatchObject([{ healthy: true, lag_seconds: 30 }]);
    await idleSince(61);
    expect(await polls({})).toMatchObject([{ healthy: false }]);
    await api.db.query(sql('test_no_books', `DELETE FROM poll_state WHERE kind = 'books'`));
  });

  it('reports the error of a failing poll, without addresses, until it succeeds', async () => {
    await api.db.query(
      sql(
        'test_set_error',
        `UPDATE poll_state SET last_error = 'getaddrinfo ENOTFOUND venues.internal' WHERE kind = 'prices'`,
      ),
    );
    expect(await polls({ prices: [1, 4] })).toMatchObject([
      { failing: [{ kind: 'prices', failures: 4, reason: 'getaddrinfo ENOTFOUND' }] },
    ]);
    await api.db.query(sql('test_clear_error', 'UPDATE poll_state SET last_error = NULL'));
    const [venue] = (await polls({ prices: [1, 0] })) as object[];
    expect(venue).not.toHaveProperty('failing');
  });

  it('reports a feed that no streamer reads as stopped', async () => {
    expect(await polls({})).toMatchObject([
      { feed: { state: 'stopped', subscribed: 0, messages_per_second: 0, gaps_24h: 0 } },
    ]);
  });

  it('reports the feed over all running streamers, with the gaps of the last 24 hours', async () => {
    const market = await aStoredMarket(api.db);
    const report = { venue: 'polymarket', state: 'live', reason: null, subscribed: 40 } as const;
    await reportFeeds(api.db, 'one', [{ ...report, messagesPerSecond: 30.04, lagMs: 20 }]);
    await reportFeeds(api.db, 'two', [
      { ...report, state: 'silent', reason: 'no data for 21 s', messagesPerSecond: 10, lagMs: 60 },
    ]);
    const opened = { venue: 'polymarket', marketPks: [market.pk], affected: 'books', reason: 'silent' };
    for (const [hours, gap] of [
      [30, '0199d3a0-0000-7000-8000-000000000001'],
      [2, '0199d3a0-0000-7000-8000-000000000002'],
    ] as const) {
      const fromMs = Date.now() - hours * 3_600_000;
      await openGap(api.db, { ...opened, gap, fromMs, toMs: fromMs + 5_000 });
    }
    expect(await polls({})).toMatchObject([
      {
        feed: {
          state: 'silent',
          reason: 'no data for 21 s',
          subscribed: 80,
          messages_per_second: 40,
          lag_ms: 30,
          gaps_24h: 1,
        },
      },
    ]);
  });

  it('reports the last measurement of the price age', async () => {
    const set = sql(
      'test_set_freshness',
      `INSERT INTO venue_freshness VALUES ('polymarket', $1, 120, $2, $3, $4, $5)
       ON CONFLICT (venue) DO UPDATE SET unpriced = excluded.unpriced, p50_ms = excluded.p50_ms,
         p99_ms = excluded.p99_ms, max_ms = excluded.max_ms`,
    );
    const at = new Date((NOW - 4) * 1000).toISOString();
    await api.db.query(set, [at, 3, 5_250, 12_000, 90_001]);
    expect(await polls({})).toMatchObject([
      {
        price_age: {
          p50_seconds: 5.25,
          p99_seconds: 12,
          max_seconds: 90.001,
          markets: 120,
          unpriced: 3,
          measured_at: NOW - 4,
        },
      },
    ]);
    await api.db.query(set, [at, 120, null, null, null]);
    const [venue] = (await polls({ prices: [1, 0] })) as { price_age: object }[];
    expect(venue?.price_age).toEqual({ markets: 120, unpriced: 120, measured_at: NOW - 4 });
  });
});
