import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { sql } from '../../../../src/store/db/tx.ts';
import { createKalshiAdapter } from '../../../../src/venues/kalshi/adapter.ts';
import type { VenueAdapter } from '../../../../src/venues/port.ts';
import { pollPrices } from '../../../../workers/jobs/poll-prices.ts';
import { aStoredMarket } from '../../../factories/stored-market.ts';
import { useTestDatabase } from '../../../support/postgres/database.ts';
import { json, ScriptedServer } from '../../venues/scripted-server.ts';
import { jobContext, testConfig, wakeRecorder } from '../worker-harness.ts';

const STORED = sql(
  'test_latest_prices',
  `SELECT t.mint, l.price, l.as_of FROM latest_price l JOIN token t ON t.id = l.token_id ORDER BY t.mint`,
);
const HISTORY = sql('test_price_history_rows', 'SELECT count(*)::int AS rows FROM price_history');
const OBSERVED = sql('test_price_observations', 'SELECT count(*)::int AS rows FROM observation');

const server = new ScriptedServer();
const test = useTestDatabase();
let adapter: VenueAdapter;
beforeAll(async () => {
  adapter = createKalshiAdapter({ url: await server.start(), http: { requestsPerSecond: 10_000, maxAttempts: 1 } });
});
afterAll(async () => {
  await adapter.close();
  await server.close();
});
beforeEach(async () => {
  await aStoredMarket(test.db, { venue: 'kalshi', marketId: 'A' });
});

/** One poll with these quotes. */
async function poll(bid: string, ask: string, headers: Record<string, string> = {}) {
  server.answer = json(
    200,
    { markets: [{ ticker: 'A', status: 'active', yes_bid_dollars: bid, yes_ask_dollars: ask }], cursor: '' },
    headers,
  );
  const producer = wakeRecorder();
  const used = jobContext({ db: test.db, config: testConfig(test.url), adapter, producer, now: Date.now });
  const result = await pollPrices.run({ venue: 'kalshi' }, used);
  const rows = await test.db.query<{ mint: string; price: string; asOf: Date }>(STORED);
  const [history] = await test.db.query<{ rows: number }>(HISTORY);
  const [observed] = await test.db.query<{ rows: number }>(OBSERVED);
  const [no, yes] = rows;
  return { result, no, yes, written: [history?.rows, observed?.rows], woken: producer.woken };
}

it('poll-prices keeps a stored price when a cached answer is older, and moves it with a new answer', async () => {
  const first = await poll('0.40', '0.44');
  expect([first.yes?.price, first.no?.price]).toEqual(['0.42', '0.58']);
  const cached = await poll('0.20', '0.24', { age: '300', 'x-cache': 'Hit from cloudfront' });
  // The open and the paused markets are two lists, and the scripted venue lists its market in both.
  expect(cached.result).toMatchObject({ records: 4, written: 0 });
  expect(cached).toMatchObject({ yes: first.yes, no: first.no, written: first.written, woken: [] });
  const next = await poll('0.41', '0.45');
  expect([next.yes?.price, next.no?.price]).toEqual(['0.43', '0.57']);
  expect(Number(next.yes?.asOf)).toBeGreaterThan(Number(first.yes?.asOf));
});
