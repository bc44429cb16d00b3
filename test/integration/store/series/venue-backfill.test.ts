import { beforeEach, describe, expect, it } from 'vitest';
import { sql } from '../../../../src/store/db/tx.ts';
import { isWorthAsking, readTradeFacts, requestTradeHistory } from '../../../../src/store/series/trade-history.ts';
import {
  advanceTradeHistory,
  chargeTradeHistory,
  nextTradeHistory,
  type OpenHistory,
} from '../../../../src/store/series/trade-walks.ts';
import {
  listShortHistories,
  MAX_OPEN_WALKS,
  planVenueBackfill,
  readBackfillProgress,
  type VenueBackfill,
} from '../../../../src/store/series/venue-backfill.ts';
import { aStoredMarket, type StoredMarketFields } from '../../../factories/stored-market.ts';
import { useTestDatabase } from '../../../support/postgres/database.ts';

const SET_LIVE = sql(
  'test_live_since',
  `INSERT INTO poll_state (venue, kind, first_success_at) VALUES ($1, 'trades', to_timestamp($2::bigint / 1000))`,
);
const AGE = sql(
  'test_age_walks',
  `UPDATE trade_history h SET requested_at = h.requested_at - $2 * interval '1 minute', finished_at = h.finished_at - $2 * interval '1 minute'
   FROM market m WHERE m.id = h.market_id AND m.venue = $1`,
);
const TOUCH_ALL = sql(
  'test_touch_walks',
  `UPDATE trade_history h SET touched_at = clock_timestamp() FROM market m WHERE m.id = h.market_id AND m.venue = $1`,
);

const SINCE = Date.UTC(2026, 5, 1);
const LIVE = Date.UTC(2026, 6, 1);

const test = useTestDatabase();
let venue = '';
let made = 0;
beforeEach(async () => {
  made += 1;
  venue = `v${made}`;
  await test.db.query(SET_LIVE, [venue, LIVE]);
});

const backfill = (fields: Partial<VenueBackfill> = {}): VenueBackfill => ({ venue, sinceMs: SINCE, ...fields });
const aMarket = (fields: StoredMarketFields = {}) =>
  aStoredMarket(test.db, { venue, createdAt: new Date(SINCE - 86_400_000), ...fields });
const plan = (after = 0n, fields: Partial<VenueBackfill> = {}) => planVenueBackfill(test.db, backfill(fields), after);
const historyOf = async (pk: bigint) => (await readTradeFacts(test.db, pk)).history;
const statesOf = async () => (await readBackfillProgress(test.db, backfill())).markets;

async function nextWalk(): Promise<OpenHistory> {
  const walk = await nextTradeHistory(test.db, venue);
  if (!walk) throw new Error('no walk is due');
  return walk;
}

/** Ends the next walk at this moment; `truncated`: the venue serves nothing before it. */
async function endNextWalk(reachedMs = SINCE, truncated?: string): Promise<void> {
  const step = { position: null, reachedMs, isDone: true, ...(truncated !== undefined && { truncated }) };
  await advanceTradeHistory(test.db, await nextWalk(), step);
}

