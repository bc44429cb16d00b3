import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { type Exchange, type RequestRecord, startExchange } from '../../../../sim/exchange.ts';
import { tickerOf } from '../../../../sim/kalshi/wire.ts';
import { sql } from '../../../../src/store/db/tx.ts';
import type { VenueHttpSettings } from '../../../../src/venues/http/http.ts';
import { type BudgetTerms, createMemoryLedger, type RateLedger } from '../../../../src/venues/http/rate-ledger.ts';
import { createKalshiAdapter } from '../../../../src/venues/kalshi/adapter.ts';
import { outcomeIdsOf } from '../../../../src/venues/kalshi/tickers.ts';
import type { VenueObserver } from '../../../../src/venues/observer.ts';
import type { VenueAdapter } from '../../../../src/venues/port.ts';
import { pollMarkets } from '../../../../workers/jobs/poll-markets.ts';
import { pollPrices } from '../../../../workers/jobs/poll-prices.ts';
import { useTestDatabase } from '../../../support/postgres/database.ts';
import { type ContextFields, capturedLog, jobContext, LosableDatabase, testConfig, until } from '../worker-harness.ts';

const PRICED = sql(
  'test_priced_outcomes',
  'SELECT t.mint, l.price, l.bid, l.ask FROM latest_price l JOIN token t ON t.id = l.token_id ORDER BY t.mint',
);
const POSITION = sql('test_sweep_position', `SELECT position FROM poll_state WHERE kind = 'prices'`);
const END_LEASE = sql('test_end_sweep_lease', `UPDATE poll_state SET lease_until = now() - interval '1 ms'`);
const FORGET_PRICES = sql('test_forget_prices', 'TRUNCATE latest_price, price_history, observation, mark');
const FORGET_POSITION = sql('test_forget_position', `DELETE FROM poll_state WHERE kind = 'prices'`);
const FORGET_CATALOG = sql('test_forget_catalog', 'TRUNCATE market, outcome, market_stats, token, poll_state CASCADE');

interface Position {
  tally: { startedAtMs: number; pages: number; markets: number; changed: number; skipped: number };
  parts: { part: { listing: string; pages: number; cursor?: string }; more: boolean }[];
}

const PAGE = 10;
const MARKETS = 300;

const test = useTestDatabase();
let exchange: Exchange;
let adapter: VenueAdapter;
let answered: (record: RequestRecord) => void = () => undefined;
beforeAll(async () => {
  exchange = await startExchange({
    markets: MARKETS,
    liveMarkets: 24,
    historyHours: 0.1,
    paused: true,
    onAnswered: (_request, record) => answered(record),
  });
  adapter = open();
  await until(
    () => pollMarkets.run({ venue: 'kalshi' }, context()),
    ({ pages }) => Number(pages) <= 3,
  );
});
afterAll(async () => {
  await adapter.close();
  await exchange.close();
});
beforeEach(async () => {
  await test.db.query(FORGET_PRICES);
  await test.db.query(FORGET_POSITION);
});
afterEach(() => {
  answered = () => undefined;
  exchange.clearFaults();
});

/** A new process has a new adapter. */
function open(observer?: VenueObserver, http: Pick<VenueHttpSettings, 'openLedger'> = {}): VenueAdapter {
  return createKalshiAdapter({
    url: exchange.kalshiUrl,
    prices: { marketsPerPage: PAGE },
    http: { requestsPerSecond: 1_000, retryDelayMs: 1, breakerOpenMs: 20, callTimeoutMs: 5_000, ...http },
    ...(observer && { observer }),
  });
}
function context(fields: Partial<ContextFields> = {}) {
  const config = testConfig(test.url, { POLL_PRICES_MS: '600000' });
  return jobContext({ db: test.db, config, adapter, ...fields });
}
const sweep = (fields: Partial<ContextFields> = {}) => pollPrices.run({ venue: 'kalshi' }, context(fields));
const priced = () => test.db.query<{ mint: string; price: string; bid: string | null; ask: string | null }>(PRICED);
async function position(): Promise<Position> {
  const [row] = await test.db.query<{ position: string }>(POSITION);
  return JSON.parse(row?.position ?? 'null');
}
const isComplete = ({ parts }: Position) => parts.every(({ more }) => !more);
const pagesOfWindows = ({ parts }: Position) =>
  parts.filter(({ part }) => part.listing === 'window').map(({ part }) => part.pages);

