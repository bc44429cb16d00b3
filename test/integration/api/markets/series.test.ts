import { randomUUID } from 'node:crypto';
import { beforeAll, describe, expect, it } from 'vitest';
import { enabledVenues } from '../../../../api/reads/venue-catalog.ts';
import { sql } from '../../../../src/store/db/tx.ts';
import { openGap } from '../../../../src/store/feeds/gaps.ts';
import { aStoredMarket, type TestMarket } from '../../../factories/stored-market.ts';
import { aStoredBook, storedCandles, storedSnapshots, storedTrades } from '../../../factories/stored-series.ts';
import { type Client, startTestApi, useTestApi } from '../api-harness.ts';

const READ_TAPE = sql(
  'test_series_tape',
  `INSERT INTO poll_state (venue, kind, first_success_at, last_success_at, caught_up_at)
   VALUES ('polymarket', 'trades', 'epoch', $1, $1)`,
);
const FORGET_TAPE = sql('test_series_no_tape', 'DELETE FROM poll_state');

const api = useTestApi();
let client: Client;

const NOW = 1_764_001_234;
const HOUR = 3_600;
/** The current hour of NOW. */
const THIS_HOUR = Math.floor(NOW / HOUR) * HOUR;

beforeAll(async () => {
  api.clock.nowMs = NOW * 1000 + 500;
  client = await api.client();
});

const tokenOf = (market: TestMarket, ordinal = 0) => market.outcomes[ordinal]?.tokenId ?? 0n;
const timestamps = (data: unknown) => (data as { timestamp: number }[]).map(({ timestamp }) => timestamp);

