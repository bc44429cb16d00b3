import { type Queryable, sql } from '../db/tx.ts';

/** `[price, size]` or `[price, size, orders]`, as the book writer stores them. */
export type StoredLevel = [price: string, size: string, count?: number];

export interface StoredBook {
  /** The book's own time. */
  asOf: Date;
  /** Descending by price. */
  bids: StoredLevel[];
  /** Ascending by price. */
  asks: StoredLevel[];
}

interface BookRow {
  asOf: Date;
  bids: StoredLevel[];
  asks: StoredLevel[];
}

function toBook(row: BookRow): StoredBook {
  return { asOf: row.asOf, bids: row.bids, asks: row.asks };
}

/** A latest book, and the time since a poll last saw it, changed or not: milliseconds by the database clock. */
export interface LatestBook extends StoredBook {
  unseenMs: number;
}

const BOOK = sql(
  'read_book',
  `SELECT as_of, bids, asks, (extract(epoch FROM clock_timestamp() - received_at) * 1000)::float8 AS unseen_ms
   FROM book_latest WHERE token_id = $1`,
);

/** The latest book of an outcome; null before the first. */
export async function readBook(db: Queryable, tokenId: bigint): Promise<LatestBook | null> {
  const [row] = await db.query<BookRow & { unseenMs: number }>(BOOK, [tokenId]);
  return row ? { ...toBook(row), unseenMs: row.unseenMs } : null;
}

const BOOK_AT = sql(
  'read_book_at',
  `SELECT as_of, bids, asks FROM book_history WHERE token_id = $1 AND received_at <= to_timestamp($2::float8)
   ORDER BY received_at DESC LIMIT 1`,
);

/** The book of an outcome as known at a moment, epoch seconds; null before the first. */
export async function readBookAt(db: Queryable, tokenId: bigint, at: number): Promise<StoredBook | null> {
  const [row] = await db.query<BookRow>(BOOK_AT, [tokenId, at]);
  return row ? toBook(row) : null;
}
