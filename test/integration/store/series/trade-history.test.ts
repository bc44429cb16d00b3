import { beforeEach, describe, expect, it } from 'vitest';
import { newToken } from '../../../../src/domain/values/ids.ts';
import { acquirePollLease, advancePoll } from '../../../../src/store/catalog/poll-state.ts';
import { sql } from '../../../../src/store/db/tx.ts';
import { isWorthAsking, readTradeFacts, requestTradeHistory } from '../../../../src/store/series/trade-history.ts';
import {
  advanceTradeHistory,
  chargeTradeHistory,
  countHistoryTrades,
  countTradeHistories,
  nextTradeHistory,
  type OpenHistory,
  touchTradeHistory,
} from '../../../../src/store/series/trade-walks.ts';
import { aStoredMarket } from '../../../factories/stored-market.ts';
import { useTestDatabase } from '../../../support/postgres/database.ts';

const AGE = sql(
  'test_age_history',
  `UPDATE trade_history SET touched_at = touched_at - $2 * interval '1 second', finished_at = finished_at - $2 * interval '1 second'
   WHERE market_id = $1`,
);

const FROM = Date.UTC(2026, 0, 1);
const TO = Date.UTC(2026, 5, 1);

const test = useTestDatabase();
let venue = '';
let made = 0;
beforeEach(() => {
  made += 1;
  venue = `v${made}`;
});

async function aRequest(range: { fromMs?: number; toMs?: number } = {}): Promise<bigint> {
  const { pk } = await aStoredMarket(test.db, { venue });
  await requestTradeHistory(test.db, { marketPk: pk, fromMs: FROM, toMs: TO, ...range });
  return pk;
}
const ofHistory = (marketPk: bigint) => ({ marketPk, purpose: 'history' as const });
async function next(keep?: bigint): Promise<OpenHistory> {
  const walk = await nextTradeHistory(test.db, venue, keep === undefined ? undefined : ofHistory(keep));
  if (!walk) throw new Error('no walk is due');
  return walk;
}
const historyOf = async (pk: bigint) => (await readTradeFacts(test.db, pk)).history;
const step = (reachedMs: number, isDone = false) => ({ position: { at: reachedMs }, reachedMs, isDone });

describe('the stored trade history of a market', () => {
  it('has the start of polling of its venue, its earliest possible start, and no walk', async () => {
    const opened = new Date(FROM + 5_000);
    const { pk } = await aStoredMarket(test.db, { venue, openAt: opened, createdAt: new Date(FROM) });
    expect(await readTradeFacts(test.db, pk)).toEqual({
      liveMs: null,
      caughtUpMs: null,
      beganMs: FROM,
      history: null,
      witness: null,
    });
    const { pk: other } = await aStoredMarket(test.db, { venue, openAt: opened });
    expect(await readTradeFacts(test.db, other)).toMatchObject({ beganMs: opened.getTime() });
    const { pk: ageless } = await aStoredMarket(test.db, { venue });
    expect(await readTradeFacts(test.db, ageless)).toMatchObject({ beganMs: null });
  });

  it('starts at the first page of the trade poll, unchanged by later pages and other polls', async () => {
    const { pk } = await aStoredMarket(test.db, { venue });
    const live = async () => (await readTradeFacts(test.db, pk)).liveMs;
    for (const kind of ['prices', 'trades']) {
      const lease = await acquirePollLease(test.db, venue, kind, newToken());
      if (!lease) throw new Error('not acquired');
      expect(await live()).toBeNull();
      await advancePoll(test.db, lease, 1);
      const first = await live();
      expect(first === null).toBe(kind === 'prices');
      await advancePoll(test.db, lease, 2);
      expect(await live()).toBe(first);
    }
  });
});

describe('requestTradeHistory', () => {
  it('creates a walk once, and ignores a request that needs no more history', async () => {
    const pk = await aRequest();
    const before = await historyOf(pk);
    expect(before).toMatchObject({ status: 'queued', fromMs: FROM, toMs: TO, reachedMs: null, isTouched: false });
    expect(await requestTradeHistory(test.db, { marketPk: pk, fromMs: FROM, toMs: TO + 5 })).toBe(false);
    expect(await requestTradeHistory(test.db, { marketPk: pk, fromMs: FROM + 1, toMs: TO })).toBe(false);
    expect({ ...(await historyOf(pk)), asOfMs: 0 }).toEqual({ ...before, asOfMs: 0 });
  });

  it('continues below the reached time for a request for more', async () => {
    const pk = await aRequest();
    await advanceTradeHistory(test.db, await next(), step(FROM, true));
    const done = await historyOf(pk);
    expect(done).toMatchObject({ status: 'done', reachedMs: FROM, pages: 1 });
    expect([isWorthAsking(done, FROM), isWorthAsking(done, FROM - 1)]).toEqual([false, true]);
    expect(await requestTradeHistory(test.db, { marketPk: pk, fromMs: FROM - 1_000, toMs: TO })).toBe(true);
    expect(await historyOf(pk)).toMatchObject({
      status: 'queued',
      fromMs: FROM - 1_000,
      toMs: FROM,
      reachedMs: null,
      pages: 1,
      isTouched: false,
      finishedMs: null,
    });
    expect(await next()).toMatchObject({ marketPk: pk, position: null });
  });

  it('invalidates a page in flight of a running walk', async () => {
    const pk = await aRequest();
    const walk = await next();
    await requestTradeHistory(test.db, { marketPk: pk, fromMs: FROM - 1_000, toMs: TO });
    expect(await advanceTradeHistory(test.db, walk, step(FROM, true))).toBeNull();
    expect(await chargeTradeHistory(test.db, walk, 'no')).toBe(false);
    expect(await historyOf(pk)).toMatchObject({ status: 'queued', pages: 0, failures: 0 });
  });

  it('accepts a request for a failed walk an hour later', async () => {
    const pk = await aRequest();
    const walk = await next();
    for (let failure = 1; failure <= 5; failure++) {
      expect(await chargeTradeHistory(test.db, walk, 'gone\u0000')).toBe(failure === 5);
    }
    const ask = () => requestTradeHistory(test.db, { marketPk: pk, fromMs: FROM, toMs: TO });
    const failed = await historyOf(pk);
    expect(failed).toMatchObject({ status: 'failed', failures: 5, lastError: 'gone\uFFFD' });
    expect([isWorthAsking(failed, FROM), await ask()]).toEqual([false, false]);
    await test.db.query(AGE, [pk, 3_601]);
    expect([isWorthAsking(await historyOf(pk), FROM), await ask()]).toEqual([true, true]);
    expect(await historyOf(pk)).toMatchObject({ status: 'queued', failures: 0, lastError: null });
  });
});

