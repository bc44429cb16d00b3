import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { createColdBooks } from '../../../../api/reads/cold-read.ts';
import { decimal } from '../../../../src/domain/values/decimal.ts';
import { createLogger } from '../../../../src/observe/logger.ts';
import { createQueueBackend } from '../../../../src/queues/backend.ts';
import { type Arrivals, createArrivals } from '../../../../src/store/catalog/arrivals.ts';
import type { MarketTokens } from '../../../../src/store/catalog/market-reads.ts';
import { sql } from '../../../../src/store/db/tx.ts';
import { VenueError } from '../../../../src/venues/errors.ts';
import { fetchBook } from '../../../../workers/jobs/fetch-book.ts';
import { createProcessor } from '../../../../workers/process/define.ts';
import { aStoredMarket, type TestMarket } from '../../../factories/stored-market.ts';
import { aStoredBook } from '../../../factories/stored-series.ts';
import { type Script, scriptedAdapter } from '../../../factories/venue-adapter.ts';
import { gate } from '../../../support/gate.ts';
import { jobContext, testConfig, until } from '../../workers/worker-harness.ts';
import { type Client, useTestApi } from '../api-harness.ts';

const MAX_IN_FLIGHT = 32;

const UNSEEN = sql(
  'test_book_unseen',
  `UPDATE book_latest SET received_at = now() - $2::float8 * interval '1 second' WHERE token_id = $1`,
);
const log = createLogger({ process: 'test', level: 'silent' });

const books: NonNullable<Script['books']> = async (ids) => ({
  records: ids.map((outcomeId) => ({
    outcomeId,
    asOfMs: Date.now(),
    bids: [{ price: decimal('0.4'), size: decimal('5') }],
    asks: [{ price: decimal('0.6'), size: decimal('5') }],
  })),
  rejected: [],
});
/** The venue's answer, set per test. */
let venue: NonNullable<Script['books']> = books;
const adapter = scriptedAdapter({ venue: 'polymarket', books: (ids, call) => venue(ids, call) });

/** Longer than the test timeout, so that a missing announcement fails the test. */
const NEVER_MS = 60_000;
let waitMs = NEVER_MS;
let arrivals: Arrivals;
const api = useTestApi({ arrivals: { waitFor: (key) => arrivals.waitFor(key, waitMs) } });
let client: Client;
let stop: () => Promise<void>;
beforeAll(async () => {
  client = await api.client();
  arrivals = createArrivals(api.databaseUrl, log);
  await arrivals.ready();
  const backend = createQueueBackend({ databaseUrl: api.databaseUrl, prefix: 'test', workers: 1, log });
  const context = jobContext({ db: api.db, config: testConfig(api.databaseUrl), adapter });
  const worker = backend.worker('venue-polymarket', createProcessor([fetchBook], context), 4);
  worker.on('error', () => undefined);
  void worker.run();
  await worker.waitUntilReady();
  stop = async () => {
    await worker.close();
    await backend.close();
  };
});
afterAll(async () => {
  await stop();
  await arrivals.close();
});
afterEach(() => {
  venue = books;
  waitMs = NEVER_MS;
  adapter.batches.splice(0);
  api.wakes.splice(0);
});

const tokenOf = ({ outcomes: [first] }: TestMarket) => first?.tokenId ?? 0n;
const read = ({ marketId }: TestMarket) => client.market(`/v1/polymarket/markets/${marketId}/orderbook`);
async function aMarketUnseenFor(seconds: number, over: Parameters<typeof aStoredMarket>[1] = {}): Promise<TestMarket> {
  const market = await aStoredMarket(api.db, over);
  await aStoredBook(api.db, tokenOf(market), { asOf: new Date(1_000_000), bids: [['0.1', '1']], asks: [] });
  await api.db.query(UNSEEN, [tokenOf(market), seconds]);
  return market;
}
const idsOf = ({ outcomes }: TestMarket) => outcomes.map(({ outcomeId }) => outcomeId);

