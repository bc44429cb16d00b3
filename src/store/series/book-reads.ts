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

/** A latest book, and how long ago a poll last saw it, changed or not: milliseconds by the database's clock. */
export interface LatestBook extends StoredBook {
  /** The time of that sighting. */
  receivedAt: Date;
  unseenMs: number;
}

const BOOK = sql(
  'read_book',
  `SELECT as_of, bids, asks, received_at, (extract(epoch FROM clock_timestamp() - received_at) * 1000)::float8 AS unseen_ms
   FROM book_latest WHERE token_id = $1`,
);

/** The latest book of an outcome; null before the first. */
export async function readBook(db: Queryable, tokenId: bigint): Promise<LatestBook | null> {
  const [book] = await db.query<LatestBook>(BOOK, [tokenId]);
  return book ?? null;
}

const BOOK_AT = sql(
  'read_book_at',
  `SELECT as_of, bids, asks FROM book_history WHERE token_id = $1 AND received_at <= to_timestamp($2::float8)
   ORDER BY received_at DESC LIMIT 1`,
);

/** The book of an outcome as known at a moment, epoch seconds; null before the first. */
export async function readBookAt(db: Queryable, tokenId: bigint, at: number): Promise<StoredBook | null> {
  const [book] = await db.query<StoredBook>(BOOK_AT, [tokenId, at]);
  return book ?? null;
}