describe('candles', () => {
  it('are oldest first, sparse, exact, with the open bucket marked', async () => {
    const market = await aStoredMarket(api.db);
    await storedCandles(api.db, tokenOf(market), HOUR, [
      { bucket: THIS_HOUR, close: '0.70', trades: 2 },
      {
        bucket: THIS_HOUR - 3 * HOUR,
        open: '0.1234567890123456789',
        high: '0.9',
        low: '0.0000001',
        close: '0.5',
        volume: '100000000000000000.25',
        notional: '7',
        trades: 5,
      },
    ]);
    const answer = await client.market(`/v1/all/markets/${market.marketId}/candles`);
    expect(answer.body.meta).toMatchObject({ interval: '1h', outcome_id: market.outcomes[0]?.outcomeId });
    expect(answer.text).toContain(
      `"data":[{"timestamp":${THIS_HOUR - 3 * HOUR},"open":0.1234567890123456789,"high":0.9,"low":0.0000001,"close":0.5,` +
        `"volume":100000000000000000.25,"notional":7,"trades":5,"closed":true},` +
        `{"timestamp":${THIS_HOUR},"open":0.7,"high":0.7,"low":0.7,"close":0.7,"volume":10,"notional":5,"trades":2,"closed":false}]`,
    );
  });

  it('cover [start, end) and default to the last 300 buckets', async () => {
    const market = await aStoredMarket(api.db);
    const buckets = [0, 1, 2, 299, 300].map((ago) => THIS_HOUR - ago * HOUR);
    await storedCandles(
      api.db,
      tokenOf(market),
      HOUR,
      buckets.map((bucket) => ({ bucket, close: '0.5' })),
    );
    const path = `/v1/all/markets/${market.marketId}/candles`;
    expect(timestamps((await client.market(path)).body.data)).toEqual(
      [299, 2, 1, 0].map((ago) => THIS_HOUR - ago * HOUR),
    );
    const range = `${path}?start=${THIS_HOUR - 2 * HOUR}&end=${THIS_HOUR}`;
    expect(timestamps((await client.market(range)).body.data)).toEqual([THIS_HOUR - 2 * HOUR, THIS_HOUR - HOUR]);
    const inside = `${path}?start=${THIS_HOUR - 2 * HOUR + 1}&end=${THIS_HOUR + 1}`;
    expect(timestamps((await client.market(inside)).body.data)).toEqual([THIS_HOUR - HOUR, THIS_HOUR]);
  });

  it('match the requested outcome and interval', async () => {
    const market = await aStoredMarket(api.db);
    await storedCandles(api.db, tokenOf(market, 1), 60, [{ bucket: NOW - (NOW % 60) - 60, close: '0.3' }]);
    const path = `/v1/all/markets/${market.marketId}/candles`;
    const other = encodeURIComponent(market.outcomes[1]?.outcomeId ?? '');
    const answer = await client.market(`${path}?interval=1m&outcome_id=${other}`);
    expect(answer.body.data).toHaveLength(1);
    expect(answer.body.meta).toMatchObject({ interval: '1m', outcome_id: market.outcomes[1]?.outcomeId });
    expect((await client.market(path)).body.data).toEqual([]);
    const foreign = await client.market(`${path}?outcome_id=nope`);
    expect([foreign.status, foreign.body.error.details]).toEqual([
      400,
      [{ path: 'outcome_id', message: 'is not an outcome of this market' }],
    ]);
  });

  it('fill gaps with the previous close, but not before the first trade or in the future', async () => {
    const market = await aStoredMarket(api.db);
    await storedCandles(api.db, tokenOf(market), HOUR, [
      { bucket: THIS_HOUR - 5 * HOUR, close: '0.2' },
      { bucket: THIS_HOUR - 2 * HOUR, close: '0.4' },
    ]);
    const path = `/v1/all/markets/${market.marketId}/candles?fill=previous`;
    const filled = (await client.market(path)).body.data as { timestamp: number; close: number; trades: number }[];
    expect(filled.map(({ timestamp, close, trades }) => [(THIS_HOUR - timestamp) / HOUR, close, trades])).toEqual([
      [5, 0.2, 1],
      [4, 0.2, 0],
      [3, 0.2, 0],
      [2, 0.4, 1],
      [1, 0.4, 0],
      [0, 0.4, 0],
    ]);
    const seeded = await client.market(`${path}&start=${THIS_HOUR - 4 * HOUR}&end=${THIS_HOUR - 2 * HOUR}`);
    expect(seeded.body.data).toEqual(
      [4, 3].map((ago) => ({
        timestamp: THIS_HOUR - ago * HOUR,
        open: 0.2,
        high: 0.2,
        low: 0.2,
        close: 0.2,
        volume: 0,
        notional: 0,
        trades: 0,
        closed: true,
      })),
    );
    const future = await client.market(`${path}&start=${THIS_HOUR + HOUR}&end=${THIS_HOUR + 9 * HOUR}`);
    expect(future.body.data).toEqual([]);
  });

  it('fill gaps only until the end of a finished market', async () => {
    const resolvedAt = new Date((THIS_HOUR - 3 * HOUR) * 1000);
    const market = await aStoredMarket(api.db, { status: 'resolved', resolvedAt });
    await storedCandles(api.db, tokenOf(market), HOUR, [{ bucket: THIS_HOUR - 5 * HOUR, close: '0.2' }]);
    const answer = await client.market(`/v1/all/markets/${market.marketId}/candles?fill=previous`);
    expect(timestamps(answer.body.data)).toEqual([THIS_HOUR - 5 * HOUR, THIS_HOUR - 4 * HOUR]);
  });

  it('reject more than 5,000 buckets and name the limit', async () => {
    const { marketId } = await aStoredMarket(api.db);
    const path = `/v1/all/markets/${marketId}/candles?interval=1m&end=${NOW}`;
    expect((await client.market(`${path}&start=${NOW - 5_000 * 60}`)).status).toBe(200);
    const answer = await client.market(`${path}&start=${NOW - 5_001 * 60}`);
    expect([answer.status, answer.body.error.code]).toEqual([400, 'invalid_request']);
    expect(answer.body.error.message).toContain('5000');
  });

  it('may be cached longer after their end when the trades were read past it', async () => {
    const { marketId } = await aStoredMarket(api.db);
    const cacheControl = async (end: number) => {
      const answer = await client.market(`/v1/all/markets/${marketId}/candles?end=${end}`);
      return answer.headers.get('cache-control');
    };
    expect(await cacheControl(NOW - 4 * HOUR)).toBe('private, max-age=1');
    await api.db.query(READ_TAPE, [new Date((NOW - 2 * HOUR) * 1000).toISOString()]);
    try {
      expect(await cacheControl(NOW - 3 * HOUR)).toBe('private, max-age=60');
      expect(await cacheControl(NOW - HOUR)).toBe('private, max-age=1');
    } finally {
      await api.db.query(FORGET_TAPE);
    }
  });

  it('are an empty list for a market without outcomes', async () => {
    const { marketId } = await aStoredMarket(api.db, { labels: [] });
    const answer = await client.market(`/v1/all/markets/${marketId}/candles`);
    expect([answer.status, answer.body.data]).toEqual([200, []]);
  });
});

