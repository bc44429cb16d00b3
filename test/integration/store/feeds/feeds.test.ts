import { describe, expect, it } from 'vitest';
import { sql } from '../../../../src/store/db/tx.ts';
import {
  closeGaps,
  countGaps,
  endGapsWithoutFeed,
  marketsWithOpenGaps,
  openGap,
  pruneGaps,
  readGaps,
} from '../../../../src/store/feeds/gaps.ts';
import { newerQuotes, type WantedMarket, wantedFeedMarkets } from '../../../../src/store/feeds/markets.ts';
import { claimParts, createParts, heldParts, releaseParts } from '../../../../src/store/feeds/parts.ts';
import { type FeedReport, forgetStreamer, readFeedStates, reportFeeds } from '../../../../src/store/feeds/streamers.ts';
import { PUBLISH_KINDS } from '../../../../src/store/marks/publish-marks.ts';
import { aStoredMarket } from '../../../factories/stored-market.ts';
import { aStoredPrice } from '../../../factories/stored-series.ts';
import { useTestDatabase } from '../../../support/postgres/database.ts';

const EXPIRE = sql(
  'test_expire_parts',
  "UPDATE feed_part SET lease_until = clock_timestamp() - interval '1 ms' WHERE owner = $1",
);
const AGE_REPORTS = sql(
  'test_age_reports',
  "UPDATE feed_streamer SET reported_at = reported_at - interval '6 seconds' WHERE streamer = $1",
);
const CLOSE = sql('test_close_market', "UPDATE market SET status = 'closed' WHERE id = $1");
const FORGET_REPORTS = sql('test_forget_reports', 'DELETE FROM feed_streamer');
const MARKS = sql('test_gap_marks', `SELECT key FROM publish_mark WHERE kind = ${PUBLISH_KINDS.gap} ORDER BY id`);

const test = useTestDatabase();

describe('the wanted markets of a feed', () => {
  const wish = { venue: 'polymarket', onlyBooks: true, limit: 10 };

  it('have the outcomes of known markets from memory, and those of the others from the database', async () => {
    const { db } = test;
    const markets = [await aStoredMarket(db), await aStoredMarket(db)];
    const traded = markets.map(({ pk }) => pk);
    const known = new Map<bigint, WantedMarket>();
    const first = await wantedFeedMarkets(db, wish, traded, known);
    expect(first).toEqual(
      markets.map(({ pk, marketId, outcomes }) => ({
        ...{ pk, marketId },
        tokenIds: outcomes.map(({ tokenId }) => tokenId),
        outcomeIds: outcomes.map(({ outcomeId }) => outcomeId),
      })),
    );
    expect([...known.values()]).toEqual(first);
    const later = await aStoredMarket(db);
    const now = await wantedFeedMarkets(db, wish, [later.pk, ...traded], known);
    expect(now.slice(1)).toEqual(first);
    expect(now[1]).toBe(known.get(traded[0] ?? 0n));
    expect(now[0]).toMatchObject({ pk: later.pk, marketId: later.marketId });
  });

  it('omit a known market that ended, and a market without outcomes', async () => {
    const { db } = test;
    const [open, ending] = [await aStoredMarket(db), await aStoredMarket(db)];
    const empty = await aStoredMarket(db, { labels: [] });
    const traded = [empty.pk, ending.pk, open.pk];
    const known = new Map<bigint, WantedMarket>();
    const pks = async () => (await wantedFeedMarkets(db, wish, traded, known)).map(({ pk }) => pk);
    expect(await pks()).toEqual([ending.pk, open.pk]);
    await db.query(CLOSE, [ending.pk]);
    expect(await pks()).toEqual([open.pk]);
  });
});

describe('newerQuotes', () => {
  it('returns the stored quotes that are later than those of the feed', async () => {
    const { db } = test;
    const { outcomes } = await aStoredMarket(db);
    const [tokenId] = outcomes.map((outcome) => outcome.tokenId);
    if (tokenId === undefined) throw new Error('no outcome');
    const asOfMs = 1_700_000_000_123;
    const quote = { price: '0.5', bid: '0.4', ask: '0.6' };
    await aStoredPrice(db, tokenId, { ...quote, asOf: new Date(asOfMs) });
    expect(await newerQuotes(db, [{ tokenId, asOfMs: asOfMs - 1 }])).toEqual([{ tokenId, ...quote }]);
    expect(await newerQuotes(db, [{ tokenId, asOfMs }])).toEqual([]);
    expect(await newerQuotes(db, [{ tokenId: tokenId + 1_000n, asOfMs: 0 }])).toEqual([]);
    expect(await newerQuotes(db, [])).toEqual([]);
  });
});

