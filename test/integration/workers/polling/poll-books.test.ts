import { beforeEach, describe, expect, it } from 'vitest';
import type { BookRecord } from '../../../../src/domain/markets/market.ts';
import { decimal } from '../../../../src/domain/values/decimal.ts';
import { createLogger } from '../../../../src/observe/logger.ts';
import { createArrivals } from '../../../../src/store/catalog/arrivals.ts';
import { noteMarketReads } from '../../../../src/store/catalog/market-heat.ts';
import { Database, sql } from '../../../../src/store/db/tx.ts';
import { VenueError } from '../../../../src/venues/errors.ts';
import { fetchBook } from '../../../../workers/jobs/fetch-book.ts';
import { pollBooks } from '../../../../workers/jobs/poll-books.ts';
import { pollPrices } from '../../../../workers/jobs/poll-prices.ts';
import { aStoredMarket } from '../../../factories/stored-market.ts';
import { ageBooks } from '../../../factories/stored-series.ts';
import { type Script, type ScriptedAdapter, scriptedAdapter } from '../../../factories/venue-adapter.ts';
import { GUARD_MS } from '../../../support/eventually.ts';
import { useTestDatabase } from '../../../support/postgres/database.ts';
import { jobContext, testConfig, wakeRecorder } from '../worker-harness.ts';

const CLEAR = sql(
  'test_clear_books',
  `TRUNCATE market, outcome, market_stats, market_read, token, latest_price, book_latest, book_history, observation,
     price_history, mark, poll_state, quarantine CASCADE`,
);
const STORED = sql(
  'test_stored_books',
  `SELECT t.mint, (SELECT count(*)::int FROM book_history h WHERE h.token_id = b.token_id) AS history
   FROM book_latest b JOIN token t ON t.id = b.token_id ORDER BY t.mint`,
);
/** The rows that a poll of books may write, with their places and versions. */
const PLACES = sql(
  'test_places_of_books',
  `SELECT 'book_latest' AS tab, b.ctid::text, b.xmin::text, b.xmax::text FROM book_latest b UNION ALL
   SELECT 'book_history', h.ctid::text, h.xmin::text, h.xmax::text FROM book_history h UNION ALL
   SELECT 'latest_price', l.ctid::text, l.xmin::text, l.xmax::text FROM latest_price l UNION ALL
   SELECT 'price_check', c.ctid::text, c.xmin::text, c.xmax::text FROM price_check c UNION ALL
   SELECT 'mark', m.ctid::text, m.xmin::text, m.xmax::text FROM mark m UNION ALL
   SELECT 'publish_mark', p.ctid::text, p.xmin::text, p.xmax::text FROM publish_mark p ORDER BY 1, 2`,
);
const UNSEEN = sql(
  'test_unseen_books',
  `SELECT count(*) FILTER (WHERE received_at < now() - interval '30 seconds')::int AS unseen FROM book_latest`,
);
const CHECKED = sql('test_prices_of_books', 'SELECT as_of FROM current_price');
const OBSERVED = sql('test_observations', 'SELECT price FROM observation');
const QUARANTINED = sql('test_quarantined_books', 'SELECT reason FROM quarantine');
const POLLS = sql('test_poll_states', 'SELECT kind FROM poll_state');
const SET_POSITION = sql('test_set_position', 'UPDATE poll_state SET position = $1');
const POSITION = sql('test_position_of_prices', `SELECT position FROM poll_state WHERE kind = 'prices'`);
const RESOLVE = sql('test_resolve', `UPDATE market SET status = 'resolved' WHERE id = $1`);
const NOW = Date.now();

const test = useTestDatabase();
beforeEach(() => test.db.query(CLEAR));

function contextOf(adapter: ScriptedAdapter, variables: Record<string, string> = {}, producer = wakeRecorder()) {
  return jobContext({ db: test.db, config: testConfig(test.url, variables), adapter, producer, now: () => NOW });
}
const bookOf = (outcomeId: string): BookRecord => ({
  outcomeId,
  asOfMs: NOW,
  bids: [{ price: decimal('0.40'), size: decimal('5') }],
  asks: [{ price: decimal('0.44'), size: decimal('5') }],
});
const books: NonNullable<Script['books']> = async (ids) => ({ records: ids.map(bookOf), rejected: [] });
const UNSEEN_MS = 60_000;
/** The first sight of a day is stored again, and a minute ago may be the day before. */
const sightsSince = (agedMs: number) =>
  new Date(Date.now() - agedMs).getUTCDate() === new Date().getUTCDate() ? 0 : 1;
