import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { enabledVenues } from '../../../../api/reads/venue-catalog.ts';
import { newToken } from '../../../../src/domain/values/ids.ts';
import { acquirePollLease, advancePoll } from '../../../../src/store/catalog/poll-state.ts';
import { sql } from '../../../../src/store/db/tx.ts';
import {
  advanceTradeHistory,
  chargeTradeHistory,
  nextTradeHistory,
  type OpenHistory,
} from '../../../../src/store/series/trade-walks.ts';
import { backfillTrades } from '../../../../workers/jobs/backfill-trades.ts';
import { aWitness } from '../../../factories/completeness.ts';
import { aStoredMarket, type TestMarket } from '../../../factories/stored-market.ts';
import { storedTrades } from '../../../factories/stored-series.ts';
import { aTrade } from '../../../factories/trades.ts';
import { scriptedAdapter } from '../../../factories/venue-adapter.ts';
import { GUARD_MS } from '../../../support/eventually.ts';
import { jobContext, testConfig } from '../../workers/worker-harness.ts';
import { type Answer, type Client, startTestApi, type TestApi } from '../api-harness.ts';

const SET_LIVE = sql(
  'test_set_live',
  `UPDATE poll_state SET first_success_at = $1, caught_up_at = $2 WHERE venue = 'polymarket' AND kind = 'trades'`,
);
const CLEAR = sql('test_clear_histories', 'TRUNCATE trade_history');
const HISTORY_ROWS = sql(
  'test_history_rows',
  `SELECT xmin::text, status, from_at, to_at FROM trade_history WHERE market_id = $1`,
);
const LISTENING = sql(
  'test_listening',
  `SELECT FROM pg_stat_activity WHERE datname = current_database() AND state = 'idle' AND query = 'LISTEN oddswire_arrival'`,
);
const BEGAN_EARLIER = sql('test_began_earlier', 'UPDATE market SET created_at = $2 WHERE id = $1');
const END_RETRY = sql('test_end_retry', `UPDATE trade_history SET touched_at = touched_at - interval '10 min'`);

const NOW = 1_764_001_234;
const DAY = 86_400;
/** Live polls cover the venue since this moment; reads show the next millisecond. */
const LIVE = NOW - DAY;
const BEGAN = NOW - 30 * DAY;
const COVERED_FROM_LIVE = LIVE + 1;
/** The minute of the state that was read. */
const COVERED_TO = NOW - (NOW % 60);

/** Starts the API for a venue with live polls since LIVE. */
async function startFollowing(coldWaitMs: number): Promise<TestApi> {
  const started = await startTestApi({ coldWaitMs });
  started.clock.nowMs = NOW * 1000;
  const lease = await acquirePollLease(started.db, 'polymarket', 'trades', newToken());
  if (!lease) throw new Error('not acquired');
  await advancePoll(started.db, lease, null);
  await readTapeTo(started, NOW);
  return started;
}

/** The tape was read without a gap up to this second. */
async function readTapeTo({ db }: Pick<TestApi, 'db'>, second: number): Promise<void> {
  await db.query(SET_LIVE, [new Date(LIVE * 1000).toISOString(), new Date(second * 1000).toISOString()]);
}

let api: TestApi;
let client: Client;
beforeAll(async () => {
  // A short wait, because no page arrives.
  api = await startFollowing(30);
  client = await api.client();
});
afterAll(() => api.close());
beforeEach(async () => {
  await api.db.query(CLEAR);
  api.wakes.length = 0;
});

const oldMarket = (db = api.db) => aStoredMarket(db, { createdAt: new Date(BEGAN * 1000) });
const get = (market: TestMarket, path: string) => client.market(`/v1/all/markets/${market.marketId}/${path}`);
const rowsOf = ({ pk }: TestMarket) => api.db.query<Record<string, unknown>>(HISTORY_ROWS, [pk]);
const historyIn = (answer: Answer) => answer.body.meta.history;
const wake = { job: 'backfill-trades', targets: [], data: { venue: 'polymarket' } };

