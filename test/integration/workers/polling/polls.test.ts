import { beforeEach, describe, expect, it } from 'vitest';
import { decimal } from '../../../../src/domain/values/decimal.ts';
import { sql } from '../../../../src/store/db/tx.ts';
import { VenueError } from '../../../../src/venues/errors.ts';
import { pollBooks } from '../../../../workers/jobs/poll-books.ts';
import { pollMarkets } from '../../../../workers/jobs/poll-markets.ts';
import { pollPrices } from '../../../../workers/jobs/poll-prices.ts';
import type { DefinedJob } from '../../../../workers/process/define.ts';
import { aMarketRecord } from '../../../factories/markets.ts';
import { aStoredMarket } from '../../../factories/stored-market.ts';
import { lastPage, type Script, type ScriptedAdapter, scriptedAdapter } from '../../../factories/venue-adapter.ts';
import { useTestDatabase } from '../../../support/postgres/database.ts';
import { jobContext, testConfig, wakeRecorder } from '../worker-harness.ts';

const PRICES = sql(
  'test_prices_by_mint',
  `SELECT t.mint, l.price, l.bid, l.ask FROM latest_price l JOIN token t ON t.id = l.token_id ORDER BY t.mint`,
);
const TIMES = sql(
  'test_price_times',
  'SELECT l.as_of AS stored, c.as_of AS current FROM latest_price l JOIN current_price c USING (token_id) ORDER BY token_id',
);
const BOOKS = sql(
  'test_books_by_mint',
  'SELECT t.mint FROM book_latest b JOIN token t ON t.id = b.token_id ORDER BY t.mint',
);
const OBSERVED = sql('test_observed_prices', 'SELECT price FROM observation ORDER BY price');
const POSITION = sql('test_position', 'SELECT position FROM poll_state WHERE kind = $1');
const CLEAR = sql(
  'test_clear_all',
  'TRUNCATE market, outcome, market_stats, token, latest_price, book_latest, observation, price_history, mark, poll_state CASCADE',
);

const NOW = Date.now();

const test = useTestDatabase();
beforeEach(() => test.db.query(CLEAR));

function run(job: DefinedJob, adapter: ScriptedAdapter, producer = wakeRecorder()) {
  const used = jobContext({ db: test.db, config: testConfig(test.url), adapter, producer, now: () => NOW });
  return job.run({ venue: 'v' }, used);
}
const priced = (price: string, asOfMs = NOW): NonNullable<Script['prices']> => {
  return async (outcomeIds) => ({
    records: outcomeIds.map((outcomeId) => ({ outcomeId, asOfMs, price: decimal(price) })),
    rejected: [],
  });
};
const position = async (kind: string) =>
  (await test.db.query<{ position: string | null }>(POSITION, [kind]))[0]?.position;
const mints = async (statement: typeof PRICES) =>
  (await test.db.query<{ mint: string }>(statement)).map((row) => row.mint);