const market = (marketId: string, volume24h = '0') =>
  aStoredMarket(test.db, { venue: 'v', marketId, labels: ['Yes'], stats: [null, volume24h, null] });

describe('the book poll', () => {
  it('requests recently read markets first, up to the configured number, and keeps history', async () => {
    await market('busy', '100');
    await market('calm', '1');
    const { pk } = await market('read');
    await noteMarketReads(test.db, new Map([[pk, 0]]));
    const adapter = scriptedAdapter({ books, maxOutcomesPerFetch: 1 });
    const context = contextOf(adapter, { POLL_BOOKS_MARKETS: '2' });
    expect(await pollBooks.run({ venue: 'v' }, context)).toMatchObject({ pages: 2, written: 2 });
    expect(adapter.batches).toEqual([['read:yes'], ['busy:yes']]);
    await pollBooks.run({ venue: 'v' }, context);
    expect(await test.db.query(STORED)).toEqual([
      { mint: 'busy:yes', history: 1 },
      { mint: 'read:yes', history: 1 },
    ]);
  });

  it('writes no row and no mark for unchanged books, and confirms their times and prices later', async () => {
    const [yes] = (await market('quiet')).outcomes;
    let atMs = NOW;
    let size = '5';
    const context = {
      ...contextOf(
        scriptedAdapter({
          books: async (ids) => ({
            records: ids.map((id) => ({
              ...bookOf(id),
              asOfMs: atMs,
              bids: [{ price: decimal('0.40'), size: decimal(size) }],
            })),
            rejected: [],
          }),
        }),
      ),
      now: () => atMs,
    };
    const tick = async (afterMs: number) => {
      atMs = NOW + afterMs;
      return pollBooks.run({ venue: 'v' }, context);
    };
    await tick(0);
    const before = await test.db.query(PLACES);
    expect(await tick(5_000)).toMatchObject({ records: 1, written: 0 });
    expect(await test.db.query(PLACES)).toEqual(before);
    size = '6';
    expect(await tick(10_000)).toMatchObject({ records: 1, written: 1 });
    expect(await test.db.query(STORED)).toEqual([{ mint: 'quiet:yes', history: 2 }]);
    await ageBooks(test.db, UNSEEN_MS, yes?.tokenId ?? 0n);
    const again = sightsSince(UNSEEN_MS);
    await tick(24_999);
    expect(await test.db.query(UNSEEN)).toEqual([{ unseen: 1 }]);
    await tick(25_000);
    expect(await test.db.query(UNSEEN)).toEqual([{ unseen: 0 }]);
    expect(await test.db.query(CHECKED)).toEqual([{ asOf: new Date(Math.floor((NOW + 25_000) / 1_000) * 1_000) }]);
    expect(await test.db.query(STORED)).toEqual([{ mint: 'quiet:yes', history: 2 + again }]);
  });

  it('confirms the books of a process that died', async () => {
    const [yes] = (await market('quiet')).outcomes;
    const adapter = scriptedAdapter({ books });
    await pollBooks.run({ venue: 'v' }, contextOf(adapter));
    await ageBooks(test.db, UNSEEN_MS, yes?.tokenId ?? 0n);
    const again = sightsSince(UNSEEN_MS);
    // Another process has no memory of these books.
    const restarted = { ...contextOf(adapter), db: new Database(test.db.dataSource) };
    expect(await pollBooks.run({ venue: 'v' }, restarted)).toMatchObject({ written: 0 });
    expect(await test.db.query(UNSEEN)).toEqual([{ unseen: 0 }]);
    expect(await test.db.query(STORED)).toEqual([{ mint: 'quiet:yes', history: 1 + again }]);
  });

  it('ranks by volume once a minute, and at each tick while the catalog has too few markets', async () => {
    await market('first', '1');
    const adapter = scriptedAdapter({ books });
    const tick = async (nowMs: number) => {
      adapter.batches.splice(0);
      await pollBooks.run({ venue: 'v' }, { ...contextOf(adapter, { POLL_BOOKS_MARKETS: '2' }), now: () => nowMs });
      return adapter.batches.flat();
    };
    expect(await tick(NOW)).toEqual(['first:yes']);
    await market('second', '2');
    expect(await tick(NOW)).toEqual(['second:yes', 'first:yes']);
    const { pk } = await market('third', '3');
    expect(await tick(NOW + 59_999)).toEqual(['second:yes', 'first:yes']);
    expect(await tick(NOW + 60_000)).toEqual(['third:yes', 'second:yes']);
    await test.db.query(RESOLVE, [pk]);
    expect(await tick(NOW + 60_001)).toEqual(['second:yes']);
  });

  it('starts no request after the end of its tick, and skips the coldest markets', async () => {
    for (const name of ['a', 'b', 'c']) await market(name);
    const context = contextOf(scriptedAdapter({ books, maxOutcomesPerFetch: 1 }));
    const { config } = context;
    const hurried = { ...context, config: { ...config, pollMs: { ...config.pollMs, books: 0 } } };
    expect(await pollBooks.run({ venue: 'v' }, hurried)).toMatchObject({ pages: 1, written: 1 });
  });
});