async function walk(): Promise<OpenHistory> {
  const next = await nextTradeHistory(api.db, 'polymarket');
  if (!next) throw new Error('no walk is due');
  return next;
}
const step = (reached: number, isDone = false) => ({ position: null, reachedMs: reached * 1000, isDone });

describe('a read below the stored range', () => {
  it.each([
    ['candles', `candles?start=${BEGAN}&interval=1h`],
    ['candles of the default range', 'candles'],
    ['volume', `volume?start=${LIVE - 10}&end=${NOW}`],
    ['trades from a start', `trades?start=${LIVE - 1}`],
    ['trades from the oldest', 'trades?direction=asc'],
    ['trades without a start that end at the stored range', 'trades'],
  ])('requests a backfill: %s', async (_name, path) => {
    const market = await oldMarket();
    const answer = await get(market, path);
    expect(historyIn(answer)).toEqual({
      status: 'backfilling',
      covered_from: COVERED_FROM_LIVE,
      covered_to: COVERED_TO,
      trades: 0,
      requested_at: expect.any(Number),
    });
    expect(await rowsOf(market)).toEqual([
      expect.objectContaining({
        status: 'queued',
        fromAt: new Date(BEGAN * 1000),
        toAt: new Date(LIVE * 1000 + 1),
      }),
    ]);
    expect(api.wakes).toEqual([wake]);
    expect(answer.headers.get('cache-control')).toBe('private, max-age=1');
  });

  it('requests trades back to the retention limit when the start of the market is unknown', async () => {
    const market = await aStoredMarket(api.db);
    await get(market, 'trades');
    expect(await rowsOf(market)).toMatchObject([{ fromAt: new Date((NOW - 3_650 * DAY) * 1000) }]);
  });

  it('waits for the first page and includes it in the answer', async () => {
    const patient = await startFollowing(20_000);
    try {
      const market = await oldMarket(patient.db);
      const caller = await patient.client();
      await vi.waitFor(async () => expect(await patient.db.query(LISTENING)).toHaveLength(1), {
        timeout: GUARD_MS,
        interval: 10,
      });
      const path = `/v1/all/markets/${market.marketId}/trades?start=${BEGAN}`;
      // Concurrent reads cause one request and both wait; an open-ended read queries the trades again.
      const openEnded = `/v1/all/markets/${market.marketId}/trades`;
      const answers = Promise.all([caller.market(path), caller.market(openEnded)]);
      await vi.waitFor(() => expect(patient.wakes).toEqual([wake]), { timeout: GUARD_MS, interval: 10 });
      const outcomeId = market.outcomes[0]?.outcomeId ?? '';
      const tsMs = (LIVE - 100) * 1000;
      const adapter = scriptedAdapter({
        venue: 'polymarket',
        history: async ({ fromMs }, position) => ({
          records: position === null ? [aTrade({ tradeId: 'old', outcomeId, tsMs })] : [],
          rejected: [],
          position: 1,
          more: position === null,
          reachedMs: position === null ? tsMs : fromMs,
        }),
      });
      const config = testConfig('postgres://nobody@localhost/none');
      const context = jobContext({ db: patient.db, config, adapter, now: () => NOW * 1000 });
      await backfillTrades.run({ venue: 'polymarket' }, context);
      for (const answer of await answers) {
        expect(answer.body.data).toMatchObject([{ trade_id: 'old', timestamp: LIVE - 100 }]);
        expect(historyIn(answer)).toMatchObject({ trades: 1 });
      }
      expect(patient.wakes).toEqual([wake]);
      // A later read does not wait.
      expect(historyIn(await caller.market(path))).toMatchObject({
        status: 'complete',
        covered_from: BEGAN,
        trades: 1,
      });
    } finally {
      await patient.close();
    }
  });

  it('reports the progress and the result of the backfill', async () => {
    const market = await oldMarket();
    await get(market, 'candles');
    await advanceTradeHistory(api.db, await walk(), step(LIVE - 5 * DAY));
    const progress = await get(market, `candles?interval=1h&start=${BEGAN}&end=${LIVE - 20 * DAY}`);
    expect(historyIn(progress)).toMatchObject({ status: 'backfilling', covered_from: LIVE - 5 * DAY });
    expect(progress.headers.get('cache-control')).toBe('private, max-age=1');
    await advanceTradeHistory(api.db, await walk(), step(BEGAN, true));
    const complete = await get(market, `candles?interval=1h&start=${BEGAN}&end=${LIVE - 20 * DAY}`);
    expect(historyIn(complete)).toMatchObject({ status: 'complete', covered_from: BEGAN });
    expect(complete.headers.get('cache-control')).toBe('private, max-age=60');
    expect(api.wakes).toEqual([wake]);
  });

  it('reports the reason and the covered range of a failed or truncated backfill', async () => {
    const [failed, short] = [await oldMarket(), await oldMarket()];
    await get(failed, 'candles');
    for (let failure = 1; failure <= 5; failure++) {
      await chargeTradeHistory(api.db, await walk(), 'the venue answered 404');
      await api.db.query(END_RETRY);
    }
    expect(historyIn(await get(failed, 'candles'))).toMatchObject({
      status: 'partial',
      covered_from: COVERED_FROM_LIVE,
      reason: 'the venue answered 404',
    });
    await get(short, 'candles');
    await advanceTradeHistory(api.db, await walk(), { ...step(LIVE - DAY, true), truncated: 'no more than 10,000' });
    expect(historyIn(await get(short, 'candles'))).toMatchObject({
      status: 'partial',
      covered_from: LIVE - DAY,
      reason: 'no more than 10,000',
    });
    expect(api.wakes).toHaveLength(2);
  });

  it('requests a second backfill when an earlier start of the market becomes known', async () => {
    const market = await oldMarket();
    await get(market, 'trades');
    await advanceTradeHistory(api.db, await walk(), step(BEGAN, true));
    await api.db.query(BEGAN_EARLIER, [market.pk, new Date((BEGAN - DAY) * 1000).toISOString()]);
    expect(historyIn(await get(market, `trades?start=${BEGAN}`))).toMatchObject({
      status: 'partial',
      covered_from: BEGAN,
    });
    expect(historyIn(await get(market, `trades?start=${BEGAN - 1}`))).toMatchObject({
      status: 'backfilling',
      covered_from: BEGAN,
    });
    expect(await rowsOf(market)).toMatchObject([
      { fromAt: new Date((BEGAN - DAY) * 1000), toAt: new Date(BEGAN * 1000) },
    ]);
    expect(api.wakes).toHaveLength(2);
  });
});

