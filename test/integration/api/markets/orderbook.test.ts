import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { beforeAll, describe, expect, it } from 'vitest';
import { createReadTracker } from '../../../../api/reads/read-tracker.ts';
import { decimal } from '../../../../src/domain/values/decimal.ts';
import { createLogger } from '../../../../src/observe/logger.ts';
import { Partitions } from '../../../../src/store/db/partitions.ts';
import { sql } from '../../../../src/store/db/tx.ts';
import { closeGaps, openGap } from '../../../../src/store/feeds/gaps.ts';
import { writeBooks } from '../../../../src/store/series/books.ts';
import { aStoredMarket, type TestMarket } from '../../../factories/stored-market.ts';
import { aStoredPrice } from '../../../factories/stored-series.ts';
import { startTestApi } from '../api-harness.ts';
import { withApi } from '../with-api.ts';

const RECEIVED = sql(
  'test_received_books',
  `UPDATE book_history SET received_at = to_timestamp($2::float8) WHERE token_id = $1 AND as_of = to_timestamp($3::float8)`,
);
const READS = sql(
  'test_market_reads',
  `SELECT m.venue_market_id AS id, extract(epoch FROM now() - read_at)::float8 AS age
   FROM market_read r JOIN market m ON m.id = r.market_id ORDER BY read_at DESC`,
);
const FORGET = sql('test_forget_reads', 'DELETE FROM market_read');

const { api, client } = withApi();

beforeAll(async () => {
  await new Partitions(api.db).ensureAroundNow('book_history');
});

const tokenOf = ({ outcomes: [first] }: TestMarket) => first?.tokenId ?? 0n;
const level = (price: string) => ({ price: decimal(price), size: decimal('5') });
const pathOf = ({ marketId }: TestMarket) => `/v1/polymarket/markets/${marketId}/orderbook`;

describe('orderbook?as_of', () => {
  /** Stores one book per reception second, each with one more bid. The time of the book is one second earlier. */
  async function aMarketWithBooks(...received: number[]): Promise<TestMarket> {
    const market = await aStoredMarket(api.db);
    const tokenId = tokenOf(market);
    for (const [index, at] of received.entries()) {
      const bids = ['0.4', '0.3', '0.2'].slice(0, index + 1).map(level);
      const book = { tokenId, asOfMs: (at - 1) * 1000, bids, asks: [level('0.6')] };
      await api.db.transaction((tx) => writeBooks(tx, [book]));
      await api.db.query(RECEIVED, [tokenId, at, at - 1]);
    }
    return market;
  }
  const nowSeconds = () => Math.floor(api.clock.nowMs / 1000);

  it('returns the book known at that moment, with the time of the book', async () => {
    const at = nowSeconds() - 3_600;
    const market = await aMarketWithBooks(at, at + 60);
    const read = async (second: number, more = '') => client.market(`${pathOf(market)}?as_of=${second}${more}`);
    const answer = await read(at);
    expect(answer.body.data).toEqual({
      market_id: market.marketId,
      outcome_id: market.outcomes[0]?.outcomeId,
      as_of: at - 1,
      bids: [{ price: 0.4, size: 5 }],
      asks: [{ price: 0.6, size: 5 }],
      best_bid: 0.4,
      best_ask: 0.6,
      spread: 0.2,
    });
    expect(answer.headers.get('cache-control')).toBe('private, max-age=60');
    expect((await read(at + 59)).body.data).toEqual(answer.body.data);
    expect((await read(at + 60)).body.data).toMatchObject({ as_of: at + 59, bids: [{}, {}] });
    expect((await read(at + 60, '&depth=1')).body.data).toMatchObject({ bids: [{ price: 0.4 }] });
    expect((await read(nowSeconds())).headers.get('cache-control')).toBe('private, max-age=1');
  });

  it('names a gap of the feed that contains the moment', async () => {
    const at = nowSeconds() - 3_600;
    const market = await aMarketWithBooks(at);
    const feed = { venue: 'polymarket', marketPks: [market.pk], affected: 'books', reason: 'silent' };
    await openGap(api.db, { ...feed, gap: randomUUID(), fromMs: (at + 10) * 1000, toMs: (at + 20) * 1000 });
    const gapsAt = async (second: number) =>
      (await client.market(`${pathOf(market)}?as_of=${second}`)).body.meta['feed_gaps'];
    expect(await gapsAt(at + 9)).toBeUndefined();
    expect(await gapsAt(at + 10)).toEqual([{ start: at + 10, end: at + 20, cause: 'silent' }]);
    expect(await gapsAt(at + 20)).toBeUndefined();
  });

  it('is no_data_yet before the first book and for an outcome without books', async () => {
    const at = nowSeconds() - 100;
    const market = await aMarketWithBooks(at);
    const early = await client.market(`${pathOf(market)}?as_of=${at - 1}`);
    expect([early.status, early.body.error.code]).toEqual([404, 'no_data_yet']);
    const other = await client.market(`${pathOf(market)}?as_of=${at}&outcome_id=${market.outcomes[1]?.outcomeId}`);
    expect([other.status, other.body.error.code]).toEqual([404, 'no_data_yet']);
    expect(api.wakes).toEqual([]);
  });

  it('returns 400 for the future and for an invalid moment', async () => {
    const market = await aMarketWithBooks(nowSeconds() - 100);
    for (const text of [`${nowSeconds() + 1}`, 'now', '-1', '1.5', '']) {
      const { status, body } = await client.market(`${pathOf(market)}?as_of=${text}`);
      expect([status, body.error.code, body.error.details?.[0]?.path]).toEqual([400, 'invalid_request', 'as_of']);
    }
  });
});