describe('volume', () => {
  it('is the sum over the outcomes per window, or the volume of one outcome', async () => {
    const market = await aStoredMarket(api.db);
    await storedCandles(api.db, tokenOf(market, 0), HOUR, [
      { bucket: THIS_HOUR, close: '0.5', volume: '0.1', notional: '0.05', trades: 1 },
      { bucket: THIS_HOUR - HOUR, close: '0.5', volume: '7', notional: '3', trades: 4 },
    ]);
    await storedCandles(api.db, tokenOf(market, 1), HOUR, [
      { bucket: THIS_HOUR, close: '0.5', volume: '0.2', notional: '0.1', trades: 2 },
    ]);
    const path = `/v1/all/markets/${market.marketId}/volume`;
    const answer = await client.market(path);
    expect(answer.body.meta).toMatchObject({ window: '1h' });
    expect(answer.text).toContain(
      `"data":[{"timestamp":${THIS_HOUR - HOUR},"volume":7,"notional":3,"trades":4},` +
        `{"timestamp":${THIS_HOUR},"volume":0.3,"notional":0.15,"trades":3}]`,
    );
    const one = await client.market(`${path}?outcome_id=${encodeURIComponent(market.outcomes[1]?.outcomeId ?? '')}`);
    expect(one.body.data).toEqual([{ timestamp: THIS_HOUR, volume: 0.2, notional: 0.1, trades: 2 }]);
    expect(one.body.meta).toMatchObject({ outcome_id: market.outcomes[1]?.outcomeId });
    expect((await client.market(`${path}?window=1d`)).body.data).toEqual([]);
  });
});