describe('a read within the stored range', () => {
  it.each([
    ['candles', `candles?start=${LIVE + 10}&interval=1m&end=${NOW}`],
    ['volume', `volume?start=${LIVE + 10}`],
    ['trades from a start', `trades?start=${LIVE + 1}`],
    ['a page of trades with more pages', 'trades?limit=1'],
    ['candles before the start of the market', `candles?start=${BEGAN - 2 * DAY}&end=${BEGAN}`],
  ])('reports the coverage and requests nothing: %s', async (_name, path) => {
    const market = await oldMarket();
    const tokenId = market.outcomes[0]?.tokenId ?? 0n;
    const at = new Date((LIVE + 60) * 1000);
    await storedTrades(
      api.db,
      ['a', 'b'].map((tradeId) => ({ tokenId, at, tradeId })),
    );
    expect(historyIn(await get(market, path))).toEqual({
      status: 'partial',
      covered_from: COVERED_FROM_LIVE,
      covered_to: COVERED_TO,
    });
    expect(await rowsOf(market)).toEqual([]);
    expect(api.wakes).toEqual([]);
  });

  it('is complete for a market that started during live polls', async () => {
    const createdAt = new Date((LIVE + 10) * 1000);
    const market = await aStoredMarket(api.db, { createdAt });
    for (const path of ['trades', 'trades?direction=asc', `candles?start=${BEGAN}`, 'volume']) {
      const covered = { covered_from: LIVE + 10, covered_to: COVERED_TO };
      expect(historyIn(await get(market, path))).toEqual({ status: 'complete', ...covered });
    }
    expect([await rowsOf(market), api.wakes]).toEqual([[], []]);
  });

  it('begins and ends its covered time at the start of a market that is younger than a minute', async () => {
    const market = await aStoredMarket(api.db, { createdAt: new Date((NOW - 5) * 1000) });
    expect(historyIn(await get(market, 'trades'))).toEqual({
      status: 'complete',
      covered_from: NOW - 5,
      covered_to: NOW - 5,
    });
  });

  it('reports a venue that has not been polled, or that offers no older trades', async () => {
    const profile = enabledVenues(['polymarket'], { markets: 1, prices: 1, books: 1, trades: 1 })[0];
    if (!profile) throw new Error('no such venue');
    const capabilities = { ...profile.capabilities, history: false };
    const other = await startTestApi({ venues: [{ ...profile, capabilities }] });
    try {
      const market = await oldMarket(other.db);
      const caller = await other.client();
      const path = `/v1/all/markets/${market.marketId}/trades`;
      expect(historyIn(await caller.market(path))).toEqual({
        status: 'partial',
        reason: 'the venue has not been polled yet',
      });
      const lease = await acquirePollLease(other.db, 'polymarket', 'trades', newToken());
      if (!lease) throw new Error('not acquired');
      await advancePoll(other.db, lease, null);
      expect(historyIn(await caller.market(path))).toMatchObject({
        status: 'partial',
        reason: 'the venue offers no older trades',
      });
      expect(other.wakes).toEqual([]);
    } finally {
      await other.close();
    }
  });

  it('is partial when the retention has deleted older trades', async () => {
    const market = await aStoredMarket(api.db, { createdAt: new Date((NOW - 4_000 * DAY) * 1000) });
    await get(market, 'trades');
    await advanceTradeHistory(api.db, await walk(), step(NOW - 3_650 * DAY, true));
    expect(historyIn(await get(market, 'trades'))).toMatchObject({
      status: 'partial',
      covered_from: NOW - 3_650 * DAY,
      reason: 'older trades are not kept',
    });
    expect(api.wakes).toHaveLength(1);
  });
});