describe('a poll without anything to request', () => {
  const STATE = sql(
    'test_idle_state',
    `SELECT kind, last_success_at IS NOT NULL AS has_succeeded, idle_at IS NOT NULL AS is_idle, consecutive_failures
     FROM poll_state ORDER BY kind`,
  );

  it('is idle and no success, until a market is stored', async () => {
    const adapter = scriptedAdapter({ books });
    for (const job of [pollBooks, pollPrices]) await job.run({ venue: 'v' }, contextOf(adapter));
    expect(await test.db.query(STATE)).toEqual([
      { kind: 'books', hasSucceeded: false, isIdle: true, consecutiveFailures: 0 },
      { kind: 'prices', hasSucceeded: false, isIdle: true, consecutiveFailures: 0 },
    ]);
    await market('first');
    await pollBooks.run({ venue: 'v' }, contextOf(adapter));
    expect((await test.db.query(STATE))[0]).toMatchObject({ kind: 'books', hasSucceeded: true });
  });
});

describe('the price poll of a venue without books', () => {
  it('starts each tick with recently read markets, and continues its round', async () => {
    const [a] = [await market('a'), await market('b'), await market('c')];
    const { pk } = await market('d');
    await noteMarketReads(test.db, new Map([[pk, 0]]));
    const prices: NonNullable<Script['prices']> = async (ids) => ({
      records: ids.map((outcomeId) => ({ outcomeId, asOfMs: NOW, price: decimal('0.5') })),
      rejected: [],
    });
    const adapter = scriptedAdapter({ prices, maxOutcomesPerFetch: 2 });
    const bookless = { ...adapter, capabilities: { ...adapter.capabilities, books: false } };
    await pollPrices.run({ venue: 'v' }, contextOf(bookless));
    expect(adapter.batches).toEqual([['d:yes'], ['a:yes', 'b:yes'], ['c:yes', 'd:yes']]);

    const tally = { startedAtMs: NOW, pages: 1, markets: 1, changed: 0, skipped: 0 };
    const after = `${a.pk}:${a.outcomes[0]?.tokenId}`;
    await test.db.query(SET_POSITION, [JSON.stringify({ tally, after, ahead: [] })]);
    const failing = scriptedAdapter({
      maxOutcomesPerFetch: 2,
      prices: (ids, call) =>
        ids.includes('d:yes')
          ? prices(ids, call)
          : Promise.reject(new VenueError('v', 'timeout', 'too slow', { retryable: true })),
    });
    const down = { ...failing, capabilities: bookless.capabilities };
    expect(await pollPrices.run({ venue: 'v' }, contextOf(down))).toEqual({ failed: 'too slow' });
    const [{ position } = { position: null }] = await test.db.query<{ position: string | null }>(POSITION);
    // The failed batch waits for the next sweep, so that it does not keep the others waiting.
    expect(JSON.parse(position ?? '')).toMatchObject({ tally: { failed: 1 }, ahead: [] });
    adapter.batches.splice(0);
    await pollPrices.run({ venue: 'v' }, contextOf(bookless));
    expect(adapter.batches).toEqual([['d:yes'], ['d:yes']]);
    await pollPrices.run({ venue: 'v' }, contextOf(bookless));
    expect(adapter.batches.slice(2)).toEqual([['d:yes'], ['a:yes', 'b:yes'], ['c:yes', 'd:yes']]);
  });
});

