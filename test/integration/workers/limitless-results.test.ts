import { afterAll, beforeAll, expect, it } from 'vitest';
import { sql } from '../../../src/store/db/tx.ts';
import type { VenueAdapter } from '../../../src/venues/port.ts';
import { pollMarkets } from '../../../workers/jobs/poll-markets.ts';
import { startSimulatedLimitless } from '../../conformance/venue-adapter/limitless-exchange.ts';
import { createTestDatabase, type TestDatabase } from '../../support/postgres/database.ts';
import { jobContext, testConfig } from './worker-harness.ts';

const MARKET = sql(
  'test_limitless_market',
  `SELECT m.status, m.winning_outcome_id AS winner, m.gone_at IS NOT NULL AS is_gone FROM market m
   WHERE m.venue = 'limitless' AND m.venue_market_id = $1`,
);

let test: TestDatabase;
let venue: Awaited<ReturnType<typeof startSimulatedLimitless>>;
let adapter: VenueAdapter;
beforeAll(async () => {
  test = await createTestDatabase();
  venue = await startSimulatedLimitless({ nowSecond: Math.floor(Date.now() / 1000) });
  adapter = venue.createAdapter();
});
afterAll(async () => {
  await adapter.close();
  await venue.close();
  await test.drop();
});

/** One poll of the catalog after so many seconds. */
async function poll(seconds: number): Promise<void> {
  venue.exchange.idle(seconds);
  const config = testConfig(test.url, { VENUES: 'limitless' });
  const context = jobContext({ db: test.db, config, adapter, now: () => venue.now() });
  expect(await pollMarkets.run({ venue: 'limitless' }, context)).not.toHaveProperty('failed');
}

it('the catalog poll stores the result of a market that leaves the listing after it closed', async () => {
  const market = venue.exchange.state().markets.find(({ phase, negRisk }) => phase === 'open' && !negRisk);
  const { slug = '', conditionId = '' } = market ?? {};
  const stored = async () => (await test.db.query<Record<string, unknown>>(MARKET, [slug]))[0];
  await poll(1);
  expect(await stored()).toMatchObject({ status: 'open', winner: null });
  venue.exchange.steer({ conditionId, action: 'close' });
  await poll(31);
  expect(await stored()).toMatchObject({ status: 'closed', winner: null });
  venue.exchange.steer({ conditionId, action: 'resolve', winner: 1 });
  // The sweep that covers closed markets ends in the first poll, and the second one asks for them.
  await poll(301);
  await poll(31);
  expect(await stored()).toMatchObject({ status: 'resolved', winner: expect.any(String), isGone: false });
});
