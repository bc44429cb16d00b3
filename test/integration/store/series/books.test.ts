import { beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { PriceLevel } from '../../../../src/domain/markets/market.ts';
import { decimal } from '../../../../src/domain/values/decimal.ts';
import { DAY_MS } from '../../../../src/domain/values/durations.ts';
import { Partitions } from '../../../../src/store/db/partitions.ts';
import { sql } from '../../../../src/store/db/tx.ts';
import { readBook, readBookAt } from '../../../../src/store/series/book-reads.ts';
import { writeBooks } from '../../../../src/store/series/books.ts';
import { ageBooks } from '../../../factories/stored-series.ts';
import { useTestDatabase } from '../../../support/postgres/database.ts';
import { untilBlocked } from '../../../support/postgres/postgres-lock.ts';

type TokenBook = Parameters<typeof writeBooks>[1][number];

const READ = sql('test_book', 'SELECT as_of, bids, asks, received_at FROM book_latest WHERE token_id = $1');
const HISTORY = sql(
  'test_book_history',
  'SELECT as_of, bids, asks, received_at FROM book_history WHERE token_id = $1 ORDER BY received_at',
);
const AHEAD = sql(
  'test_book_ahead',
  "UPDATE book_latest SET received_at = received_at + interval '1 hour' WHERE token_id = $1 RETURNING received_at",
);
/** The places and writers of the rows of a book, and of all marks. */
const PLACES = sql(
  'test_book_places',
  `SELECT 'book_latest' AS tab, b.ctid::text, b.xmin::text FROM book_latest b WHERE b.token_id = $1 UNION ALL
   SELECT 'book_history', h.ctid::text, h.xmin::text FROM book_history h WHERE h.token_id = $1 UNION ALL
   SELECT 'publish_mark', m.ctid::text, m.xmin::text FROM publish_mark m ORDER BY 1, 2`,
);
const T = Date.UTC(2026, 0, 5);

const test = useTestDatabase();
let token = 100n;
beforeAll(() => new Partitions(test.db).ensureAroundNow('book_history'));
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
const write = async (...books: TokenBook[]) => (await test.db.transaction((tx) => writeBooks(tx, books))).newer;
interface Row {
  asOf: Date;
  bids: unknown;
  asks: unknown;
  receivedAt: Date;
}
const stored = async () => (await test.db.query<Row>(READ, [token]))[0];
const places = () => test.db.query(PLACES, [token]);
const history = () => test.db.query<Row>(HISTORY, [token]);

describe('writeBooks', () => {
  it('stores exact digits, order and counts', async () => {
    const bids = [level('0.41', '12345678901234567.000001', 3), level('0.4', '0.1')];
    expect(await write(bookAt(0, { bids, asks: [] }))).toBe(1);
    expect(await stored()).toMatchObject({
      asOf: new Date(T),
      bids: [
        ['0.41', '12345678901234567.000001', 3],
        ['0.4', '0.1'],
      ],
      asks: [],
    });
  });

  it('ignores an older book, and updates only the time seen of an equally old one', async () => {
    await write(bookAt(10));
    await ageBooks(test.db, 3_600_000, token);
    const before = await stored();
    expect(await write(bookAt(9, { bids: [] }))).toBe(0);
    expect(await stored()).toEqual(before);
    expect(await write(bookAt(10, { bids: [] }))).toBe(0);
    const { receivedAt, ...seen } = (await stored()) as Row;
    expect(seen).toEqual({ asOf: before?.asOf, bids: before?.bids, asks: before?.asks });
    expect(receivedAt.getTime()).toBeGreaterThan(before?.receivedAt.getTime() ?? Number.POSITIVE_INFINITY);
    expect(await write(bookAt(11, { bids: [] }))).toBe(1);
    expect(await stored()).toMatchObject({ asOf: new Date(T + 11_000), bids: [] });
  });

  it('writes no row and no mark when an unchanged book was seen lately', async () => {
    await write(bookAt(1));
    const before = await places();
    const written = await test.db.transaction((tx) => writeBooks(tx, [bookAt(1)]));
    expect(written).toEqual({ newer: 0, appliedTokenIds: [] });
    expect(await write(bookAt(2))).toBe(0);
    expect(await places()).toEqual(before);
  });

  it('moves both times of an unchanged book that was not seen lately, and only forward', async () => {
    await write(bookAt(1));
    await ageBooks(test.db, 3_600_000, token);
    const before = await stored();
    const written = await test.db.transaction((tx) => writeBooks(tx, [bookAt(2)]));
    expect(written).toEqual({ newer: 1, appliedTokenIds: [token] });
    const after = await stored();
    expect(after?.asOf).toEqual(new Date(T + 2000));
    expect(after?.receivedAt.getTime()).toBeGreaterThan(before?.receivedAt.getTime() ?? Number.POSITIVE_INFINITY);
    await ageBooks(test.db, 3_600_000, token);
    expect(await write(bookAt(1))).toBe(0);
    expect((await stored())?.asOf).toEqual(new Date(T + 2000));
    await test.db.query(AHEAD, [token]);
    await test.db.query(AHEAD, [token]);
    const ahead = await stored();
    expect(await write(bookAt(3))).toBe(0);
    expect(await stored()).toEqual(ahead);
    // The first sight of a day is stored again, and an hour ago may be the day before.
    const [wasSeen, isSeen] = [before, after].map((row) => row?.receivedAt.toISOString().slice(0, 10));
    expect(await history()).toHaveLength(wasSeen === isSeen ? 1 : 2);
  });

  it('does not move a book that another writer changes meanwhile', async () => {
    await write(bookAt(1));
    await ageBooks(test.db, 3_600_000, token);
    const waiting = await test.db.transaction(async (tx) => {
      await writeBooks(tx, [bookAt(3, { bids: [] })]);
      const late = write(bookAt(2));
      await untilBlocked(test.db);
      return { late };
    });
    expect(await waiting.late).toBe(0);
    expect(await stored()).toMatchObject({ asOf: new Date(T + 3000), bids: [] });
  });

  it('stores the best 200 levels of each side', async () => {
    const bids = Array.from({ length: 900 }, (_, index) => level(String((900 - index) / 1000), '1'));
    await write(bookAt(0, { bids }));
    const { bids: kept } = (await stored()) as { bids: string[][] };
    expect(kept).toHaveLength(200);
    expect(kept[0]).toEqual(['0.9', '1']);
  });

  it('uses the newer of two books of a token in one batch', async () => {
    expect(await write(bookAt(2, { bids: [] }), bookAt(1))).toBe(1);
    expect(await stored()).toMatchObject({ asOf: new Date(T + 2000), bids: [] });
  });

  it('writes nothing for an empty batch', async () => expect(await write()).toBe(0));

  it('stores the newest book of concurrent writers', async () => {
    const order = [3, 9, 1, 8, 2, 7, 5];
    await Promise.all(order.map((second) => write(bookAt(second, { bids: [level('0.4', String(second))] }))));
    expect(await stored()).toMatchObject({ asOf: new Date(T + 9000), bids: [['0.4', '9']] });
  });
});

describe('writeBooks with history', () => {
  it('adds one row per change of content, the first book included, equal to the applied book', async () => {
    await write(bookAt(1));
    await write(bookAt(2));
    await write(bookAt(3, { asks: [] }));
    await write(bookAt(3, { bids: [] }));
    await write(bookAt(2, { bids: [] }));
    await ageBooks(test.db, 36_000, token);
    await write(bookAt(3));
    const rows = await history();
    expect(rows.map(({ asOf, asks }) => [asOf, asks])).toEqual([
      [new Date(T + 1000), [['0.6', '20']]],
      [new Date(T + 3000), []],
    ]);
    expect((await stored())?.receivedAt.getTime()).toBeGreaterThan(rows[1]?.receivedAt.getTime() ?? 0);
  });

  it('adds an unchanged book again each day, so that dropping a day does not lose it', async () => {
    await write(bookAt(1));
    await ageBooks(test.db, DAY_MS, token);
    await write(bookAt(1));
    await write(bookAt(1));
    const rows = await history();
    expect(rows.map(({ asOf }) => asOf)).toEqual([new Date(T + 1000), new Date(T + 1000)]);
  });

  it('keeps times increasing when the clock moves back', async () => {
    await write(bookAt(1));
    const [ahead] = await test.db.query<{ receivedAt: Date }>(AHEAD, [token]);
    await write(bookAt(2, { bids: [] }));
    expect((await history()).at(-1)?.receivedAt.getTime()).toBe((ahead?.receivedAt.getTime() ?? 0) + 1);
  });

  it('adds each applied book of concurrent writers once, in the order of their times', async () => {
    await write(bookAt(0, { bids: [] }));
    const seconds = [3, 9, 1, 8, 2, 7, 5, 6, 4];
    const applied = await Promise.all(
      seconds.map((second) => write(bookAt(second, { bids: [level('0.4', String(second))] }))),
    );
    const rows = await history();
    const times = rows.map(({ asOf }) => asOf.getTime());
    expect(times).toEqual([...new Set(times)].sort((a, b) => a - b));
    expect(rows).toHaveLength(1 + applied.reduce((sum, count) => sum + count, 0));
    const { asOf, bids } = (await stored()) as Row;
    expect({ asOf, bids }).toMatchObject({ asOf: rows.at(-1)?.asOf, bids: rows.at(-1)?.bids });
  });

  it('compares with the row of the other writer after a lock wait', async () => {
    const asked = [['0.4', '7']];
    await write(bookAt(1, { bids: [level('0.4', '7')] }));
    const waiting = await test.db.transaction(async (tx) => {
      await writeBooks(tx, [bookAt(2, { bids: [] })]);
      // Equal to the first book: a writer that compares before this commit sees no change.
      const other = write(bookAt(3, { bids: [level('0.4', '7')] }));
      await untilBlocked(test.db);
      return { other };
    });
    await waiting.other;
    expect((await history()).map(({ bids }) => bids)).toEqual([asked, [], asked]);
  });

  it('ends with the stored book when first writers run at once', async () => {
    await Promise.all([3, 1, 2].map((second) => write(bookAt(second, { bids: [level('0.4', String(second))] }))));
    const rows = await history();
    const times = rows.map(({ asOf }) => asOf.getTime());
    expect(times).toEqual([...times].sort((a, b) => a - b));
    expect(rows.at(-1)?.bids).toEqual([['0.4', '3']]);
  });

  it('adds no row when the write rolls back', async () => {
    const failed = test.db.transaction(async (tx) => {
      await writeBooks(tx, [bookAt(1)]);
      throw new Error('lost');
    });
    await expect(failed).rejects.toThrow('lost');
    expect(await history()).toEqual([]);
  });
});

describe('book reads', () => {
  it('return the book known at a moment, and null before the first book', async () => {
    await write(bookAt(1));
    await write(bookAt(2, { asks: [] }));
    const [first, second] = (await history()).map(({ receivedAt }) => receivedAt.getTime() / 1000) as [number, number];
    expect(await readBookAt(test.db, token, first - 0.001)).toBeNull();
    expect(await readBookAt(test.db, token, first)).toMatchObject({ asOf: new Date(T + 1000) });
    expect(await readBookAt(test.db, token, second + 60)).toMatchObject({ asOf: new Date(T + 2000), asks: [] });
  });

  it('return the age of the latest book', async () => {
    expect(await readBook(test.db, token)).toBeNull();
    await write(bookAt(1));
    expect((await readBook(test.db, token))?.unseenMs).toBeLessThan(60_000);
    await ageBooks(test.db, 3_600_000, token);
    expect((await readBook(test.db, token))?.unseenMs).toBeGreaterThanOrEqual(3_600_000);
  });
});
