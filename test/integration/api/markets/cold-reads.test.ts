import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { createAccountLimits } from '../../../../api/access/account-limits.ts';
import { createAnswerCache } from '../../../../api/reads/answer-cache.ts';
import { newToken } from '../../../../src/domain/values/ids.ts';
import { createLogger } from '../../../../src/observe/logger.ts';
import { createApiKey } from '../../../../src/store/accounts/accounts.ts';
import { setAccountQuotas } from '../../../../src/store/accounts/quotas.ts';
import { acquirePollLease, advancePoll } from '../../../../src/store/catalog/poll-state.ts';
import { sql } from '../../../../src/store/db/tx.ts';
import { aStoredMarket, type TestMarket } from '../../../factories/stored-market.ts';
import { aStoredBook } from '../../../factories/stored-series.ts';
import { gate } from '../../../support/gate.ts';
import { until } from '../../workers/worker-harness.ts';
import { type Answer, startTestApi, type TestApi } from '../api-harness.ts';

const UNSEEN = sql(
  'test_book_old',
  `UPDATE book_latest SET received_at = now() - interval '2 minutes' WHERE token_id = $1`,
);
const NO_BOOK = sql('test_no_book', 'DELETE FROM book_latest WHERE token_id = $1');
const SET_LIVE = sql(
  'test_set_live',
  `UPDATE poll_state SET first_success_at = now() WHERE venue = 'polymarket' AND kind = 'trades'`,
);
const COLD_READS = 2;
const log = createLogger({ process: 'test', level: 'silent' });
const clock = { nowMs: 1_800_000_000_000 };

let api: TestApi;
/** The announcement that a cold read waits for. */
let arrival: () => Promise<boolean> = async () => false;
/** The clock of the cache. */
let elapsedMs = 1;
beforeAll(async () => {
  const limits = createAccountLimits({
    addUsage: async (entries) => entries.map(({ used }) => used),
    defaults: { requests: 0, cold_reads: COLD_READS },
    log,
    now: () => clock.nowMs,
  });
  api = await startTestApi({
    limits,
    arrivals: { waitFor: () => arrival() },
    answers: createAnswerCache({ now: () => elapsedMs }),
    now: () => clock.nowMs,
  });
});
afterEach(() => {
  arrival = async () => false;
  elapsedMs += 10_000;
  clock.nowMs += 60_000;
  api.wakes.length = 0;
});
afterAll(() => api.close());

const tokenOf = ({ outcomes: [first] }: TestMarket) => first?.tokenId ?? 0n;
const bookPath = ({ marketId }: TestMarket) => `/v1/polymarket/markets/${marketId}/orderbook`;
const gist = ({ status, body, headers }: Answer) => ({
  status,
  code: body.error?.code,
  cold: body.meta?.['cold_reads'],
  retryAfter: headers.get('retry-after'),
});
const fetches = () => api.wakes.filter(({ job }) => job === 'fetch-book').length;

async function aClient(coldReads?: number) {
  const accountName = `cold ${Math.random()}`;
  const { key } = await createApiKey(api.db, { accountName, name: 'k', scopes: ['markets:read'] });
  if (coldReads !== undefined) await setAccountQuotas(api.db, accountName, { coldReadsPerMinute: coldReads });
  return (path: string) => api.call(path, { headers: { Authorization: `Bearer ${key}` } });
}
async function anOldBook(): Promise<TestMarket> {
  const market = await aStoredMarket(api.db);
  await aStoredBook(api.db, tokenOf(market), { asOf: new Date(1_000_000), bids: [['0.1', '1']], asks: [] });
  await api.db.query(UNSEEN, [tokenOf(market)]);
  return market;
}

/** Stores a book as a fetch job does. */
async function aFetchedBook(market: TestMarket, bid: string): Promise<void> {
  await api.db.query(NO_BOOK, [tokenOf(market)]);
  await aStoredBook(api.db, tokenOf(market), { asOf: new Date(2_000_000), bids: [[bid, '1']], asks: [] });
}

