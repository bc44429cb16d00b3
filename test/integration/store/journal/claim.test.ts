import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Change } from '../../../../src/domain/live/change.ts';
import { decimal } from '../../../../src/domain/values/decimal.ts';
import { Partitions } from '../../../../src/store/db/partitions.ts';
import { sql } from '../../../../src/store/db/tx.ts';
import { closeGaps, openGap } from '../../../../src/store/feeds/gaps.ts';
import { CLAIM, LOOK, type Look } from '../../../../src/store/journal/claim.ts';
import { readJournalHead, SETTINGS } from '../../../../src/store/journal/read-journal.ts';
import { markMarkets, PUBLISH_KINDS } from '../../../../src/store/marks/publish-marks.ts';
import { sweepPrices, type TokenPrice, writePrices } from '../../../../src/store/prices/prices.ts';
import { writeBooks } from '../../../../src/store/series/books.ts';
import { foldCandles } from '../../../../src/store/series/candles.ts';
import { writeTrades } from '../../../../src/store/series/trades.ts';
import { aStoredMarket, type TestMarket } from '../../../factories/stored-market.ts';
import { gate } from '../../../support/gate.ts';
import { changesAfter, publishPending } from '../../../support/journal.ts';
import { createTestDatabase, type TestDatabase } from '../../../support/postgres/database.ts';

const AGE_OPEN_CANDLES = sql(
  'test_age_minute',
  `UPDATE journal_head SET closed_until = closed_until - 60 WHERE turn = (SELECT max(turn) FROM journal_head)`,
);

const ADD_MARKS = sql(
  'test_add_marks',
  'INSERT INTO publish_mark (key, kind) SELECT $1, $2 FROM generate_series(1, $3::int)',
);

/** The pages of the database that a claim without new marks reads, in the plan of the publisher. */
async function pagesOfClaim(): Promise<number> {
  return test.db.transaction(async ({ em, query }) => {
    await query(SETTINGS);
    const [row] = (await em.query(
      `EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) ${CLAIM.text.replaceAll('$1', '2000')}`,
    )) as { 'QUERY PLAN': { Plan: { 'Shared Hit Blocks': number; 'Shared Read Blocks': number } }[] }[];
    const plan = row?.['QUERY PLAN'][0]?.Plan;
    if (!plan) throw new TypeError('no plan');
    return plan['Shared Hit Blocks'] + plan['Shared Read Blocks'];
  });
}

let test: TestDatabase;
let market: TestMarket;
let nowMs: number;
beforeEach(async () => {
  test = await createTestDatabase();
  market = await aStoredMarket(test.db, { marketId: 'm-1', stats: ['12.50', null, null] });
  const partitions = new Partitions(test.db);
  nowMs = Math.floor(Date.now() / 1000) * 1000;
  for (const table of ['observation', 'price_history', 'book_history'] as const)
    await partitions.ensureAroundNow(table);
  await partitions.ensure('trade', [nowMs, nowMs - 3_600_000, nowMs - 90 * 86_400_000]);
});
afterEach(() => test.drop());

function outcome(index = 0) {
  const found = market.outcomes[index];
  if (!found) throw new TypeError('no such outcome');
  return found;
}

function quote(price: string, asOfMs: number, index = 0): TokenPrice {
  return { tokenId: outcome(index).tokenId, price: decimal(price), bid: decimal('0.40'), asOfMs };
}

const write = (...prices: TokenPrice[]) => test.db.transaction((tx) => writePrices(tx, prices));

function trade(tradeId: string, tsMs: number, price = '0.5') {
  return {
    tradeId,
    outcomeId: outcome().outcomeId,
    marketId: market.marketId,
    tsMs,
    price,
    size: '2',
    side: 'buy' as const,
  };
}

const store = (...trades: ReturnType<typeof trade>[]) =>
  test.db.transaction((tx) => writeTrades(tx, trades as never, 'USD'));

async function look(): Promise<Look | undefined> {
  const [found] = await test.db.query<Look>(LOOK);
  return found;
}

function summary(changes: readonly Change[]) {
  return changes.map(({ seq, kind, outcomeId, body }) => ({ seq, kind, outcomeId, price: body['price'] }));
}

