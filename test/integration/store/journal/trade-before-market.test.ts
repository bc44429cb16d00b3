import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Change } from '../../../../src/domain/live/change.ts';
import type { MarketRecord, TradeRecord } from '../../../../src/domain/markets/market.ts';
import { decimal } from '../../../../src/domain/values/decimal.ts';
import { writeMarkets } from '../../../../src/store/catalog/markets.ts';
import { findTokens } from '../../../../src/store/catalog/tokens.ts';
import { Partitions } from '../../../../src/store/db/partitions.ts';
import { sql } from '../../../../src/store/db/tx.ts';
import { PUBLISH_KINDS } from '../../../../src/store/marks/publish-marks.ts';
import { writePrices } from '../../../../src/store/prices/prices.ts';
import { writeBooks } from '../../../../src/store/series/books.ts';
import { foldCandles } from '../../../../src/store/series/candles.ts';
import { readMarketTrades } from '../../../../src/store/series/market-series.ts';
import { writeTrades } from '../../../../src/store/series/trades.ts';
import { aMarketRecord } from '../../../factories/markets.ts';
import { eventually } from '../../../support/eventually.ts';
import { gate } from '../../../support/gate.ts';
import { changesAfter, publishPending } from '../../../support/journal.ts';
import { createTestDatabase, type TestDatabase } from '../../../support/postgres/database.ts';

let test: TestDatabase;
let nowMs: number;
let publishedUpTo: number;
beforeEach(async () => {
  test = await createTestDatabase({ poolSize: 12 });
  publishedUpTo = 0;
  nowMs = Math.floor(Date.now() / 1000) * 1000;
  const partitions = new Partitions(test.db);
  for (const table of ['observation', 'price_history'] as const) await partitions.ensureAroundNow(table);
  await partitions.ensure('trade', [nowMs]);
});
afterEach(() => test.drop());

function aTrade(tradeId: string, marketId = 'm-1'): TradeRecord {
  const outcomeId = `${marketId}:yes`;
  return { tradeId, outcomeId, tsMs: nowMs, price: decimal('0.5'), size: decimal('2'), side: 'buy' };
}
const storeTrades = (...trades: TradeRecord[]) => test.db.transaction((tx) => writeTrades(tx, trades, 'USD'));
const store = (market: MarketRecord) =>
  test.db.transaction((tx) => writeMarkets(tx, 'polymarket', 'USD', [market], Date.now()));
const storeMarket = (marketId = 'm-1') => store(aMarketRecord({ marketId }));
/** The range of a change that contains trades of these times. */
const rangeOf = (fromMs: number, toMs: number) => `${fromMs / 1000}-${toMs / 1000 + 1}`;

const MARK_KINDS = sql('test_mark_kinds', 'SELECT kind FROM publish_mark ORDER BY id');
const LOCK_WAITS = sql(
  'test_lock_waits',
  `SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`,
);
async function waitsForLock(): Promise<void> {
  await eventually(
    () => test.db.query(LOCK_WAITS),
    (waiting) => waiting.length > 0,
    { everyMs: 5 },
  );
}

const secondsOfMinute = (ms: number) => Math.floor(ms / 60_000) * 60;
/** Folds the minutes of these moments. */
async function fold(...moments: number[]): Promise<void> {
  const key = await tokenOf();
  const marks = moments.map((ms, n) => ({ id: BigInt(n), key, detail: BigInt(secondsOfMinute(ms)) }));
  await test.db.transaction((tx) => foldCandles(tx, marks));
}

async function tokenOf(mint = 'm-1:yes'): Promise<bigint> {
  const tokenId = (await findTokens(test.db, [mint])).get(mint);
  if (tokenId === undefined) throw new TypeError('no such token');
  return tokenId;
}

/** The ids of the trades that a reader of the market gets now. */
async function readTradeIds(marketId = 'm-1'): Promise<string[]> {
  const query = { range: {}, direction: 'asc', limit: 100 } as const;
  const read = await readMarketTrades(test.db, { venues: ['polymarket'], marketId }, query);
  return (read?.rows ?? []).map(({ tradeId }) => tradeId);
}

/** The next changes, in their order. */
async function nextChanges(): Promise<Change[]> {
  await publishPending(test.db);
  const changes = await changesAfter(test.db, publishedUpTo);
  publishedUpTo = changes.at(-1)?.seq ?? publishedUpTo;
  return changes;
}

