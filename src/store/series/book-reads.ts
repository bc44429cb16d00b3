import type { FeeStatement } from '../../domain/markets/fee.ts';
import type { MarketStatus } from '../../domain/markets/market.ts';
import { feeKnownAt } from '../catalog/market-fees.ts';
import { type Queryable, sql } from '../db/tx.ts';
import { type JournalStamp, STAMP, toStamp } from '../journal/read-journal.ts';

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

/** The book of an outcome with the fee of its market, both as known at one moment. */
export interface OrderBook {
  marketPk: bigint;
  venue: string;
  marketId: string;
  outcomeId: string;
  /** The present status. */
  status: MarketStatus;
  hasBook: boolean;
  /** Null: no book is stored, or none was known then; the levels are null too. */
  asOf: Date | null;
  bids: StoredLevel[] | null;
  asks: StoredLevel[] | null;
  /** When a poll last saw the latest book, and how long ago that is, milliseconds by the database's clock. Null for a book of the past. */
  receivedAt: Date | null;
  unseenMs: number | null;
  /** Null: no statement about the fee is stored. */
  fee: FeeStatement | null;
}

/** $1 venues, $2 outcome ids. An outcome belongs to one market. */
const ASKED = `unnest($2::text[]) WITH ORDINALITY AS a (mint, place) JOIN token t ON t.mint = a.mint JOIN outcome o ON o.token_id = t.id
   JOIN market m ON m.id = o.market_id AND m.venue = ANY ($1::text[])`;

const COLUMNS = `m.id AS market_pk, m.venue, m.venue_market_id AS market_id, t.mint AS outcome_id, m.status, m.has_book,
   b.as_of, b.bids, b.asks, f.statement AS fee`;

const LATEST = sql(
  'order_books',
  `SELECT ${COLUMNS}, b.received_at, (extract(epoch FROM clock_timestamp() - b.received_at) * 1000)::float8 AS unseen_ms, ${STAMP}
   FROM ${ASKED} LEFT JOIN book_latest b ON b.token_id = t.id LEFT JOIN LATERAL ${feeKnownAt('m.id', `'infinity'`)} f ON true
   ORDER BY a.place`,
);

const AT = sql(
  'order_books_at',
  `SELECT ${COLUMNS}, NULL::timestamptz AS received_at, NULL::float8 AS unseen_ms, ${STAMP}
   FROM ${ASKED} LEFT JOIN LATERAL (
     SELECT h.as_of, h.bids, h.asks FROM book_history h
     WHERE h.token_id = t.id AND h.received_at <= to_timestamp($3::float8) ORDER BY h.received_at DESC LIMIT 1) b ON true
   LEFT JOIN LATERAL ${feeKnownAt('m.id', 'to_timestamp($3::float8)')} f ON true
   ORDER BY a.place`,
);

interface OrderBooks {
  /** In the order of the ids; unknown ones are absent. */
  books: OrderBook[];
  /** The place in the journal of the read; undefined without a book. */
  stamp: JournalStamp | undefined;
}

/** The books of these outcomes: the latest ones, or with `asOf` (epoch seconds) those known at that moment. */
export async function readOrderBooks(
  db: Queryable,
  venues: readonly string[],
  outcomeIds: readonly string[],
  asOf?: number,
): Promise<OrderBooks> {
  const values = [venues, outcomeIds];
  const rows = await (asOf === undefined
    ? db.query<OrderBook & { stamp: string }>(LATEST, values)
    : db.query<OrderBook & { stamp: string }>(AT, [...values, asOf]));
  const [first] = rows;
  return { books: rows.map(({ stamp: _, ...book }) => book), stamp: first && toStamp(first.stamp) };
}