describe('parts of a feed', () => {
  it('have one owner until its lease ends', async () => {
    const { db } = test;
    await createParts(db, 'kalshi', 3);
    await createParts(db, 'kalshi', 3);
    const wanted = { venue: 'kalshi', parts: 3, limit: 2 };
    const first = await claimParts(db, 'a', wanted);
    expect(first).toEqual([
      { venue: 'kalshi', part: 0, seenAtMs: null },
      { venue: 'kalshi', part: 1, seenAtMs: null },
    ]);
    expect((await claimParts(db, 'b', wanted)).map(({ part }) => part)).toEqual([2]);
    expect(await heldParts(db, 'b', 'kalshi', [0, 2])).toEqual(new Set([2]));
    expect((await reportFeeds(db, 'a', [], [{ venue: 'kalshi', part: 0 }])).parts).toHaveLength(2);
    await db.query(EXPIRE, ['a']);
    const taken = await claimParts(db, 'b', wanted);
    expect(taken).toEqual([
      { venue: 'kalshi', part: 0, seenAtMs: expect.any(Number) },
      // Its owner did not say that it reads it.
      { venue: 'kalshi', part: 1, seenAtMs: null },
    ]);
    expect(await heldParts(db, 'a', 'kalshi', [0, 1])).toEqual(new Set());
    expect((await reportFeeds(db, 'a', [])).parts).toEqual([]);
    await releaseParts(db, 'b', 'kalshi', [1], [1]);
    expect(await claimParts(db, 'a', wanted)).toMatchObject([{ part: 1 }]);
  });

  it('keep the time of the last read when a claim or a release stored nothing since', async () => {
    const { db } = test;
    const wanted = { venue: 'polymarket', parts: 1, limit: 1 };
    const part = { venue: 'polymarket', part: 0 };
    await createParts(db, 'polymarket', 1);
    await claimParts(db, 'reader', wanted);
    await reportFeeds(db, 'reader', [], [part]);
    await releaseParts(db, 'reader', 'polymarket', [0], []);
    const [claimed] = await claimParts(db, 'lost', wanted);
    await reportFeeds(db, 'lost', []);
    expect(await claimParts(db, 'lost', wanted)).toEqual([claimed]);
    await releaseParts(db, 'lost', 'polymarket', [0], [0]);
    const [released] = await claimParts(db, 'next', wanted);
    expect(released?.seenAtMs).toBeGreaterThan(claimed?.seenAtMs ?? Number.POSITIVE_INFINITY);
  });

  it('stay with an owner that was late while nobody took them', async () => {
    const { db } = test;
    await createParts(db, 'limitless', 2);
    await claimParts(db, 'late', { venue: 'limitless', parts: 2, limit: 2 });
    await db.query(EXPIRE, ['late']);
    expect(await heldParts(db, 'late', 'limitless', [0, 1])).toEqual(new Set([0, 1]));
    expect(await claimParts(db, 'late', { venue: 'limitless', parts: 2, limit: 2, held: [0, 1] })).toEqual([]);
    expect((await reportFeeds(db, 'late', [])).parts).toHaveLength(2);
    expect(await claimParts(db, 'other', { venue: 'limitless', parts: 2, limit: 2 })).toEqual([]);
  });

  it('are claimed again by an owner that does not read them', async () => {
    const { db } = test;
    await createParts(db, 'manifold', 1);
    await claimParts(db, 'forgetful', { venue: 'manifold', parts: 1, limit: 1 });
    expect(await claimParts(db, 'forgetful', { venue: 'manifold', parts: 1, limit: 1 })).toMatchObject([{ part: 0 }]);
  });
});

describe('states of feeds', () => {
  const report = (fields: Partial<FeedReport>): FeedReport => ({
    venue: 'polymarket',
    state: 'live',
    reason: null,
    subscribed: 10,
    messagesPerSecond: 5,
    lagMs: 40,
    ...fields,
  });

  it('are summed over the running streamers', async () => {
    const { db } = test;
    await reportFeeds(db, 'a', [report({}), report({ venue: 'kalshi', state: 'off', reason: 'no_key', lagMs: null })]);
    await reportFeeds(db, 'b', [
      report({ messagesPerSecond: 15, lagMs: 80 }),
      report({ venue: 'manifold', state: 'connecting' }),
    ]);
    expect((await reportFeeds(db, 'a', [])).streamers).toBe(2);
    const states = await readFeedStates(db, ['polymarket', 'kalshi', 'limitless']);
    expect(states.get('polymarket')).toMatchObject({ state: 'live', subscribed: 20, messagesPerSecond: 20, lagMs: 70 });
    expect(states.get('kalshi')).toMatchObject({ state: 'off', reason: 'no_key', lagMs: null });
    expect(states.get('limitless')).toMatchObject({ state: 'stopped', reason: null, subscribed: 0 });
    const off = new Map([
      ['limitless', 'disabled'],
      ['polymarket', 'disabled'],
    ]);
    const configured = await readFeedStates(db, ['polymarket', 'limitless'], off);
    expect(configured.get('limitless')).toMatchObject({ state: 'off', reason: 'disabled', subscribed: 0 });
    expect(configured.get('polymarket')).toMatchObject({ state: 'live' });
  });

  it('have the time since which a streamer tries to connect', async () => {
    const { db } = test;
    const read = async () => (await readFeedStates(db, ['kalshi'])).get('kalshi');
    const tries = (reason: string | null) => report({ venue: 'kalshi', state: 'connecting', reason });
    await reportFeeds(db, 'c', [tries('standby')]);
    expect(await read()).toMatchObject({ state: 'connecting', connectingSince: null, connectingReason: null });
    await reportFeeds(db, 'c', [tries(null)]);
    const since = (await read())?.connectingSince;
    expect(since).toBeInstanceOf(Date);
    await reportFeeds(db, 'c', [tries('refused by the host')]);
    await reportFeeds(db, 'd', [report({ venue: 'kalshi' })]);
    expect(await read()).toMatchObject({
      state: 'live',
      connectingSince: since,
      connectingReason: 'refused by the host',
    });
    await reportFeeds(db, 'c', [report({ venue: 'kalshi' })]);
    expect(await read()).toMatchObject({ state: 'live', connectingSince: null });
    await Promise.all([forgetStreamer(db, 'c'), forgetStreamer(db, 'd')]);
  });

  it('of a streamer without reports for 5 s do not count', async () => {
    const { db } = test;
    await db.query(AGE_REPORTS, ['b']);
    await reportFeeds(db, 'a', [report({})]);
    expect((await readFeedStates(db, ['polymarket'])).get('polymarket')).toMatchObject({ subscribed: 10 });
    await forgetStreamer(db, 'a');
    expect((await readFeedStates(db, ['polymarket'])).get('polymarket')?.state).toBe('stopped');
  });
});