describe('the cold reads of an account', () => {
  it('answer with stored data and a notice, or with Retry-After, when they are exhausted', async () => {
    const read = await aClient();
    for (let i = 0; i < COLD_READS; i++) await read(bookPath(await aStoredMarket(api.db)));
    expect(fetches()).toBe(COLD_READS);
    const [nothing, old] = [await read(bookPath(await aStoredMarket(api.db))), await read(bookPath(await anOldBook()))];
    expect(fetches()).toBe(COLD_READS);
    expect(gist(nothing)).toMatchObject({
      status: 429,
      code: 'rate_limited',
      retryAfter: expect.stringMatching(/^\d+$/),
    });
    expect(nothing.body.error.message).toContain('cold reads');
    expect(gist(old)).toEqual({ status: 200, code: undefined, cold: 'exhausted', retryAfter: null });
    expect(old.body.data).toMatchObject({ best_bid: 0.1 });
    clock.nowMs += 60_000;
    await read(bookPath(await aStoredMarket(api.db)));
    expect(fetches()).toBe(COLD_READS + 1);
  });

  it('are not counted for reads of stored, past or absent data, or of data that another read fetches', async () => {
    const [read, other] = [await aClient(1), await aClient(1)];
    const [fresh, over] = [await aStoredMarket(api.db), await aStoredMarket(api.db, { status: 'resolved' })];
    await aStoredBook(api.db, tokenOf(fresh), { asOf: new Date(1_000_000), bids: [['0.2', '1']], asks: [] });
    const market = await aStoredMarket(api.db);
    expect(gist(await read(bookPath(fresh)))).toMatchObject({ status: 200, cold: undefined });
    expect(gist(await read(bookPath(over)))).toMatchObject({ status: 404, code: 'orderbook_not_available' });
    expect(gist(await read(`${bookPath(market)}?as_of=1700000000`))).toMatchObject({
      status: 404,
      code: 'no_data_yet',
    });
    const arrived = gate();
    arrival = () => arrived.opened.then(() => true);
    const first = other(bookPath(market));
    await until(
      async () => fetches(),
      (count) => count === 1,
    );
    const joined = read(bookPath(market));
    await aFetchedBook(market, '0.3');
    arrived.open();
    for (const answer of [await first, await joined]) expect(answer.body.data).toMatchObject({ best_bid: 0.3 });
    expect(fetches()).toBe(1);
    // The account still has its cold read.
    await read(bookPath(await aStoredMarket(api.db)));
    expect(fetches()).toBe(2);
  });

  it('are rejected with a quota of 0', async () => {
    const read = await aClient(0);
    expect(gist(await read(bookPath(await anOldBook())))).toMatchObject({ status: 200, cold: 'exhausted' });
    expect(fetches()).toBe(0);
  });

  it('count a backfill once per market', async () => {
    const read = await aClient(1);
    const lease = await acquirePollLease(api.db, 'polymarket', 'trades', newToken());
    if (!lease) throw new Error('not acquired');
    await advancePoll(api.db, lease, null);
    await api.db.query(SET_LIVE);
    const [one, two] = [await aStoredMarket(api.db), await aStoredMarket(api.db)];
    const trades = ({ marketId }: TestMarket) => `/v1/polymarket/markets/${marketId}/trades`;
    const candles = ({ marketId }: TestMarket) =>
      `/v1/polymarket/markets/${marketId}/candles?start=1700000000&end=1700003600`;
    const begun = await read(trades(one));
    expect(begun.body.meta).toMatchObject({ history: { status: 'backfilling' } });
    expect(gist(begun).cold).toBeUndefined();
    // A backfill in flight costs no further cold read.
    expect(gist(await read(candles(one))).cold).toBeUndefined();
    for (const path of [trades(two), candles(two), candles(two).replace('candles', 'volume')]) {
      const answer = await read(path);
      expect(gist(answer)).toMatchObject({ status: 200, cold: 'exhausted' });
      expect(answer.body.meta).toMatchObject({ history: { status: 'partial' } });
    }
    expect(api.wakes.filter(({ job }) => job === 'backfill-trades')).toHaveLength(1);
  });
});

describe('an account without cold reads left', () => {
  it('does not change the answers of concurrent reads by other accounts', async () => {
    const [exhausted, funded] = [await aClient(0), await aClient(10)];
    for (const market of [await anOldBook(), await aStoredMarket(api.db)]) {
      arrival = async () => {
        await aFetchedBook(market, '0.5');
        return true;
      };
      // The exhausted account reads first, so the others wait for its loads.
      const ofExhausted = Array.from({ length: 8 }, () => exhausted(bookPath(market)));
      const answers = await Promise.all([...ofExhausted, funded(bookPath(market)), funded(bookPath(market))]);
      for (const answer of answers.slice(-2)) {
        expect([answer.status, answer.body.data]).toMatchObject([200, { best_bid: 0.5 }]);
        expect(gist(answer).cold).toBeUndefined();
      }
      expect(fetches()).toBe(1);
      api.wakes.length = 0;
    }
  });

  it('adds nothing to the cache, but reads the entries of other accounts', async () => {
    const [exhausted, funded] = [await aClient(0), await aClient(10)];
    const market = await anOldBook();
    expect(gist(await exhausted(bookPath(market))).cold).toBe('exhausted');
    arrival = async () => {
      await aFetchedBook(market, '0.5');
      return true;
    };
    const fetched = await funded(bookPath(market));
    expect([fetched.body.data, gist(fetched).cold]).toMatchObject([{ best_bid: 0.5 }, undefined]);
    await api.db.query(UNSEEN, [tokenOf(market)]);
    for (let i = 0; i < 2; i++) {
      const shared = await exhausted(bookPath(market));
      expect([shared.body.data, gist(shared).cold]).toMatchObject([{ best_bid: 0.5 }, undefined]);
    }
    elapsedMs += 1_001;
    expect(gist(await exhausted(bookPath(market))).cold).toBe('exhausted');
  });

  it('gets its own ETag', async () => {
    const exhausted = await aClient(0);
    const [market, path] = await anOldBook().then((made) => [made, bookPath(made)] as const);
    const own = (await exhausted(path)).headers.get('etag');
    await aFetchedBook(market, '0.1');
    const seen = await exhausted(path);
    expect(gist(seen).cold).toBeUndefined();
    expect(seen.headers.get('etag')).not.toBe(own);
  });
});