describe('snapshots', () => {
  it('repeat the last sample at each boundary, but not before the first or in the future', async () => {
    const market = await aStoredMarket(api.db);
    await storedSnapshots(api.db, tokenOf(market), [
      { ts: THIS_HOUR - 3 * HOUR - 60, price: '0.30', bid: '0.29', ask: '0.31' },
      { ts: THIS_HOUR - HOUR, price: '0.45' },
      { ts: THIS_HOUR - HOUR + 60, price: '0.46' },
    ]);
    const answer = await client.market(`/v1/all/markets/${market.marketId}/snapshots?interval=1h`);
    expect(answer.body.data).toEqual([
      { timestamp: THIS_HOUR - 3 * HOUR, price: 0.3, best_bid: 0.29, best_ask: 0.31 },
      { timestamp: THIS_HOUR - 2 * HOUR, price: 0.3, best_bid: 0.29, best_ask: 0.31 },
      { timestamp: THIS_HOUR - HOUR, price: 0.45 },
      { timestamp: THIS_HOUR, price: 0.46 },
    ]);
    const range = `start=${THIS_HOUR - 2 * HOUR + 1}&end=${THIS_HOUR}`;
    const part = await client.market(`/v1/all/markets/${market.marketId}/snapshots?${range}`);
    expect(timestamps(part.body.data)).toEqual([THIS_HOUR - HOUR]);
  });

  it('name the gaps of the feed of books that their range covers', async () => {
    const market = await aStoredMarket(api.db);
    await storedSnapshots(api.db, tokenOf(market), [{ ts: THIS_HOUR - 5 * HOUR, price: '0.30' }]);
    const feed = { venue: 'polymarket', marketPks: [market.pk], reason: 'disconnected' };
    const gaps = [
      { gap: randomUUID(), affected: 'books', from: THIS_HOUR - 4 * HOUR, to: THIS_HOUR - 3 * HOUR },
      { gap: randomUUID(), affected: 'trades', from: THIS_HOUR - 2 * HOUR, to: THIS_HOUR - HOUR },
      { gap: randomUUID(), affected: 'books', from: THIS_HOUR - 2 * HOUR, to: undefined },
    ];
    for (const { from, to, ...rest } of gaps) {
      const times = { fromMs: from * 1000 + 900, ...(to !== undefined && { toMs: to * 1000 - 900 }) };
      await openGap(api.db, { ...feed, ...rest, ...times });
    }
    const read = async (start: number, end: number) => {
      const path = `/v1/polymarket/markets/${market.marketId}/snapshots?start=${start}&end=${end}`;
      const { body, headers } = await client.market(path);
      return [body.meta['feed_gaps'], headers.get('cache-control')];
    };
    const past = { start: THIS_HOUR - 4 * HOUR, end: THIS_HOUR - 3 * HOUR, cause: 'disconnected' };
    const open = { start: THIS_HOUR - 2 * HOUR, end: null, cause: 'disconnected' };
    expect(await read(THIS_HOUR - 5 * HOUR, THIS_HOUR)).toEqual([[past, open], 'private, max-age=1']);
    expect(await read(THIS_HOUR - 5 * HOUR, THIS_HOUR - 3 * HOUR)).toEqual([[past], 'private, max-age=60']);
    expect(await read(THIS_HOUR - 3 * HOUR, THIS_HOUR - 2 * HOUR)).toEqual([undefined, 'private, max-age=60']);
  });
});