describe('a read of an already requested range', () => {
  it('writes nothing in any state of the backfill', async () => {
    const market = await oldMarket();
    await get(market, 'trades');
    const readAll = async () => {
      for (const path of ['trades', 'trades?direction=asc', 'candles', 'volume', `candles?start=${BEGAN}`]) {
        expect((await get(market, path)).status).toBe(200);
      }
    };
    for (const move of [
      async () => undefined,
      async () => void (await advanceTradeHistory(api.db, await walk(), step(LIVE - DAY))),
      async () => void (await advanceTradeHistory(api.db, await walk(), step(BEGAN, true))),
    ]) {
      await move();
      const before = await rowsOf(market);
      const query = vi.spyOn(api.db, 'query');
      const transaction = vi.spyOn(api.db, 'transaction');
      await readAll();
      const statements = query.mock.calls.map(([statement]) => statement);
      expect([query.mock.calls.length > 0, transaction.mock.calls]).toEqual([true, []]);
      query.mockRestore();
      transaction.mockRestore();
      const writing = statements.filter(
        ({ text, name }) => !/^\s*(SELECT|WITH)/.test(text) && name !== 'note_market_reads',
      );
      expect(writing.map(({ name }) => name)).toEqual([]);
      expect(await rowsOf(market)).toEqual(before);
    }
    expect(api.wakes).toEqual([wake]);
  });
});