describe('a claim', () => {
  it('publishes the latest value of a quote once when it changed several times', async () => {
    await write(quote('0.41', nowMs - 3_000));
    await write(quote('0.42', nowMs - 2_000), quote('0.58', nowMs - 2_000, 1));
    await write(quote('0.43', nowMs - 1_000));
    await publishPending(test.db);
    const changes = await changesAfter(test.db);
    expect(summary(changes)).toEqual([
      { seq: 1, kind: 'price', outcomeId: 'm-1:no', price: '0.58' },
      { seq: 2, kind: 'price', outcomeId: 'm-1:yes', price: '0.43' },
    ]);
    expect(changes[1]).toMatchObject({
      venue: 'polymarket',
      marketId: 'm-1',
      body: {
        market_id: 'm-1',
        outcome_id: 'm-1:yes',
        as_of: nowMs / 1000 - 1,
        price: '0.43',
        probability: '0.43',
        best_bid: '0.4',
      },
    });
    expect(changes[1]?.body).not.toHaveProperty('best_ask');
  });

  it('names the markets of quotes that were only seen again, in one change for all of them', async () => {
    await write(quote('0.41', nowMs - 3_000), quote('0.59', nowMs - 3_000, 1));
    await publishPending(test.db);
    await write(quote('0.41', nowMs - 2_000), quote('0.59', nowMs - 2_000, 1));
    expect(await publishPending(test.db)).toMatchObject([{ marks: 1, byKind: { facts: 1 } }]);
    expect((await changesAfter(test.db, 2)).map(({ marketId, body }) => ({ marketId, body }))).toEqual([
      { marketId: '', body: { market_id: '', about: 'quote-age', market_ids: ['m-1'] } },
    ]);
  });

  it('reads no marks that are published, however many there are', async () => {
    await store(trade('a', nowMs - 2_000));
    await publishPending(test.db);
    const few = await pagesOfClaim();
    await test.db.query(ADD_MARKS, [market.pk, PUBLISH_KINDS.market, 100_000]);
    await publishPending(test.db, 50_000);
    await test.db.query(sql('test_analyze_marks', 'ANALYZE publish_mark'));
    expect((await pagesOfClaim()) - few).toBeLessThan(50);
  });

  it('publishes nothing for a quote of a sweep that did not change', async () => {
    await write(quote('0.41', nowMs - 3_000));
    await publishPending(test.db);
    await test.db.transaction((tx) => sweepPrices(tx, [quote('0.41', nowMs - 2_000)]));
    expect(await look()).toMatchObject({ hasWork: false });
    expect(await publishPending(test.db)).toMatchObject([{ changes: 0, seq: 1 }]);
  });

  it('publishes every trade once, also when a page repeats it', async () => {
    await store(trade('a', nowMs - 2_000), trade('b', nowMs - 1_000, '0.510'));
    await store(trade('b', nowMs - 1_000), trade('c', nowMs));
    await publishPending(test.db);
    const trades = (await changesAfter(test.db)).filter(({ kind }) => kind === 'trade');
    expect(trades.map(({ body }) => body['trade_id'])).toEqual(['a', 'b', 'c']);
    expect(trades[1]?.body).toEqual({
      market_id: 'm-1',
      outcome_id: 'm-1:yes',
      trade_id: 'b',
      timestamp: nowMs / 1000 - 1,
      price: '0.510',
      size: '2',
      side: 'buy',
      received_at: expect.any(Number),
    });
  });

  it('publishes trades older than ten minutes as one range per market', async () => {
    await store(trade('old', nowMs - 3_600_000), trade('older', nowMs - 3_700_000), trade('fresh', nowMs));
    await publishPending(test.db);
    const changes = (await changesAfter(test.db)).toSorted((a, b) => (a.kind < b.kind ? 1 : -1));
    expect(changes.map(({ kind, outcomeId, body }) => ({ kind, outcomeId, body }))).toMatchObject([
      { kind: 'trade', body: { trade_id: 'fresh' } },
      {
        kind: 'history',
        outcomeId: undefined,
        body: { market_id: 'm-1', series: 'trades', start: nowMs / 1000 - 3_700, end: nowMs / 1000 - 3_600 + 1 },
      },
    ]);
  });

  it('publishes a book when its best level changed, and not when a deeper level did', async () => {
    const book = (asOfMs: number, bids: string[][], asks: string[][]) =>
      test.db.transaction((tx) =>
        writeBooks(tx, [
          {
            tokenId: outcome().tokenId,
            asOfMs,
            bids: bids.map(([price = '', size = '']) => ({ price, size })),
            asks: asks.map(([price = '', size = '']) => ({ price, size })),
          } as never,
        ]),
      );
    await book(
      nowMs - 3_000,
      [
        ['0.40', '5'],
        ['0.39', '7'],
      ],
      [],
    );
    await book(
      nowMs - 2_000,
      [
        ['0.40', '5'],
        ['0.39', '8'],
      ],
      [],
    );
    expect(await publishPending(test.db)).toMatchObject([{ byKind: { book: 1, facts: 1 } }]);
    await book(nowMs - 1_000, [['0.40', '6']], [['0.45', '1']]);
    await publishPending(test.db);
    const changes = (await changesAfter(test.db)).filter(({ kind }) => kind === 'book');
    expect(changes.map(({ body }) => body)).toEqual([
      {
        market_id: 'm-1',
        outcome_id: 'm-1:yes',
        as_of: nowMs / 1000 - 2,
        bids: [{ price: '0.40', size: '5' }],
        asks: [],
        best_bid: '0.40',
      },
      {
        market_id: 'm-1',
        outcome_id: 'm-1:yes',
        as_of: nowMs / 1000 - 1,
        bids: [{ price: '0.40', size: '6' }],
        asks: [{ price: '0.45', size: '1' }],
        best_bid: '0.40',
        best_ask: '0.45',
        spread: '0.05',
      },
    ]);
  });

  it('publishes a candle at each fold, and once more as closed when its minute has ended', async () => {
    const minute = BigInt(Math.floor(Date.now() / 60_000) * 60 + 60);
    await store(trade('a', Number(minute) * 1000));
    await test.db.transaction((tx) => foldCandles(tx, [{ id: 1n, key: outcome().tokenId, detail: minute }]));
    await publishPending(test.db);
    const candles = async () =>
      (await changesAfter(test.db))
        .filter(({ kind }) => kind === 'candle')
        .map(({ body }) => [body['timestamp'], body['closed'], body['close'], body['trades']]);
    expect(await candles()).toEqual([[Number(minute), false, '0.5', 1]]);
    // The minute is made to end: its candle moves into the past, and the head with it.
    const past = sql(
      'test_end_minute',
      `WITH c AS (UPDATE candle SET bucket = bucket - 120 WHERE interval_seconds = 60)
       UPDATE open_candle SET bucket = bucket - 120`,
    );
    await test.db.query(past);
    for (let i = 0; i < 2; i++) await test.db.query(AGE_OPEN_CANDLES);
    await publishPending(test.db);
    await publishPending(test.db);
    expect(await candles()).toEqual([
      [Number(minute), false, '0.5', 1],
      [Number(minute) - 120, true, '0.5', 1],
    ]);
  });

  it('publishes the folds of old minutes as one range per market', async () => {
    const minute = BigInt(Math.floor(Date.now() / 60_000) * 60 - 7_200);
    await test.db.transaction((tx) => writeTrades(tx, [trade('x', Number(minute) * 1000)] as never, 'USD'));
    await publishPending(test.db);
    const { seq } = await readJournalHead(test.db);
    await test.db.transaction((tx) => foldCandles(tx, [{ id: 1n, key: outcome().tokenId, detail: minute }]));
    await publishPending(test.db);
    expect(await changesAfter(test.db, seq)).toMatchObject([
      { kind: 'history', body: { series: 'candles', start: Number(minute), end: Number(minute) + 60 } },
    ]);
  });

  it('publishes a gap of a feed without an end at its start, and with its end later', async () => {
    const gap = '0199d3a0-0000-7000-8000-000000000001';
    const feed = { venue: 'polymarket', marketPks: [market.pk] };
    const opened = { ...feed, gap, affected: 'books', reason: 'silent', fromMs: nowMs - 4_900 };
    await test.db.transaction((tx) => openGap(tx, opened));
    await publishPending(test.db);
    await test.db.transaction((tx) => closeGaps(tx, { ...feed, toMs: nowMs - 900 }));
    await publishPending(test.db);
    const from = Math.floor((nowMs - 4_900) / 1000);
    const body = { gap_id: gap, market_id: 'm-1', from, affected: 'books', reason: 'silent' };
    expect(await changesAfter(test.db)).toMatchObject([
      { seq: 1, kind: 'gap', venue: 'polymarket', marketId: 'm-1', body: { ...body, to: null } },
      { seq: 2, kind: 'gap', venue: 'polymarket', marketId: 'm-1', body: { ...body, to: nowMs / 1000 } },
    ]);
  });

  it('publishes a gap of a feed that ended between two claims once', async () => {
    const gap = '0199d3a0-0000-7000-8000-000000000002';
    const feed = { venue: 'polymarket', marketPks: [market.pk] };
    const opened = { ...feed, gap, affected: 'books', reason: 'sequence_gap', fromMs: nowMs - 2_000 };
    await test.db.transaction((tx) => openGap(tx, opened));
    await test.db.transaction((tx) => closeGaps(tx, { ...feed, toMs: nowMs - 1_000 }));
    await publishPending(test.db);
    const changes = await changesAfter(test.db);
    expect(changes.map(({ body }) => [body['from'], body['to']])).toEqual([[nowMs / 1000 - 2, nowMs / 1000 - 1]]);
  });

  it('publishes a market with the fields of the read API', async () => {
    await test.db.transaction((tx) => markMarkets(tx, [market.pk, market.pk]));
    await publishPending(test.db);
    const [change, ...more] = await changesAfter(test.db);
    expect(more).toEqual([]);
    expect(change).toMatchObject({
      kind: 'market',
      marketId: 'm-1',
      body: {
        market_id: 'm-1',
        venue: 'polymarket',
        title: 'Will it rain?',
        status: 'open',
        tags: [],
        volume: '12.50',
        outcomes: [
          { outcome_id: 'm-1:yes', label: 'Yes' },
          { outcome_id: 'm-1:no', label: 'No' },
        ],
      },
    });
  });

  it('takes a mark that commits late, behind later marks, in the next claim', async () => {
    const written = gate();
    const mayCommit = gate();
    const late = test.db.transaction(async (tx) => {
      await writePrices(tx, [quote('0.30', nowMs - 3_000)]);
      written.open();
      await mayCommit.opened;
    });
    await written.opened;
    await write(quote('0.70', nowMs - 2_000, 1));
    expect(await publishPending(test.db)).toMatchObject([{ changes: 1 }]);
    expect(await publishPending(test.db)).toMatchObject([{ changes: 0 }]);
    expect(await look()).toMatchObject({ hasWork: false });
    mayCommit.open();
    await late;
    expect(await look()).toMatchObject({ hasWork: true });
    expect(await publishPending(test.db)).toMatchObject([{ changes: 1 }]);
    expect(summary(await changesAfter(test.db))).toEqual([
      { seq: 1, kind: 'price', outcomeId: 'm-1:no', price: '0.7' },
      { seq: 2, kind: 'price', outcomeId: 'm-1:yes', price: '0.3' },
    ]);
  });

  it('numbers the changes of many claims without a hole, each trade once, when a claim takes three marks', async () => {
    const ids = Array.from({ length: 40 }, (_, i) => `t-${i}`);
    for (let i = 0; i < 40; i += 8)
      await store(...ids.slice(i, i + 8).map((id, n) => trade(id, nowMs - 60_000 + i * 100 + n)));
    const claims = await publishPending(test.db, 3);
    expect(claims.length).toBeGreaterThan(13);
    const trades = (await changesAfter(test.db)).filter(({ kind }) => kind === 'trade');
    expect(trades.map(({ seq }) => seq)).toEqual(ids.map((_, i) => i + 1));
    expect(trades.map(({ body }) => body['trade_id'])).toEqual(ids);
    expect(await look()).toMatchObject({ hasWork: false });
  });

  it('advances checked_at when it leaves nothing behind, and not while marks remain', async () => {
    await store(...Array.from({ length: 6 }, (_, i) => trade(`t-${i}`, nowMs - i)));
    const before = await readJournalHead(test.db);
    const claims = await publishPending(test.db, 2);
    const after = await readJournalHead(test.db);
    expect(claims.map(({ isFull }) => isFull).slice(0, 3)).toEqual([true, true, true]);
    expect(after.checkedAt.getTime()).toBeGreaterThan(before.checkedAt.getTime());
  });

  it('begins another epoch with higher numbers when the journal comes from another database', async () => {
    await write(quote('0.41', nowMs));
    await publishPending(test.db);
    const before = await readJournalHead(test.db);
    await test.db.query(sql('test_foreign', `UPDATE journal_head SET origin = 'elsewhere'`));
    await write(quote('0.42', nowMs + 1));
    await publishPending(test.db);
    const founded = await readJournalHead(test.db);
    expect(founded.epoch).not.toBe(before.epoch);
    expect(founded.seq).toBeGreaterThan(before.seq);
    expect(founded.oldestSeq).toBe(founded.seq + 1);
    await write(quote('0.43', nowMs + 2));
    await publishPending(test.db);
    expect(await changesAfter(test.db, founded.seq)).toMatchObject([{ seq: founded.seq + 1, body: { price: '0.43' } }]);
  });
});