describe('trades', () => {
  const at = (ms: number) => new Date(NOW * 1000 + ms);

  it('have the fields of the specification plus outcome_id, newest first', async () => {
    const market = await aStoredMarket(api.db);
    await storedTrades(api.db, [
      { tokenId: tokenOf(market, 0), at: at(-5_001), tradeId: 'a', price: '0.10', size: '1e-7', side: 'buy' },
      { tokenId: tokenOf(market, 1), at: at(-4_000), tradeId: 'b', price: '0.9', size: '3' },
    ]);
    const answer = await client.market(`/v1/all/markets/${market.marketId}/trades`);
    expect(answer.body.data).toEqual([
      {
        trade_id: 'b',
        market_id: market.marketId,
        outcome_id: market.outcomes[1]?.outcomeId,
        timestamp: NOW - 4,
        price: 0.9,
        size: 3,
      },
      {
        trade_id: 'a',
        market_id: market.marketId,
        outcome_id: market.outcomes[0]?.outcomeId,
        timestamp: NOW - 6,
        price: 0.1,
        size: 1e-7,
        side: 'buy',
      },
    ]);
    expect(answer.text).toContain('"size":0.0000001');
    expect(answer.body.meta.next_cursor).toBeNull();
  });

  it.each(['asc', 'desc'] as const)(
    'are returned exactly once in order %s across equal times, months and new arrivals',
    async (direction) => {
      const market = await aStoredMarket(api.db);
      const monthAgo = -40 * 86_400_000;
      const tape = Array.from({ length: 40 }, (_, i) => ({
        tokenId: tokenOf(market, i % 2),
        at: at(i < 10 ? monthAgo : -((i >> 3) * 1000)),
        // The same id at the same time on two outcomes is two trades.
        tradeId: `t${(i >> 1) % 9}-${i >> 2}`,
        price: `0.${(i * 37) % 5}`,
        ordinal: (i >> 2) % 2,
        ...(i % 3 > 0 && { side: i % 3 === 1 ? ('buy' as const) : ('sell' as const) }),
      }));
      await storedTrades(api.db, tape);
      const seen: string[] = [];
      let cursor: string | null | undefined;
      let arrivals = 0;
      do {
        const query = `limit=7&direction=${direction}${cursor ? `&cursor=${cursor}` : ''}`;
        const answer = await client.market(`/v1/all/markets/${market.marketId}/trades?${query}`);
        expect(answer.status).toBe(200);
        for (const trade of answer.body.data as { trade_id: string; outcome_id: string }[]) {
          seen.push(`${trade.outcome_id}/${trade.trade_id}`);
        }
        cursor = answer.body.meta.next_cursor;
        // One trade arrives behind the position and one ahead of it.
        for (const offset of [-3_600_000, -500]) {
          const arrival = { tokenId: tokenOf(market), at: at(offset), tradeId: `new${arrivals++}` };
          if (arrivals < 20) await storedTrades(api.db, [arrival]);
        }
      } while (cursor);
      const old = seen.filter((trade) => !trade.includes('/new'));
      expect(new Set(seen).size).toBe(seen.length);
      expect([...old].sort()).toEqual(
        tape.map((trade, i) => `${market.outcomes[i % 2]?.outcomeId}/${trade.tradeId}`).sort(),
      );
    },
  );

  /** Two sweeps in one instant, trades without a side, and different ordinals. Ids do not reflect the order. */
  const TIES = [
    { price: '0.30', side: 'buy', ordinal: 0, place: 5 },
    { price: '0.99', side: 'sell', ordinal: 0, place: 0 },
    { price: '0.07', side: 'buy', ordinal: 0, place: 4 },
    { price: '0.4', side: undefined, ordinal: 0, place: 3 },
    { price: '0.1', side: 'sell', ordinal: 0, place: 1 },
    { price: '0.3', side: undefined, ordinal: 0, place: 2 },
    { price: '0.01', side: 'sell', ordinal: 2, place: 7 },
    { price: '0.98', side: 'buy', ordinal: 1, place: 6 },
  ] as const;

  it.each(['asc', 'desc'] as const)('of one instant are returned in order %s of a sweep', async (direction) => {
    const market = await aStoredMarket(api.db);
    const ties = TIES.map(({ side, ...rest }, i) => ({
      ...rest,
      tokenId: tokenOf(market),
      at: at(0),
      // Trade 3 has the lower id of the two without a side.
      tradeId: `t${(i * 5) % 8}`,
      ...(side && { side }),
    }));
    await storedTrades(api.db, ties);
    const expected = ties.toSorted((a, b) => a.place - b.place).map(({ tradeId }) => tradeId);
    if (direction === 'desc') expected.reverse();
    for (const limit of [1, 3, 8]) {
      const seen: string[] = [];
      let cursor: string | null | undefined;
      do {
        const query = `limit=${limit}&direction=${direction}${cursor ? `&cursor=${cursor}` : ''}`;
        const { body } = await client.market(`/v1/all/markets/${market.marketId}/trades?${query}`);
        seen.push(...(body.data as { trade_id: string }[]).map(({ trade_id }) => trade_id));
        cursor = body.meta.next_cursor;
      } while (cursor);
      expect(seen).toEqual(expected);
    }
  });

  it('can be limited to [start, end) and one outcome', async () => {
    const market = await aStoredMarket(api.db);
    await storedTrades(
      api.db,
      [-3_000, -2_000, -1_000].map((ms, i) => ({ tokenId: tokenOf(market, i % 2), at: at(ms), tradeId: `t${i}` })),
    );
    const path = `/v1/all/markets/${market.marketId}/trades`;
    const ids = async (query: string) =>
      ((await client.market(`${path}?${query}`)).body.data as { trade_id: string }[]).map(({ trade_id }) => trade_id);
    expect(await ids(`start=${NOW - 3}&end=${NOW - 1}&direction=asc`)).toEqual(['t0', 't1']);
    expect(await ids(`start=${NOW - 2}`)).toEqual(['t2', 't1']);
    expect(await ids(`outcome_id=${encodeURIComponent(market.outcomes[0]?.outcomeId ?? '')}`)).toEqual(['t2', 't0']);
  });

  it('reject a cursor of the other direction or range', async () => {
    const market = await aStoredMarket(api.db);
    await storedTrades(
      api.db,
      [0, 1, 2].map((i) => ({ tokenId: tokenOf(market), at: at(-i * 1000), tradeId: `t${i}` })),
    );
    const path = `/v1/all/markets/${market.marketId}/trades`;
    const cursor = (await client.market(`${path}?limit=1`)).body.meta.next_cursor;
    for (const query of [`direction=asc&cursor=${cursor}`, `start=5&cursor=${cursor}`]) {
      expect((await client.market(`${path}?${query}`)).body.error.code).toBe('invalid_cursor');
    }
    const other = await aStoredMarket(api.db);
    const foreign = await client.market(`/v1/all/markets/${other.marketId}/trades?cursor=${cursor}`);
    expect(foreign.body.error.code).toBe('invalid_cursor');
  });
});