describe('fetch-book', () => {
  const jobFor = (pk: bigint) => ({ venue: 'v', marketPk: String(pk) });

  it('writes the same rows as a poll, announces them, and needs no lease', async () => {
    const { pk } = await aStoredMarket(test.db, { venue: 'v', marketId: 'm', labels: ['Yes', 'No', 'Maybe'] });
    await market('other');
    const arrivals = createArrivals(test.url, createLogger({ process: 'test', level: 'silent' }));
    try {
      await arrivals.ready();
      const arrived = arrivals.waitFor(`book:${pk}`, GUARD_MS);
      const adapter = scriptedAdapter({
        maxOutcomesPerFetch: 2,
        books: async (ids) => ({
          records: ids.filter((id) => id !== 'm:no').map(bookOf),
          rejected: ids.includes('m:no')
            ? [{ kind: 'books', recordId: 'm:no', reason: 'price_out_of_range', detail: 'bids.0.price', sample: '{}' }]
            : [],
        }),
      });
      const producer = wakeRecorder();
      const context = contextOf(adapter, {}, producer);
      expect(await fetchBook.run(jobFor(pk), context)).toEqual({ outcomes: 3, records: 2, written: 2, rejected: 1 });
      expect(await arrived).toBe(true);
      expect(adapter.batches).toEqual([['m:yes', 'm:no'], ['m:maybe']]);
      expect(await test.db.query(STORED)).toEqual([
        { mint: 'm:maybe', history: 1 },
        { mint: 'm:yes', history: 1 },
      ]);
      expect(await test.db.query(OBSERVED)).toEqual([{ price: '0.42' }, { price: '0.42' }]);
      expect(await test.db.query(QUARANTINED)).toEqual([{ reason: 'price_out_of_range' }]);
      expect(await test.db.query(POLLS)).toEqual([]);
      expect(producer.woken).toContain('evaluate-alerts');
      const again = await fetchBook.run(jobFor(pk), contextOf(adapter));
      expect(again).toMatchObject({ written: 0 });
    } finally {
      await arrivals.close();
    }
  });

  it('announces its end when the market has no book, but not when the venue is down', async () => {
    const over = await aStoredMarket(test.db, { venue: 'v', status: 'resolved' });
    const open = await market('open');
    const arrivals = createArrivals(test.url, createLogger({ process: 'test', level: 'silent' }));
    try {
      await arrivals.ready();
      const adapter = scriptedAdapter({
        books: () => Promise.reject(new VenueError('v', 'timeout', 'too slow', { retryable: true })),
      });
      const context = contextOf(adapter);
      const announced = arrivals.waitFor(`book:${over.pk}`, GUARD_MS);
      const unannounced = arrivals.waitFor(`book:${open.pk}`, GUARD_MS);
      await expect(fetchBook.run(jobFor(open.pk), context)).rejects.toThrow('too slow');
      expect(await fetchBook.run(jobFor(over.pk), context)).toMatchObject({ outcomes: 0 });
      expect(await announced).toBe(true);
      const silence = new Promise((resolve) => setImmediate(resolve, 'nothing'));
      expect(await Promise.race([unannounced, silence])).toBe('nothing');
    } finally {
      await arrivals.close();
    }
  });

  it('skips a venue that is not enabled', async () => {
    const context = { ...contextOf(scriptedAdapter({})), adapters: new Map() };
    expect(await fetchBook.run(jobFor(1n), context)).toEqual({ skipped: 'venue not enabled' });
  });
});
