import { expect, it } from 'vitest';
import { sql } from '../../../src/store/db/tx.ts';
import { startSimulatedLimitless } from '../../conformance/venue-adapter/limitless-exchange.ts';
import { polledCatalog } from './catalog-harness.ts';

const MARKET = sql(
  'test_limitless_market',
  `SELECT m.status, m.winning_outcome_id AS winner, m.gone_at IS NOT NULL AS is_gone FROM market m
   WHERE m.venue = 'limitless' AND m.venue_market_id = $1`,
);

const TIMELINE = sql(
  'test_limitless_timeline',
  `SELECT r.transition FROM market_resolution r JOIN market m ON m.id = r.market_id WHERE m.venue_market_id = $1 ORDER BY r.n`,
);
const AGE_ROWS = sql(
  'test_age_rows',
  `UPDATE market_resolution SET received_at = received_at - interval '1 hour' WHERE venue = 'limitless'`,
);

const catalog = polledCatalog('limitless', startSimulatedLimitless);

it('the catalog poll stores the result of a market that leaves the listing after it closed', async () => {
  const { db, exchange, poll } = catalog;
  const market = exchange.state().markets.find(({ phase, negRisk }) => phase === 'open' && !negRisk);
  const { slug = '', conditionId = '' } = market ?? {};
  const stored = async () => (await db.query<Record<string, unknown>>(MARKET, [slug]))[0];
  await poll(1);
  expect(await stored()).toMatchObject({ status: 'open', winner: null });
  exchange.steer({ conditionId, action: 'close' });
  await poll(31);
  expect(await stored()).toMatchObject({ status: 'closed', winner: null });
  exchange.steer({ conditionId, action: 'resolve', winner: 1 });
  // The sweep that covers closed markets ends in the first poll, and the second one asks for them.
  await poll(301);
  await poll(31);
  expect(await stored()).toMatchObject({ status: 'resolved', winner: expect.any(String), isGone: false });
});

it('the catalog poll stores a correction of a market that no listing has an hour after its result', async () => {
  const { db, exchange, poll } = catalog;
  const { slug = '', conditionId = '' } =
    exchange.state().markets.find(({ phase, negRisk }) => phase === 'open' && !negRisk) ?? {};
  const words = async () =>
    (await db.query<{ transition: string }>(TIMELINE, [slug])).map(({ transition }) => transition).join(' ');
  exchange.steer({ conditionId, action: 'resolve', winner: 0 });
  await poll(301);
  await poll(31);
  expect(await words()).toBe('resolved');
  exchange.steer({ conditionId, action: 'resolve', winner: 1 });
  await poll(301);
  await poll(31);
  expect(await words()).toBe('resolved');
  await db.query(AGE_ROWS);
  catalog.restart();
  await poll(31);
  expect(await words()).toBe('resolved corrected');
});