describe('an unpolled book', () => {
  it('is not fetched when too many fetches are in flight, so that a catalog reader cannot use up the request rate', async () => {
    const arrived = gate();
    let wakes = 0;
    const cold = createColdBooks({
      arrivals: { waitFor: () => arrived.opened.then(() => true) },
      producer: {
        wake() {
          wakes += 1;
        },
      },
      now: Date.now,
    });
    const market = (pk: number): MarketTokens => ({
      pk: BigInt(pk),
      venue: 'polymarket',
      marketId: `m${pk}`,
      status: 'open',
      hasBook: true,
      closeAt: null,
      resolvedAt: null,
      outcomes: [],
    });
    let paid = 0;
    const paying = {
      waitMs: NEVER_MS,
      take() {
        paid += 1;
        return true;
      },
    };
    const read = (pk: number) => {
      const facts = { liveMs: null, caughtUpMs: null, beganMs: null, history: null, witness: null };
      const none = { market: market(pk), book: null, gaps: [], fee: null, facts, stamp: { epoch: '', seq: 0 } };
      return cold.refreshed(none, async () => none, paying);
    };
    const readAll = () => Array.from({ length: MAX_IN_FLIGHT }, (_, pk) => read(pk));
    // The second read of each market waits for the job of the first.
    const waiting = Promise.all([...readAll(), ...readAll()]);
    expect((await read(MAX_IN_FLIGHT)).book).toBeNull();
    expect(wakes).toBe(MAX_IN_FLIGHT);
    arrived.open();
    await waiting;
    await read(MAX_IN_FLIGHT);
    expect(paid).toBe(MAX_IN_FLIGHT + 1);
    expect(wakes).toBe(MAX_IN_FLIGHT + 1);
  });

  it('is fetched once for concurrent reads', async () => {
    const market = await aStoredMarket(api.db);
    const requested = gate();
    venue = async (ids, call) => {
      await requested.opened;
      return books(ids, call);
    };
    const answers = Promise.all(Array.from({ length: 8 }, () => read(market)));
    // The second outcome waits for the same job.
    const other = client.market(
      `/v1/polymarket/markets/${market.marketId}/orderbook?outcome_id=${market.outcomes[1]?.outcomeId}`,
    );
    requested.open();
    for (const { status, body } of [...(await answers), await other]) {
      expect([status, body.data]).toMatchObject([200, { best_bid: 0.4, best_ask: 0.6 }]);
    }
    expect(adapter.batches).toEqual([idsOf(market)]);
    expect(api.wakes).toEqual([
      { job: 'fetch-book', targets: [], data: { venue: 'polymarket', marketPk: String(market.pk) } },
    ]);
    await read(market);
    expect(api.wakes).toHaveLength(1);
  });

  it('is fetched again only after a minute without a sighting', async () => {
    const fresh = await aMarketUnseenFor(50);
    expect((await read(fresh)).body.data).toMatchObject({ as_of: 1_000, best_bid: 0.1 });
    expect(adapter.batches).toEqual([]);
    const stale = await aMarketUnseenFor(61);
    expect((await read(stale)).body.data).toMatchObject({ best_bid: 0.4 });
    expect(adapter.batches).toEqual([idsOf(stale)]);
  });

  it('is requested once in five seconds when the venue has none, and reads do not wait for it', async () => {
    venue = async () => ({ records: [], rejected: [] });
    const market = await aStoredMarket(api.db);
    for (let time = 0; time < 3; time++) {
      const { status, headers, body } = await read(market);
      expect([status, body.error.code, headers.get('retry-after')]).toEqual([404, 'orderbook_not_available', '5']);
    }
    expect(adapter.batches).toHaveLength(1);
    api.clock.nowMs += 4_900;
    await read(market);
    expect(adapter.batches).toHaveLength(1);
    api.clock.nowMs += 200;
    venue = books;
    expect((await read(market)).status).toBe(200);
    expect(adapter.batches).toHaveLength(2);
  });

  it('is the stored book or a Retry-After after the wait when the venue is down', async () => {
    venue = () => Promise.reject(new VenueError('polymarket', 'timeout', 'too slow', { retryable: true }));
    waitMs = 200;
    const [absent, stale] = [await aStoredMarket(api.db), await aMarketUnseenFor(3_600)];
    const [none, old] = await Promise.all([read(absent), read(stale)]);
    expect([none.status, none.headers.get('retry-after')]).toEqual([404, '5']);
    expect([old.status, old.body.data]).toMatchObject([200, { as_of: 1_000, best_bid: 0.1 }]);
    // No read waited for the request to the venue.
    await until(
      async () => adapter.batches.length,
      (count) => count === 2,
    );
  });

  it('is not requested when the venue cannot have it', async () => {
    const over = await aMarketUnseenFor(3_600, { status: 'resolved' });
    expect((await read(over)).body.data).toMatchObject({ as_of: 1_000 });
    const bookless = await aStoredMarket(api.db, { hasBook: false });
    const { status, headers } = await read(bookless);
    expect([status, headers.get('retry-after')]).toEqual([404, null]);
    expect([adapter.batches, api.wakes]).toEqual([[], []]);
  });
});
