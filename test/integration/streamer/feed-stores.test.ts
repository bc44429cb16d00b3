import { beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { BookRecord, PriceRecord } from '../../../src/domain/markets/market.ts';
import { decimal } from '../../../src/domain/values/decimal.ts';
import { createMetrics } from '../../../src/observe/metrics.ts';
import { ensureTokens } from '../../../src/store/catalog/tokens.ts';
import { Partitions } from '../../../src/store/db/partitions.ts';
import { Database, sql } from '../../../src/store/db/tx.ts';
import { claimParts, createParts } from '../../../src/store/feeds/parts.ts';
import { sweepPrices } from '../../../src/store/prices/prices.ts';
import { feedBookStore, feedPriceStore } from '../../../workers/ingest/price-store.ts';
import { storePage } from '../../../workers/ingest/store-page.ts';
import { batchOf } from '../../../workers/streamer/feed-books.ts';
import { useTestDatabase } from '../../support/postgres/database.ts';
import { untilBlocked } from '../../support/postgres/postgres-lock.ts';

const PRICES = sql('test_feed_prices', 'SELECT token_id, price FROM latest_price ORDER BY token_id');
const BOOKS = sql('test_feed_books', 'SELECT token_id, bids -> 0 ->> 0 AS bid FROM book_latest ORDER BY token_id');
const TAKE = sql('test_take_part', 'UPDATE feed_part SET owner = $1 WHERE part = $2');
const NOW_MS = Date.now();

const test = useTestDatabase();
let tokenIds: bigint[] = [];
let made = 0;
beforeAll(async () => {
  const partitions = new Partitions(test.db);
  for (const table of ['price_history', 'observation', 'book_history'] as const)
    await partitions.ensureAroundNow(table);
  await createParts(test.db, 'kalshi', 2);
});
beforeEach(async () => {
  made += 1;
  tokenIds = [...(await ensureTokens(test.db, [`a-${made}`, `b-${made}`], 'USD')).values()];
  await test.db.query(TAKE, ['one', 0]);
  await test.db.query(TAKE, ['one', 1]);
});

/** A streamer that must store without a transaction of several statements. */
function stores(streamer: string) {
  const db = Object.assign(new Database(test.db.dataSource), {
    transaction: () => Promise.reject(new Error('the write opened a transaction')),
  });
  const deps = {
    db,
    metrics: createMetrics('test'),
    partitions: new Partitions(test.db),
    producer: { wakeStage: () => undefined, wakePublisher: () => undefined },
  };
  const options = { deps: deps as never, streamer, venue: 'kalshi' };
  const outcomeOf = (part: number) => ({
    outcomeId: `${part === 0 ? 'a' : 'b'}-${made}`,
    tokenId: tokenIds[part] ?? 0n,
    marketPk: 1n,
    part,
  });
  const pending = <R extends object>(part: number, record: R, second: number) => ({
    outcome: outcomeOf(part),
    record: { outcomeId: outcomeOf(part).outcomeId, asOfMs: NOW_MS + second * 1_000, ...record },
  });
  return {
    prices: (price: string, second: number) =>
      storePage(
        deps as never,
        feedPriceStore(options),
        batchOf<PriceRecord>([0, 1].map((part) => pending(part, { price: decimal(price) }, second)) as never),
        { venue: 'kalshi' },
      ),
    books: (bid: string, second: number) =>
      storePage(
        deps as never,
        feedBookStore(options),
        batchOf<BookRecord>(
          [0, 1].map((part) => pending(part, { bids: [{ price: bid, size: '1' }], asks: [] }, second)) as never,
        ),
        { venue: 'kalshi' },
      ),
  };
}

const prices = async () =>
  (await test.db.query<{ tokenId: bigint; price: string }>(PRICES))
    .filter(({ tokenId }) => tokenIds.includes(tokenId))
    .map(({ price }) => price);
const books = async () =>
  (await test.db.query<{ tokenId: bigint; bid: string }>(BOOKS))
    .filter(({ tokenId }) => tokenIds.includes(tokenId))
    .map(({ bid }) => bid);

describe('the stores of a feed', () => {
  it('write prices and books in one statement each', async () => {
    const one = stores('one');
    expect(await one.prices('0.4', 1)).toMatchObject({ written: 2 });
    expect(await one.books('0.4', 1)).toMatchObject({ written: 2 });
    expect([await prices(), await books()]).toEqual([
      ['0.4', '0.4'],
      ['0.4', '0.4'],
    ]);
  });

  it('ignore the parts that another streamer took', async () => {
    const [one, two] = [stores('one'), stores('two')];
    await one.prices('0.4', 1);
    await one.books('0.4', 1);
    await test.db.query(TAKE, ['two', 1]);
    expect(await one.prices('0.5', 2)).toMatchObject({ written: 1 });
    expect(await one.books('0.5', 2)).toMatchObject({ written: 1 });
    expect([await prices(), await books()]).toEqual([
      ['0.5', '0.4'],
      ['0.5', '0.4'],
    ]);
    expect(await two.prices('0.6', 3)).toMatchObject({ written: 1 });
    expect(await prices()).toEqual(['0.5', '0.6']);
    await test.db.query(TAKE, ['two', 0]);
    expect(await one.prices('0.7', 4)).toMatchObject({ written: 0 });
    expect(await one.books('0.7', 4)).toMatchObject({ written: 0 });
    expect(await prices()).toEqual(['0.5', '0.6']);
  });

  it('keep the price of the new owner when the write of the former one waits for it', async () => {
    const one = stores('one');
    await one.prices('0.4', 1);
    const late = await test.db.transaction(async (tx) => {
      await tx.query(TAKE, ['two', 0]);
      const newest = [{ tokenId: tokenIds[0] ?? 0n, asOfMs: NOW_MS + 3_000, price: decimal('0.6'), part: 0 }];
      expect(await sweepPrices(tx, newest, { streamer: 'two', venue: 'kalshi' })).toMatchObject({ newer: 1 });
      const waiting = one.prices('0.5', 2);
      await untilBlocked(test.db);
      return { waiting };
    });
    expect(await late.waiting).toMatchObject({ written: 1 });
    expect(await prices()).toEqual(['0.6', '0.5']);
    // The part is lost from the next statement on.
    expect(await one.prices('0.7', 9)).toMatchObject({ written: 1 });
    expect(await prices()).toEqual(['0.6', '0.7']);
  });

  it('write again for an owner whose lease ended while nobody took the part', async () => {
    await claimParts(test.db, 'one', { venue: 'kalshi', parts: 2, limit: 2 });
    await test.db.query(sql('test_end_lease', `UPDATE feed_part SET lease_until = clock_timestamp() - interval '1 s'`));
    expect(await stores('one').prices('0.4', 1)).toMatchObject({ written: 2 });
  });
});