/** The prices of all tradable markets, requested by their ids. */
async function expectedPrices() {
  const ids = exchange
    .state()
    .markets.filter(({ phase }) => phase === 'open')
    .flatMap((market) => Object.values(outcomeIdsOf(tickerOf(market))));
  const { records } = await adapter.fetchPrices(ids, { signal: new AbortController().signal, now: Date.now });
  return records
    .map(({ outcomeId, price, bid, ask }) => ({ mint: outcomeId, price, bid: bid ?? null, ask: ask ?? null }))
    .sort((a, b) => (a.mint < b.mint ? -1 : 1));
}

describe('a price sweep over the list of a venue', () => {
  it('stores the same prices as requests by ids, and gives its windows equal numbers of pages the next time', async () => {
    const { log, lines } = capturedLog();
    const used = context({ log });
    const { pages } = await pollPrices.run({ venue: 'kalshi' }, used);
    const first = await position();
    expect(await priced()).toEqual(await expectedPrices());
    const { markets, skipped, changed } = first.tally;
    expect(first.tally.pages).toBe(pages);
    expect(isComplete(first)).toBe(true);
    const line = lines.map((each) => JSON.parse(each)).find(({ msg }) => msg === 'price sweep complete');
    expect(line).toMatchObject({ venue: 'kalshi', pages, markets, skipped, seconds: expect.any(Number) });
    expect(line.changed).toBeGreaterThanOrEqual(changed);
    expect(await used.metrics.registry.metrics()).toMatch(/oddswire_price_sweep_seconds\{venue="kalshi".*\} \d/);

    await sweep();
    const second = await position();
    expect(await priced()).toEqual(await expectedPrices());
    expect(Math.max(...pagesOfWindows(second))).toBeLessThan(Math.max(...pagesOfWindows(first)));
    expect(pagesOfWindows(second).length).toBeGreaterThanOrEqual(6);
  });

  it('keeps four requests in flight', async () => {
    await sweep();
    exchange.addFault({ host: 'kalshi', path: '/trade-api/v2/markets', kind: 'latency', latencyMs: 30 });
    const finished: RequestRecord[] = [];
    answered = (record) => finished.push(record);
    await sweep();
    const atOnce = finished.map(
      ({ startedAtMs }) =>
        finished.filter((other) => other.startedAtMs <= startedAtMs && Number(other.endedAtMs) > startedAtMs).length,
    );
    expect(Math.max(...atOnce)).toBe(4);
  });

  it('loses no page when its process dies at the commit of every second page', async () => {
    await sweep();
    await test.db.query(FORGET_PRICES);
    const { partitions } = context();
    await partitions.ensureAroundNow('price_history');
    await partitions.ensureAroundNow('observation');
    let before = await position();
    const { startedAtMs } = before.tally;
    let lives = 0;
    for (let isDone = false; !isDone; lives += 1) {
      const db = new LosableDatabase(test.db.dataSource);
      db.loseAtCommit = (transaction) => transaction >= 2;
      const process = open();
      const life = sweep({ db, partitions, adapter: process });
      isDone = await life.then(
        () => true,
        (error: Error) => {
          expect(error.message).toContain('terminating connection');
          return false;
        },
      );
      await process.close();
      await test.db.query(END_LEASE);
      const after = await position();
      if (lives > 0) expect(after.tally.startedAtMs).toBe(before.tally.startedAtMs);
      // Pages without news have no commit.
      expect(after.tally.pages).toBeGreaterThanOrEqual(lives === 0 ? 1 : before.tally.pages + 1);
      before = after;
    }
    expect(before.tally.startedAtMs).toBeGreaterThan(startedAtMs);
    expect(isComplete(before)).toBe(true);
    expect(lives).toBeGreaterThan(20);
    expect(await priced()).toEqual(await expectedPrices());
  });

  it.each(['repeat_cursor', 'expired_cursor'] as const)('restarts only the window of a %s', async (kind) => {
    await sweep();
    await test.db.query(FORGET_PRICES);
    const { tally } = await position();
    exchange.addFault({ host: 'kalshi', path: '/trade-api/v2/markets', kind, count: 12 });
    await sweep();
    const after = await position();
    expect(isComplete(after)).toBe(true);
    expect(after.tally.pages).toBeLessThan(2 * tally.pages);
    expect(await priced()).toEqual(await expectedPrices());
  });

  it('slows down after a 429 without Retry-After, and completes', async () => {
    const rates: number[] = [];
    const openLedger = (terms: BudgetTerms): RateLedger => {
      const ledger = createMemoryLedger(terms);
      return {
        ...ledger,
        async limited(takenAt) {
          const state = await ledger.limited(takenAt);
          rates.push(state.rate);
          return state;
        },
      };
    };
    const process = open(undefined, { openLedger });
    exchange.addFault({ host: 'kalshi', path: '/trade-api/v2/markets', kind: 'status429', count: 3 });
    await until(
      async () => {
        await sweep({ adapter: process });
        return position();
      },
      (at) => at !== null && isComplete(at),
    );
    await process.close();
    expect(rates[0]).toBe(500);
    expect(await priced()).toEqual(await expectedPrices());
  });

  it('goes on with the other parts after a page that fails, and ends without that part', async () => {
    const { log, lines } = capturedLog();
    exchange.addFault({
      host: 'kalshi',
      path: '/trade-api/v2/markets',
      kind: 'bad_member',
      members: { ids: ['paused'] },
    });
    const after = await until(async () => {
      await sweep({ log });
      return position();
    }, isComplete);
    expect(after.tally).toMatchObject({ failed: 1 });
    expect(lines.join()).toContain('price sweep ended with unread prices');
    const open = after.parts.filter(({ part }) => part.listing === 'window');
    expect(open.length).toBeGreaterThan(1);
    expect(open.every(({ part }) => part.pages > 0)).toBe(true);
    expect((await priced()).length).toBeGreaterThan(MARKETS);
    exchange.clearFaults();
  });

  it('ends the tick at an outage of the host, and continues at its position afterwards', async () => {
    const failing = { host: 'kalshi', path: '/trade-api/v2/markets', kind: 'reset' } as const;
    let answers = 0;
    answered = () => {
      answers += 1;
      if (answers === 12) exchange.addFault(failing);
    };
    expect(await sweep()).toEqual({ failed: expect.any(String) });
    const during = await position();
    expect(during.tally.pages).toBeGreaterThanOrEqual(8);
    expect(isComplete(during)).toBe(false);
    const stored = await priced();
    expect(await sweep()).toHaveProperty('failed');
    expect(await position()).toEqual(during);
    expect(await priced()).toEqual(stored);
    exchange.clearFaults();
    const after = await until(async () => {
      await sweep();
      return position();
    }, isComplete);
    expect(after.tally.startedAtMs).toBe(during.tally.startedAtMs);
    expect(await priced()).toEqual(await expectedPrices());
  });
});

it('a price sweep skips and counts markets that are not stored', async () => {
  await test.db.query(FORGET_CATALOG);
  const used = context();
  expect(await pollPrices.run({ venue: 'kalshi' }, used)).toMatchObject({ records: 0, written: 0 });
  const { tally } = await position();
  expect(tally.markets).toBeGreaterThan(MARKETS / 2);
  expect(tally.skipped).toBeGreaterThan(tally.markets);
  expect(await priced()).toEqual([]);
  const metrics = await used.metrics.registry.metrics();
  expect(metrics).toContain(`reason="unknown_market",process="test"} ${tally.skipped}`);
});