describe('planVenueBackfill', () => {
  it('requests the trades between the date and the start of live polls when a market has none of them', async () => {
    const old = await aMarket();
    const young = await aMarket({ createdAt: new Date(SINCE + 5_000) });
    expect(await plan()).toEqual({ requested: 2, after: young.pk, isOver: true });
    expect(await historyOf(old.pk)).toMatchObject({ status: 'queued', fromMs: SINCE, toMs: LIVE + 1, isPlanned: true });
    expect(await historyOf(young.pk)).toMatchObject({ fromMs: SINCE + 5_000, toMs: LIVE + 1 });
    expect(await plan()).toMatchObject({ requested: 0, isOver: true });
  });

  it('ignores a market when live polls cover it, when it ended before the date, and when it is not named', async () => {
    await aMarket({ createdAt: new Date(LIVE + 1) });
    await aMarket({ status: 'settled', resolvedAt: new Date(SINCE - 1) });
    const named = await aMarket({ status: 'resolved', resolvedAt: new Date(SINCE) });
    await aMarket();
    await aStoredMarket(test.db, { venue: `${venue}-other` });
    expect(await plan(0n, { marketIds: [named.marketId] })).toEqual({ requested: 1, after: named.pk, isOver: true });
    expect(await statesOf()).toMatchObject({ missing: 1, open: 1 });
  });

  it('fills the places of the venue and continues behind its last market when a walk ends', async () => {
    for (let index = 0; index < MAX_OPEN_WALKS + 2; index += 1) await aMarket();
    const first = await plan();
    expect(first).toMatchObject({ requested: MAX_OPEN_WALKS, isOver: false });
    expect(await plan(first.after)).toEqual({ requested: 0, after: first.after, isOver: false });
    await endNextWalk();
    const second = await plan(first.after);
    expect(second).toMatchObject({ requested: 1, isOver: false });
    expect(await statesOf()).toMatchObject({ missing: 1, open: MAX_OPEN_WALKS, served: 1 });
  });

  it('shares the places when several runs plan at once', async () => {
    for (let index = 0; index < MAX_OPEN_WALKS + 5; index += 1) await aMarket();
    const steps = await Promise.all([plan(), plan(), plan()]);
    expect(steps.reduce((sum, { requested }) => sum + requested, 0)).toBe(MAX_OPEN_WALKS);
  });

  it('gives the place of a walk to another one when the venue never answers for it', async () => {
    for (let index = 0; index < MAX_OPEN_WALKS; index += 1) await aMarket();
    const { after } = await plan();
    await aMarket();
    await test.db.query(AGE, [venue, 11]);
    await test.db.query(TOUCH_ALL, [venue]);
    expect(await plan(after)).toMatchObject({ requested: 1, isOver: true });
    expect(await statesOf()).toMatchObject({ unanswered: MAX_OPEN_WALKS, open: 1 });
  });

  it('extends a walk when the date is earlier, and continues below its reached time', async () => {
    const market = await aMarket();
    await plan(0n, { sinceMs: SINCE + 10_000 });
    await advanceTradeHistory(test.db, await nextWalk(), { position: {}, reachedMs: SINCE + 20_000, isDone: false });
    expect(await plan()).toMatchObject({ requested: 1 });
    expect(await historyOf(market.pk)).toMatchObject({ status: 'queued', fromMs: SINCE, toMs: SINCE + 20_000 });
  });

  it('requests a failed walk again when it failed an hour ago', async () => {
    const market = await aMarket();
    await plan();
    for (let failure = 0; failure < 5; failure += 1) {
      const history = await historyOf(market.pk);
      if (!history) throw new Error('the market has no walk');
      const walk = { ...history, purpose: 'history', marketPk: market.pk, marketId: market.marketId } as OpenHistory;
      await chargeTradeHistory(test.db, walk, 'scripted');
    }
    expect([await plan(), await statesOf()]).toMatchObject([{ requested: 0 }, { failed: 1 }]);
    expect(await listShortHistories(test.db, backfill())).toEqual([
      { marketId: market.marketId, state: 'failed', storedFromMs: LIVE + 1, reason: 'scripted' },
    ]);
    await test.db.query(AGE, [venue, 61]);
    expect([await plan(), await statesOf()]).toMatchObject([{ requested: 1 }, { open: 1 }]);
  });

  it('counts a market as not served when its walk ends before the date, and requests it no more', async () => {
    const market = await aMarket();
    await plan();
    await endNextWalk(SINCE + 7_200_000, 'the archive of the venue is not available');
    expect([await plan(), await statesOf()]).toMatchObject([{ requested: 0 }, { unserved: 1, served: 0 }]);
    expect(await listShortHistories(test.db, backfill())).toEqual([
      {
        marketId: market.marketId,
        state: 'unserved',
        storedFromMs: SINCE + 7_200_000,
        reason: 'the archive of the venue is not available',
      },
    ]);
  });
});

describe('the request of a client during a backfill', () => {
  it('comes before the planned walks, also when it names a planned market', async () => {
    const [first, second] = [await aMarket(), await aMarket()];
    const other = await aMarket({ createdAt: new Date(LIVE + 1) });
    await plan();
    expect((await nextWalk()).marketPk).not.toBe(other.pk);
    const request = { fromMs: SINCE, toMs: LIVE };
    await requestTradeHistory(test.db, { marketPk: other.pk, ...request });
    expect((await nextWalk()).marketPk).toBe(other.pk);
    await endNextWalk();
    expect(isWorthAsking(await historyOf(second.pk), SINCE)).toBe(true);
    expect(await requestTradeHistory(test.db, { marketPk: second.pk, ...request })).toBe(true);
    expect(await historyOf(second.pk)).toMatchObject({ isTouched: false, isPlanned: false, toMs: LIVE + 1 });
    expect((await nextWalk()).marketPk).toBe(second.pk);
    expect(await requestTradeHistory(test.db, { marketPk: second.pk, ...request })).toBe(false);
    expect(await historyOf(first.pk)).toMatchObject({ isTouched: true, isPlanned: true });
  });

  it('keeps its place when a backfill reaches further back', async () => {
    const [first, asked] = [await aMarket(), await aMarket()];
    await requestTradeHistory(test.db, { marketPk: asked.pk, fromMs: SINCE + 1_000, toMs: LIVE });
    await plan();
    expect(await historyOf(asked.pk)).toMatchObject({ fromMs: SINCE, isTouched: false });
    expect((await nextWalk()).marketPk).toBe(asked.pk);
    expect(await historyOf(first.pk)).toMatchObject({ isPlanned: true });
  });
});
