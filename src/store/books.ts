import type { BookRecord, PriceLevel } from '../domain/market.ts';
import { sql, type Tx } from './tx.ts';

/** Levels kept per side: more than any `depth` a client may ask (DESIGN section 4). */
export const MAX_STORED_LEVELS = 200;

const UPSERT_BOOKS = sql(
  'upsert_books',
  `INSERT INTO book_latest AS b (token_id, as_of, bids, asks)
   SELECT DISTINCT ON (token_id) *
   FROM unnest($1::bigint[], $2::timestamptz[], $3::jsonb[], $4::jsonb[]) AS i (token_id, as_of, bids, asks)
   ORDER BY token_id, as_of DESC
   ON CONFLICT (token_id) DO UPDATE SET as_of = excluded.as_of, bids = excluded.bids, asks = excluded.asks
   WHERE b.as_of < excluded.as_of
   RETURNING token_id`,
);

export type TokenBook = Omit<BookRecord, 'outcomeId'> & { tokenId: bigint };

/** Levels as `[price, size]` text pairs, with the count of orders third where the venue gives one: exact digits, little space. */
function levels(side: readonly PriceLevel[]): string {
  return JSON.stringify(
    side
      .slice(0, MAX_STORED_LEVELS)
      .map(({ price, size, count }) => (count === undefined ? [price, size] : [price, size, count])),
  );
}

/**
 * Writes books, guarded by the venue's time: an older or equally old one is not written, and of two of one token the newer
 * counts. Returns how many were written.
 */
export async function writeBooks(tx: Tx, books: readonly TokenBook[]): Promise<number> {
  if (books.length === 0) return 0;
  const rows = await tx.query(UPSERT_BOOKS, [
    books.map((book) => book.tokenId),
    books.map((book) => new Date(book.asOfMs).toISOString()),
    books.map((book) => levels(book.bids)),
    books.map((book) => levels(book.asks)),
  ]);
  return rows.length;
}