describe('orderbook', () => {
  it('has falling bids, rising asks, best prices and an exact spread', async () => {
    const market = await aStoredMarket(api.db);
    await aStoredBook(api.db, tokenOf(market), {
      asOf: new Date(NOW * 1000),
      bids: [
        ['0.41', '100.50', 3],
        ['0.4', '7'],
      ],
      asks: [
        ['0.4300000000000000001', '1'],
        ['0.44', '2'],
      ],
    });
    const path = `/v1/all/markets/${market.marketId}/orderbook`;
    const answer = await client.market(path);
    expect(answer.body.data).toEqual({
      market_id: market.marketId,
      outcome_id: market.outcomes[0]?.outcomeId,
      as_of: NOW,
      bids: [
        { price: 0.41, size: 100.5, count: 3 },
        { price: 0.4, size: 7 },
      ],
      asks: [
        { price: 0.43, size: 1 },
        { price: 0.44, size: 2 },
      ],
      best_bid: 0.41,
      best_ask: 0.43,
      spread: expect.closeTo(0.02),
    });
    expect(answer.text).toContain('"spread":0.0200000000000000001');
    const shallow = (await client.market(`${path}?depth=1`)).body.data as { bids: []; asks: [] };
    expect([shallow.bids.length, shallow.asks.length]).toEqual([1, 1]);
  });

  it('omits the fields of an empty side', async () => {
    const market = await aStoredMarket(api.db);
    await aStoredBook(api.db, tokenOf(market), { asOf: new Date(NOW * 1000), bids: [], asks: [['0.5', '1']] });
    const data = (await client.market(`/v1/all/markets/${market.marketId}/orderbook`)).body.data;
    expect(data).toMatchObject({ bids: [], best_ask: 0.5 });
    expect(data).not.toHaveProperty('best_bid');
    expect(data).not.toHaveProperty('spread');
  });

  it('reports a missing book, with Retry-After when a fetch may find one', async () => {
    const open = await aStoredMarket(api.db);
    const over = await aStoredMarket(api.db, { status: 'settled' });
    const answers = await Promise.all(
      [open, over].map(({ marketId }) => client.market(`/v1/all/markets/${marketId}/orderbook`)),
    );
    expect(answers.map(({ status, body, headers }) => [status, body.error.code, headers.get('retry-after')])).toEqual([
      [404, 'orderbook_not_available', '5'],
      [404, 'orderbook_not_available', null],
    ]);
  });
});