describe('a venue', () => {
  it('is as healthy as its scheduled polls, independent of backfills', async () => {
    await api.db.query(
      sql(
        'test_failing_history',
        `INSERT INTO poll_state (venue, kind, consecutive_failures, last_error) VALUES ('polymarket', 'history', 9, 'too slow')`,
      ),
    );
    await api.db.query(sql('test_fresh_polls', `UPDATE poll_state SET last_success_at = $1 WHERE kind = 'trades'`), [
      new Date(NOW * 1000 - 3_000).toISOString(),
    ]);
    const others = sql(
      'test_other_polls',
      `INSERT INTO poll_state (venue, kind, last_success_at) SELECT 'polymarket', kind, $1 FROM unnest($2::text[]) AS k (kind)`,
    );
    await api.db.query(others, [new Date(NOW * 1000 - 3_000).toISOString(), ['markets', 'prices', 'books']]);
    const answer = await client.market('/v1/venues');
    expect(answer.body.data).toMatchObject([
      { healthy: true, lag_seconds: 3, failing: [{ kind: 'history', failures: 9, reason: 'too slow' }] },
    ]);
  });
});

describe('a read while the polls of trades fail', () => {
  const liveBorn = (more: Partial<Parameters<typeof aStoredMarket>[1]> = {}) =>
    aStoredMarket(api.db, { createdAt: new Date((LIVE + 10) * 1000), ...more });
  const BEHIND = NOW - 37 * 60;

  it('is not complete, and states the time up to which it is', async () => {
    const market = await liveBorn();
    await readTapeTo(api, BEHIND);
    for (const path of ['trades', 'candles', 'volume']) {
      expect(historyIn(await get(market, path))).toEqual({
        status: 'partial',
        covered_from: LIVE + 10,
        covered_to: BEHIND - (BEHIND % 60),
        reason: 'the reading of new trades is behind: trades after covered_to may be missing',
      });
    }
    expect([await rowsOf(market), api.wakes]).toEqual([[], []]);
    await readTapeTo(api, NOW);
    expect(historyIn(await get(market, 'trades'))).toMatchObject({ status: 'complete', covered_to: COVERED_TO });
  });

  it('is kept briefly by caches behind the time up to which it is complete', async () => {
    const market = await liveBorn();
    await readTapeTo(api, BEHIND);
    const cacheOf = async (path: string) => (await get(market, path)).headers.get('cache-control');
    expect(await cacheOf(`candles?interval=1m&start=${BEHIND}&end=${NOW - 600}`)).toBe('private, max-age=1');
    expect(await cacheOf(`candles?interval=1m&start=${BEHIND - 600}&end=${BEHIND}`)).toBe('private, max-age=60');
    await readTapeTo(api, NOW - 7_200);
    expect(await cacheOf(`trades?start=${NOW - 9_000}&end=${NOW - 4_000}`)).toBe('private, max-age=1');
    expect(await cacheOf(`trades?start=${NOW - 9_000}&end=${NOW - 7_300}`)).toBe('private, max-age=60');
    await readTapeTo(api, NOW);
  });

  it('stays complete for a market that ended before', async () => {
    const ended = await liveBorn({ status: 'resolved', resolvedAt: new Date((BEHIND - 60) * 1000) });
    const later = await liveBorn({ status: 'resolved', resolvedAt: new Date((BEHIND + 60) * 1000) });
    await readTapeTo(api, BEHIND);
    expect(historyIn(await get(ended, 'trades'))).toMatchObject({ status: 'complete' });
    expect(historyIn(await get(later, 'trades'))).toMatchObject({ status: 'partial' });
    await readTapeTo(api, NOW);
  });

  it.each([
    ['a proven loss', { venueVolume: '300', storedVolume: '299.9', missingSince: new Date(NOW * 1000) }, 'partial'],
    ['a share of 0 that proves no loss', { venueVolume: '0.8', storedVolume: '0' }, 'partial'],
    ['a difference within the tolerance', { venueVolume: '300', storedVolume: '299.9' }, 'complete'],
  ])('does not contradict the comparison of the volume: %s', async (_, volumes, status) => {
    const market = await liveBorn();
    const times = { since: new Date(LIVE * 1000), comparedAt: new Date(NOW * 1000) };
    await aWitness(api.db, market.pk, { venue: 'polymarket', ...times, ...volumes });
    expect(historyIn(await get(market, 'trades'))).toMatchObject({ status });
  });
});