describe('the price poll', () => {
  it('confirms unchanged prices at its end, without a write of their rows', async () => {
    await aStoredMarket(test.db, { venue: 'v', marketId: 'a' });
    const times = () => test.db.query(TIMES);
    await run(pollPrices, scriptedAdapter({ prices: priced('0.5', NOW - 60_000) }));
    const stored = new Date(NOW - 60_000);
    expect(await times()).toEqual(Array(2).fill({ stored, current: stored }));
    await run(pollPrices, scriptedAdapter({ prices: priced('0.5') }));
    const confirmed = new Date(Math.floor(NOW / 1000) * 1000);
    expect(await times()).toEqual(Array(2).fill({ stored, current: confirmed }));
  });

  it('confirms the prices of the stored pages when a later page fails', async () => {
    for (const marketId of ['a', 'b', 'c']) await aStoredMarket(test.db, { venue: 'v', marketId });
    const old = priced('0.5', NOW - 60_000);
    await run(pollPrices, scriptedAdapter({ prices: old }));
    let pages = 0;
    const prices: typeof old = async (ids, call) => {
      pages += 1;
      if (pages > 1) throw new VenueError('v', 'timeout', 'too slow', { retryable: true });
      return priced('0.5')(ids, call);
    };
    await run(pollPrices, scriptedAdapter({ prices, maxOutcomesPerFetch: 2 }));
    const current = (await test.db.query<{ current: Date }>(TIMES)).map((row) => row.current.getTime());
    expect(current.filter((time) => time > NOW - 60_000)).toHaveLength(2);
  });

  it('goes round all tradable outcomes with a book, one batch per page, and starts over', async () => {
    for (const marketId of ['a', 'b', 'c']) await aStoredMarket(test.db, { venue: 'v', marketId });
    await aStoredMarket(test.db, { venue: 'v', marketId: 'halted', status: 'halted' });
    await aStoredMarket(test.db, { venue: 'v', marketId: 'closed', status: 'closed' });
    await aStoredMarket(test.db, { venue: 'v', marketId: 'bookless', hasBook: false });
    await aStoredMarket(test.db, { venue: 'other', marketId: 'elsewhere' });
    const adapter = scriptedAdapter({ maxOutcomesPerFetch: 3, prices: priced('0.5') });
    const producer = wakeRecorder();
    expect(await run(pollPrices, adapter, producer)).toMatchObject({ pages: 3, records: 8, written: 8 });
    const asked = adapter.batches.flat();
    expect(adapter.batches.map((batch) => batch.length)).toEqual([3, 3, 2]);
    expect([...asked].sort()).toEqual(['a:no', 'a:yes', 'b:no', 'b:yes', 'c:no', 'c:yes', 'halted:no', 'halted:yes']);
    expect(await mints(PRICES)).toEqual([...asked].sort());
    expect(producer.woken).toContain('evaluate-alerts');
    expect(await position('prices')).toBeNull();
    await run(pollPrices, adapter);
    expect(adapter.batches.slice(3).flat()).toEqual(asked);
  });

  it('sends no request when the catalog is empty', async () => {
    const adapter = scriptedAdapter({ prices: priced('0.5') });
    expect(await run(pollPrices, adapter)).toMatchObject({ pages: 1, records: 0 });
    expect(adapter.batches).toEqual([]);
  });

  it('continues behind the failed page after a failure, and reads it in the next sweep', async () => {
    for (const marketId of ['a', 'b', 'c']) await aStoredMarket(test.db, { venue: 'v', marketId });
    let calls = 0;
    const adapter = scriptedAdapter({
      maxOutcomesPerFetch: 2,
      prices: (outcomeIds, call) => {
        calls += 1;
        if (calls === 2) return Promise.reject(new VenueError('v', 'timeout', 'too slow', { retryable: true }));
        return priced('0.5')(outcomeIds, call);
      },
    });
    expect(await run(pollPrices, adapter)).toEqual({ failed: 'too slow' });
    const [, failed] = adapter.batches.splice(0);
    expect(await run(pollPrices, adapter)).toMatchObject({ records: 2 });
    expect(adapter.batches.flat()).not.toContain(failed?.[0]);
    expect(await run(pollPrices, adapter)).toMatchObject({ records: 6 });
    expect(adapter.batches).toContainEqual(failed);
  });

  it('ignores prices of other outcomes than the request, and accepts missing ones', async () => {
    await aStoredMarket(test.db, { venue: 'v', marketId: 'a' });
    await aStoredMarket(test.db, { venue: 'other', marketId: 'foreign' });
    const adapter = scriptedAdapter({
      prices: (_ids, call) => priced('0.5')(['a:yes', 'foreign:yes', 'unheard-of'], call),
    });
    expect(await run(pollPrices, adapter)).toMatchObject({ records: 3, written: 1 });
    expect(await mints(PRICES)).toEqual(['a:yes']);
  });

  it('wakes no stage when a price is unchanged', async () => {
    await aStoredMarket(test.db, { venue: 'v', marketId: 'a' });
    await run(pollPrices, scriptedAdapter({ prices: priced('0.5') }));
    const producer = wakeRecorder();
    await run(pollPrices, scriptedAdapter({ prices: priced('0.50', NOW + 1) }), producer);
    expect(producer.woken).toEqual([]);
  });
});

describe('the book poll', () => {
  const books: NonNullable<Script['books']> = async (outcomeIds) => ({
    records: outcomeIds.map((outcomeId) => ({
      outcomeId,
      asOfMs: NOW,
      bids: [{ price: decimal('0.40'), size: decimal('5') }],
      asks: outcomeId.endsWith(':yes') ? [{ price: decimal('0.45'), size: decimal('5') }] : [],
    })),
    rejected: [],
  });

  it('stores the books of the most traded markets, and their midpoints as prices that alerts see', async () => {
    await aStoredMarket(test.db, { venue: 'v', marketId: 'a', stats: ['1', '100', null] });
    await aStoredMarket(test.db, { venue: 'v', marketId: 'b', status: 'resolved' });
    const producer = wakeRecorder();
    const adapter = scriptedAdapter({ books, maxOutcomesPerFetch: 1 });
    expect(await run(pollBooks, adapter, producer)).toMatchObject({ pages: 2, written: 2 });
    expect(await mints(BOOKS)).toEqual(['a:no', 'a:yes']);
    expect(await test.db.query(PRICES)).toEqual([{ mint: 'a:yes', price: '0.425', bid: '0.4', ask: '0.45' }]);
    expect(await test.db.query(OBSERVED)).toEqual([{ price: '0.425' }]);
    expect(producer.woken).toEqual(['evaluate-alerts']);
  });

  it('sends no request when the catalog is empty', async () => {
    const adapter = scriptedAdapter({ books });
    expect(await run(pollBooks, adapter)).toMatchObject({ pages: 1, records: 0 });
    expect(adapter.batches).toEqual([]);
  });
});

describe('the catalog poll', () => {
  it('stores markets, and wakes the alerts when one is final', async () => {
    const producer = wakeRecorder();
    const market = aMarketRecord({ marketId: 'm' });
    await run(pollMarkets, scriptedAdapter({ markets: async () => lastPage([market]) }), producer);
    expect(producer.woken).toEqual([]);
    const final = { ...market, status: 'resolved' as const };
    expect(await run(pollMarkets, scriptedAdapter({ markets: async () => lastPage([final]) }), producer)).toMatchObject(
      {
        written: 1,
      },
    );
    expect(producer.woken).toEqual(['evaluate-alerts']);
  });
});