describe('the meta of an orderbook', () => {
  const metaOf = async (market: TestMarket) =>
    (await client.market(`/v1/all/markets/${market.marketId}/orderbook`)).body.meta;
  const AGE = sql(
    'test_age_book',
    `UPDATE book_latest SET received_at = date_trunc('second', now()) - interval '90 seconds' WHERE token_id = $1
     RETURNING extract(epoch FROM received_at)::int AS at`,
  );

  it.each(['open', 'halted'] as const)('says live while a market that is %s is polled', async (status) => {
    const market = await aStoredMarket(api.db, { status });
    await aStoredBook(api.db, tokenOf(market), { asOf: new Date(NOW * 1000), bids: [['0.5', '1']], asks: [] });
    const meta = await metaOf(market);
    expect(meta).toMatchObject({ market_status: status, live: true });
    expect(meta).not.toHaveProperty('observed_at');
  });

  it.each(['open', 'closed', 'resolved', 'settled'] as const)(
    'says not live, and when a poll last saw the book, for an old book of a market that is %s',
    async (status) => {
      const market = await aStoredMarket(api.db, { status });
      await aStoredBook(api.db, tokenOf(market), { asOf: new Date(NOW * 1000), bids: [['0.5', '1']], asks: [] });
      const [row] = await api.db.query<{ at: number }>(AGE, [tokenOf(market)]);
      expect(await metaOf(market)).toMatchObject({ market_status: status, live: false, observed_at: row?.at });
    },
  );

  it('says not live for a book that was seen just before its market was resolved', async () => {
    const market = await aStoredMarket(api.db, { status: 'resolved' });
    await aStoredBook(api.db, tokenOf(market), { asOf: new Date(NOW * 1000), bids: [['0.5', '1']], asks: [] });
    expect(await metaOf(market)).toMatchObject({
      market_status: 'resolved',
      live: false,
      observed_at: expect.any(Number),
    });
  });
});

describe('an orderbook that the venue does not have', () => {
  it('is orderbook_not_supported, without Retry-After', async () => {
    const pollMs = { markets: 60_000, prices: 5_000, books: 5_000, trades: 2_000 };
    const both = await startTestApi({ venues: enabledVenues(['manifold', 'limitless'], pollMs) });
    try {
      const caller = await both.client();
      const [bets, pool] = [
        await aStoredMarket(both.db, { venue: 'manifold', hasBook: false }),
        await aStoredMarket(both.db, { venue: 'limitless', hasBook: false }),
      ];
      for (const [path, message] of [
        [`/v1/manifold/markets/${bets.marketId}/orderbook`, 'manifold has no orderbooks'],
        [`/v1/all/markets/${bets.marketId}/orderbook?as_of=1`, 'manifold has no orderbooks'],
        [`/v1/limitless/markets/${pool.marketId}/orderbook`, 'limitless has no orderbook for this market'],
      ]) {
        const { status, headers, body } = await caller.market(path ?? '');
        expect([status, body.error, headers.get('retry-after')]).toEqual([
          404,
          { code: 'orderbook_not_supported', message },
          null,
        ]);
      }
    } finally {
      await both.close();
    }
  });
});

describe('DECIMAL_FORMAT=string', () => {
  it('sends decimal fields as strings and number fields as numbers', async () => {
    const text = await startTestApi({ decimalFormat: 'string' });
    try {
      const market = await aStoredMarket(text.db);
      await aStoredBook(text.db, tokenOf(market), { asOf: new Date(0), bids: [['0.10', '5']], asks: [] });
      const strings = await text.client();
      const answer = await strings.market(`/v1/all/markets/${market.marketId}/orderbook`);
      expect(answer.text).toContain('"bids":[{"price":"0.1","size":"5"}]');
      const alert = await strings.account('POST', '/v1/alerts', { tokenMint: 'x', condition: 'above', price: 0.5 });
      expect(alert.text).toContain('"price":0.5');
    } finally {
      await text.close();
    }
  });
});
