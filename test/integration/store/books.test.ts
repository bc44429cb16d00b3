import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { decimal } from '../../../src/domain/decimal.ts';
import type { PriceLevel } from '../../../src/domain/market.ts';
import { MAX_STORED_LEVELS, type TokenBook, writeBooks } from '../../../src/store/books.ts';
import { sql } from '../../../src/store/tx.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';

const READ = sql('test_book', 'SELECT as_of, bids, asks, xmin::text AS version FROM book_latest WHERE token_id = $1');
const T = Date.UTC(2026, 0, 5);

let test: TestDatabase;
let token = 100n;
beforeAll(async () => {
  test = await createTestDatabase();
});
afterAll(() => test.drop());
beforeEach(() => {
  token += 1n;
});

const level = (price: string, size: string, count?: number): PriceLevel => ({
  price: decimal(price),
  size: decimal(size),
  ...(count !== undefined && { count }),
});
const bookAt = (seconds: number, over: Partial<TokenBook> = {}): TokenBook => ({
  tokenId: token,
  asOfMs: T + seconds * 1000,
  bids: [level('0.4', '10')],
  asks: [level('0.6', '20')],
  ...over,
});
const write = (...books: TokenBook[]) => test.db.transaction((tx) => writeBooks(tx, books));
const stored = async () =>
  (await test.db.query<{ as_of: Date; bids: unknown; asks: unknown; version: string }>(READ, [token]))[0];

describe('writing books', () => {
  it('keeps exact digits, order and counts', async () => {
    const bids = [level('0.41', '12345678901234567.000001', 3), level('0.4', '0.1')];
    expect(await write(bookAt(0, { bids, asks: [] }))).toBe(1);
    expect(await stored()).toMatchObject({
      as_of: new Date(T),
      bids: [
        ['0.41', '12345678901234567.000001', 3],
        ['0.4', '0.1'],
      ],
      asks: [],
    });
  });

  it('an older or equally old book changes nothing, not even the row', async () => {
    await write(bookAt(10));
    const before = await stored();
    expect(await write(bookAt(9, { bids: [] }))).toBe(0);
    expect(await write(bookAt(10, { bids: [] }))).toBe(0);
    expect(await stored()).toEqual(before);
    expect(await write(bookAt(11, { bids: [] }))).toBe(1);
    expect(await stored()).toMatchObject({ as_of: new Date(T + 11_000), bids: [] });
  });

  it(`keeps the best ${MAX_STORED_LEVELS} levels of each side`, async () => {
    const bids = Array.from({ length: 900 }, (_, index) => level(String((900 - index) / 1000), '1'));
    await write(bookAt(0, { bids }));
    const { bids: kept } = (await stored()) as { bids: string[][] };
    expect(kept).toHaveLength(MAX_STORED_LEVELS);
    expect(kept[0]).toEqual(['0.9', '1']);
  });

  it('a token named twice does not fail the batch: the newer counts', async () => {
    expect(await write(bookAt(2, { bids: [] }), bookAt(1))).toBe(1);
    expect(await stored()).toMatchObject({ as_of: new Date(T + 2000), bids: [] });
  });

  it('nothing to write is nothing', async () => expect(await write()).toBe(0));

  it('of writers at once the newest book stays', async () => {
    const order = [3, 9, 1, 8, 2, 7, 5];
    await Promise.all(order.map((second) => write(bookAt(second, { bids: [level('0.4', String(second))] }))));
    expect(await stored()).toMatchObject({ as_of: new Date(T + 9000), bids: [['0.4', '9']] });
  });
});