describe('gaps of a feed', () => {
  it('begin and end with a mark per market', async () => {
    const { db } = test;
    const [one, other] = [await aStoredMarket(db), await aStoredMarket(db)];
    const gap = '0197a000-0000-7000-8000-000000000001';
    const opened = {
      gap,
      venue: 'polymarket',
      marketPks: [one.pk, other.pk],
      affected: 'books',
      reason: 'silent',
      fromMs: 1_000,
    };
    await openGap(db, opened);
    await openGap(db, opened);
    expect(await countGaps(db)).toEqual(new Map([['polymarket', 1]]));
    // An older gap of trades must not take the place of a gap of books within the limit.
    const ofTrades = { ...opened, gap: '0197a000-0000-7000-8000-000000000002', affected: 'trades' };
    await openGap(db, { ...ofTrades, marketPks: [one.pk], fromMs: 500, toMs: 2_200 });
    await closeGaps(db, { venue: 'polymarket', marketPks: [one.pk], toMs: 3_000 });
    await closeGaps(db, { venue: 'polymarket', marketPks: [one.pk], toMs: 4_000 });
    expect(await marketsWithOpenGaps(db, 'polymarket')).toEqual([{ pk: other.pk, marketId: other.marketId }]);
    expect(await db.query(MARKS)).toEqual([{ key: one.pk }, { key: other.pk }, { key: one.pk }, { key: one.pk }]);
    const read = (fromMs: number, toMs: number) =>
      readGaps(db, { venue: 'polymarket', marketIds: [one.marketId], affected: 'books', fromMs, toMs, limit: 1 });
    const stored = {
      gap,
      marketId: one.marketId,
      affected: 'books',
      reason: 'silent',
      fromAt: new Date(1_000),
      toAt: new Date(3_000),
    };
    expect(await read(2_000, 2_500)).toEqual([stored]);
    expect(await read(3_000, 9_000)).toEqual([]);
    expect(await read(0, 1_000)).toEqual([]);
    expect(await pruneGaps(db, 3_001)).toBe(2);
    expect(await read(2_000, 2_500)).toEqual([]);
  });
});

it('gaps of a feed that no streamer reads any more end, and those of other feeds stay open', async () => {
  const { db } = test;
  const report = (venue: string, state: FeedReport['state']): FeedReport => ({
    venue,
    state,
    reason: null,
    subscribed: 0,
    messagesPerSecond: 0,
    lagMs: null,
  });
  await db.query(FORGET_REPORTS);
  await reportFeeds(db, 'reader', [report('kalshi', 'off'), report('limitless', 'connecting')]);
  const fromMs = Date.now() - 600_000;
  for (const venue of ['kalshi', 'limitless', 'manifold']) {
    const { pk } = await aStoredMarket(db, { venue });
    const opened = { venue, marketPks: [pk], affected: 'books', reason: 'disconnected' };
    await openGap(db, { ...opened, gap: crypto.randomUUID(), fromMs });
  }
  const { pk } = await aStoredMarket(db, { venue: 'kalshi' });
  const fresh = { venue: 'kalshi', marketPks: [pk], affected: 'books', reason: 'moved', fromMs: Date.now() };
  await openGap(db, { ...fresh, gap: crypto.randomUUID() });
  await endGapsWithoutFeed(db);
  expect((await marketsWithOpenGaps(db, 'kalshi')).map((market) => market.pk)).toEqual([pk]);
  expect(await marketsWithOpenGaps(db, 'limitless')).toHaveLength(1);
  expect(await marketsWithOpenGaps(db, 'manifold')).toEqual([]);
});