describe('the latest orderbook', () => {
  it('names a gap of the feed until the book is seen after its end', async () => {
    const market = await aStoredMarket(api.db);
    const feed = { venue: 'polymarket', marketPks: [market.pk] };
    const nowMs = Date.now();
    const see = () => {
      const book = { tokenId: tokenOf(market), asOfMs: Date.now(), bids: [level('0.4')], asks: [] };
      return api.db.transaction((tx) => writeBooks(tx, [book]));
    };
    const gaps = async () => (await client.market(`${pathOf(market)}?depth=${++depth}`)).body.meta['feed_gaps'];
    let depth = 0;
    await see();
    expect(await gaps()).toBeUndefined();
    const opened = { ...feed, gap: randomUUID(), affected: 'books', reason: 'hash_mismatch', fromMs: nowMs };
    await openGap(api.db, opened);
    const start = Math.floor(nowMs / 1000);
    expect(await gaps()).toEqual([{ start, end: null, cause: 'hash_mismatch' }]);
    await see();
    expect(await gaps()).toEqual([{ start, end: null, cause: 'hash_mismatch' }]);
    const toMs = Date.now();
    await closeGaps(api.db, { ...feed, toMs });
    expect(await gaps()).toEqual([{ start, end: Math.ceil(toMs / 1000), cause: 'hash_mismatch' }]);
    await delay(2);
    await see();
    expect(await gaps()).toBeUndefined();
    await api.reads.flush();
  });
});

describe('reads of markets', () => {
  const noted = async () => {
    await api.reads.flush();
    return (await api.db.query<{ id: string; age: number }>(READS)).map(({ id }) => id);
  };

  it.each(['', '/prices', '/candles', '/volume', '/snapshots', '/orderbook', '/trades'])(
    'record the read of one market%s',
    async (route) => {
      const market = await aStoredMarket(api.db, { status: 'resolved' });
      await aStoredPrice(api.db, tokenOf(market), { price: '0.5', asOf: new Date() });
      await api.db.query(FORGET);
      await client.market(`/v1/polymarket/markets/${market.marketId}${route}`);
      expect(await noted()).toEqual([market.marketId]);
    },
  );

  it('record each market of a batch', async () => {
    const markets = [await aStoredMarket(api.db), await aStoredMarket(api.db)];
    await api.db.query(FORGET);
    await client.market(`/v1/polymarket/prices?market_ids=${markets.map(({ marketId }) => marketId).join(',')}`);
    expect((await noted()).sort()).toEqual(markets.map(({ marketId }) => marketId).sort());
  });

  it('record nothing for an unknown market, a list, the past, or a rejected request', async () => {
    const market = await aStoredMarket(api.db);
    await api.db.query(FORGET);
    await client.market('/v1/polymarket/markets/unheard-of/candles');
    await client.market('/v1/polymarket/markets');
    for (const route of ['', '/prices', '/orderbook']) {
      await client.market(`/v1/polymarket/markets/${market.marketId}${route}?as_of=1`);
    }
    await api.call(`/v1/polymarket/markets/${market.marketId}/candles`);
    expect(await noted()).toEqual([]);
  });
});

describe('the read tracker', () => {
  it('writes one row per market at the flush, with the time of the read', async () => {
    const market = await aStoredMarket(api.db);
    await api.db.query(FORGET);
    let nowMs = 1_000;
    const tracker = createReadTracker(api.db, createLogger({ process: 'test', level: 'silent' }), () => nowMs);
    for (let read = 0; read < 100; read++) tracker.note(market.pk);
    expect(await api.db.query(READS)).toEqual([]);
    nowMs += 90_000;
    await tracker.close();
    const [row] = await api.db.query<{ id: string; age: number }>(READS);
    expect(row?.id).toBe(market.marketId);
    expect(row?.age).toBeGreaterThanOrEqual(90);
    expect(row?.age).toBeLessThan(3_600);
  });

  it('keeps unwritten reads for the next flush', async () => {
    const lines: string[] = [];
    const behind = await startTestApi({}, { behindProxy: true });
    try {
      const log = createLogger({
        process: 'test',
        level: 'debug',
        destination: { write: (line) => void lines.push(line) },
      });
      const tracker = createReadTracker(behind.db, log);
      const market = await aStoredMarket(behind.db);
      tracker.note(market.pk);
      await behind.proxy?.cut();
      await tracker.flush();
      expect(lines.join('')).toContain('market reads not written');
      await behind.proxy?.reopen();
      await tracker.close();
      expect(await behind.db.query(READS)).toMatchObject([{ id: market.marketId }]);
    } finally {
      await behind.close();
    }
  });
});