describe('the next walk of trade history', () => {
  it('is a new walk, then the walk in turn, then the walk that waited longest', async () => {
    const [first, second] = [await aRequest(), await aRequest()];
    expect((await next()).marketPk).toBe(first);
    await advanceTradeHistory(test.db, await next(), step(TO - 1));
    expect((await next(first)).marketPk).toBe(second);
    await advanceTradeHistory(test.db, await next(), step(TO - 1));
    expect((await next(second)).marketPk).toBe(second);
    expect((await next()).marketPk).toBe(first);
    await touchTradeHistory(test.db, ofHistory(first));
    expect((await next()).marketPk).toBe(second);
    const third = await aRequest();
    expect((await next(second)).marketPk).toBe(third);
  });

  it('includes the request of the adapter and belongs to the venue', async () => {
    const market = await aStoredMarket(test.db, { venue: `${venue}-other` });
    await requestTradeHistory(test.db, { marketPk: market.pk, fromMs: FROM, toMs: TO });
    expect(await nextTradeHistory(test.db, venue)).toBeNull();
    expect(await nextTradeHistory(test.db, `${venue}-other`)).toMatchObject({
      marketId: market.marketId,
      outcomeIds: market.outcomes.map(({ outcomeId }) => outcomeId),
      fromMs: FROM,
      toMs: TO,
      position: null,
    });
  });

  it('is not a walk that just failed', async () => {
    const pk = await aRequest();
    await chargeTradeHistory(test.db, await next(), 'no');
    expect(await nextTradeHistory(test.db, venue)).toBeNull();
    const count = async () => (await countTradeHistories(test.db)).filter((row) => row.venue === venue);
    expect(await count()).toEqual([{ venue, status: 'queued', walks: 1, due: 0 }]);
    await test.db.query(AGE, [pk, 31]);
    expect(await count()).toEqual([{ venue, status: 'queued', walks: 1, due: 1 }]);
    await chargeTradeHistory(test.db, await next(), 'no');
    await test.db.query(AGE, [pk, 31]);
    expect(await nextTradeHistory(test.db, venue)).toBeNull();
    await test.db.query(AGE, [pk, 30]);
    expect((await next()).marketPk).toBe(pk);
  });
});

describe('advanceTradeHistory', () => {
  it('advances the walk and counts trades, within the requested range and never upwards', async () => {
    const pk = await aRequest();
    await countHistoryTrades(test.db, ofHistory(pk), 7);
    expect(await advanceTradeHistory(test.db, await next(), step(TO - 10))).toMatchObject({ pages: 1, trades: 7 });
    const walk = await next();
    expect(walk).toMatchObject({ status: 'walking', position: { at: TO - 10 }, reachedMs: TO - 10, isTouched: true });
    await advanceTradeHistory(test.db, walk, step(TO - 5));
    expect(await historyOf(pk)).toMatchObject({ reachedMs: TO - 10 });
    await advanceTradeHistory(test.db, walk, step(0));
    expect(await historyOf(pk)).toMatchObject({ reachedMs: FROM, status: 'walking', pages: 3, trades: 7 });
  });

  it('clears failures and keeps the truncation', async () => {
    const pk = await aRequest();
    await chargeTradeHistory(test.db, await next(), 'for now');
    await test.db.query(AGE, [pk, 31]);
    await advanceTradeHistory(test.db, await next(), step(TO - 10));
    expect(await historyOf(pk)).toMatchObject({ failures: 0, lastError: null });
    await advanceTradeHistory(test.db, await next(), { ...step(TO - 20), truncated: 'no more than 10,000' });
    await advanceTradeHistory(test.db, await next(), step(TO - 30));
    expect(await historyOf(pk)).toMatchObject({ lastError: 'no more than 10,000', reachedMs: TO - 30 });
    await advanceTradeHistory(test.db, await next(), { ...step(TO - 30, true), truncated: 'no more than 20,000' });
    expect(await historyOf(pk)).toMatchObject({
      status: 'done',
      lastError: 'no more than 20,000',
      reachedMs: TO - 30,
      finishedMs: expect.any(Number),
    });
    expect(await nextTradeHistory(test.db, venue)).toBeNull();
  });
});