/** The markets and trades of the next claims, and the ranges of trades to read again. */
async function published() {
  return (await nextChanges()).flatMap(({ kind, body }) => {
    if (kind === 'trade') return [body['trade_id']];
    if (kind === 'history') return body['series'] === 'trades' ? [`${body['start']}-${body['end']}`] : [];
    return kind === 'market' ? [kind] : [];
  });
}

describe('a trade that is stored before its market', () => {
  it('is in a range of the listing when a claim takes it before the market', async () => {
    await storeTrades(aTrade('early'), { ...aTrade('earlier'), tsMs: nowMs - 3_000 });
    expect(await published()).toEqual([]);
    await storeMarket();
    expect(await published()).toEqual(['market', rangeOf(nowMs - 3_000, nowMs)]);
    expect(await readTradeIds()).toEqual(['earlier', 'early']);
    await storeTrades(aTrade('early'), aTrade('later'));
    expect(await published()).toEqual(['later']);
  });

  it('has its change too when a claim takes both', async () => {
    await storeTrades(aTrade('early'));
    await storeMarket();
    expect(await published()).toEqual(['early', 'market', rangeOf(nowMs, nowMs)]);
  });

  it('is in a range when the market had the outcome before and lists it again', async () => {
    await storeMarket();
    expect(await published()).toEqual(['market']);
    const record = aMarketRecord({ marketId: 'm-1' });
    await store({ ...record, outcomes: record.outcomes.slice(1) });
    await storeTrades(aTrade('early'));
    expect(await published()).toEqual(['market']);
    await store(record);
    expect(await published()).toEqual(['market', rangeOf(nowMs, nowMs)]);
  });

  it('causes no range when a stored market only changes', async () => {
    await storeMarket();
    await storeTrades(aTrade('own'));
    expect(await published()).toEqual(['market', 'own']);
    await store(aMarketRecord({ marketId: 'm-1', title: 'Another title' }));
    expect(await published()).toEqual(['market']);
  });

  it('is in a range when it was made long ago and its transaction outlasts the claim before the listing', async () => {
    await new Partitions(test.db).ensure('trade', [nowMs - 3_600_000]);
    await storeTrades(aTrade('first'));
    await published();
    const [isWritten, mayCommit] = [gate(), gate()];
    const slow = test.db.transaction(async (tx) => {
      await writeTrades(tx, [{ ...aTrade('old'), tsMs: nowMs - 3_600_000 }], 'USD');
      isWritten.open();
      await mayCommit.opened;
    });
    await isWritten.opened;
    const listing = storeMarket();
    await waitsForLock();
    mayCommit.open();
    await Promise.all([slow, listing]);
    expect(await published()).toEqual(['market', rangeOf(nowMs - 3_600_000, nowMs)]);
  });

  it('reaches the candles as well: those of its minutes are published, and older ones are in a range', async () => {
    const oldMs = nowMs - 3_600_000;
    await new Partitions(test.db).ensure('trade', [oldMs]);
    await storeTrades(aTrade('early'), { ...aTrade('old'), tsMs: oldMs });
    await fold(nowMs, oldMs);
    expect(await nextChanges()).toEqual([]);
    await storeMarket();
    const candles = (await nextChanges()).flatMap(({ kind, body }) => {
      if (kind === 'candle') return [{ timestamp: body['timestamp'], volume: body['volume'] }];
      return kind === 'history' && body['series'] === 'candles' ? [[body['start'], body['end']]] : [];
    });
    expect(candles).toEqual([
      { timestamp: secondsOfMinute(nowMs), volume: '2' },
      [secondsOfMinute(oldMs), secondsOfMinute(oldMs) + 60],
    ]);
  });

  it('leaves its candle in a range when retention has dropped it before the listing', async () => {
    const oldMs = nowMs - 3_600_000;
    await new Partitions(test.db).ensure('trade', [oldMs]);
    await storeTrades({ ...aTrade('old'), tsMs: oldMs });
    await fold(oldMs);
    await test.db.query(sql('test_drop_trades', 'DELETE FROM trade'));
    await published();
    await storeMarket();
    const ranges = (await nextChanges()).filter(({ kind }) => kind === 'history').map(({ body }) => body);
    const start = secondsOfMinute(oldMs);
    expect(ranges).toMatchObject([{ series: 'candles', start, end: start + 60 }]);
  });

  it('comes with the price and the book that were stored before the market', async () => {
    await storeTrades(aTrade('early'));
    const tokenId = await tokenOf();
    await new Partitions(test.db).ensureAroundNow('book_history');
    await test.db.transaction(async (tx) => {
      await writePrices(tx, [{ tokenId, price: decimal('0.61'), asOfMs: nowMs }]);
      const side = [{ price: decimal('0.6'), size: decimal('10') }];
      await writeBooks(tx, [{ tokenId, asOfMs: nowMs, bids: side, asks: [] }]);
    });
    expect(await nextChanges()).toEqual([]);
    await storeMarket();
    const stored = (await nextChanges()).filter(({ kind }) => kind === 'price' || kind === 'book');
    const values = stored.map(({ kind, outcomeId, body }) => [kind, outcomeId, body['price'] ?? body['best_bid']]);
    expect(values.toSorted()).toEqual([
      ['book', 'm-1:yes', '0.6'],
      ['price', 'm-1:yes', '0.61'],
    ]);
  });

  it('is marked with kinds that the publisher of the former release knows', async () => {
    await storeTrades(aTrade('early'));
    const marked = async () => (await test.db.query<{ kind: number }>(MARK_KINDS)).map(({ kind }) => kind);
    const before = await marked();
    await storeMarket();
    expect((await marked()).slice(before.length).toSorted()).toEqual(
      (['price', 'book', 'candle', 'market', 'late-trades', 'facts'] as const)
        .map((kind) => PUBLISH_KINDS[kind])
        .toSorted(),
    );
  });

  it('has its change, and is in the range, when its transaction lasts longer than the claim before the listing', async () => {
    const [isWritten, mayCommit] = [gate(), gate()];
    const slow = test.db.transaction(async (tx) => {
      // Commits the token first: the market would wait for a transaction that adds it.
      await storeTrades(aTrade('first'));
      await writeTrades(tx, [{ ...aTrade('slow'), tsMs: nowMs - 3_000 }], 'USD');
      isWritten.open();
      await mayCommit.opened;
    });
    await isWritten.opened;
    const listing = storeMarket();
    await waitsForLock();
    expect(await published()).toEqual([]);
    mayCommit.open();
    await Promise.all([slow, listing]);
    expect(await published()).toEqual(['slow', 'market', rangeOf(nowMs - 3_000, nowMs)]);
  });

  it('has its change when it is written while the market is stored', async () => {
    await storeTrades(aTrade('first'));
    const [isStored, mayCommit] = [gate(), gate()];
    const listing = test.db.transaction(async (tx) => {
      await writeMarkets(tx, 'polymarket', 'USD', [aMarketRecord({ marketId: 'm-1' })], Date.now());
      isStored.open();
      await mayCommit.opened;
    });
    await isStored.opened;
    const later = storeTrades(aTrade('later'));
    await waitsForLock();
    expect(await published()).toEqual([]);
    mayCommit.open();
    await Promise.all([listing, later]);
    expect(await published()).toEqual(['market', rangeOf(nowMs, nowMs), 'later']);
  });

  it('is never lost: a reader of trades alone gets its change, or a range that contains it', async () => {
    const marketIds = Array.from({ length: 24 }, (_, n) => `m-${n}`);
    const state = { isWriting: true };
    const writeOne = async (marketId: string, n: number) => {
      const writes = [
        ...[1, 2, 3].map((i) => () => storeTrades(aTrade(`${marketId}-${i}`, marketId))),
        () => storeMarket(marketId),
      ];
      const first = n % writes.length;
      await Promise.all([...writes.slice(first), ...writes.slice(0, first)].map((write) => write()));
    };
    // Two at a time, so that none waits for a connection.
    const write = async () => {
      for (let n = 0; n < marketIds.length; n += 2)
        await Promise.all(marketIds.slice(n, n + 2).map((marketId, at) => writeOne(marketId, n / 2 + at)));
    };
    const writing = write().finally(() => {
      state.isWriting = false;
    });
    const known = new Set<unknown>();
    let seq = 0;
    let isLast = false;
    while (!isLast) {
      isLast = !state.isWriting;
      await publishPending(test.db, 5);
      for (const change of await changesAfter(test.db, seq)) {
        seq = change.seq;
        if (change.kind === 'trade') known.add(change.body['trade_id']);
        if (change.kind === 'history' && change.body['series'] === 'trades')
          for (const tradeId of await readTradeIds(change.marketId)) known.add(tradeId);
      }
    }
    await writing;
    expect([...known].toSorted()).toEqual(marketIds.flatMap((id) => [1, 2, 3].map((i) => `${id}-${i}`)).toSorted());
  });
});
