import { createHash } from 'node:crypto';
import { MAX_STORED_LEVELS } from '../../domain/markets/executable.ts';
import type { BookRecord, PriceLevel } from '../../domain/markets/market.ts';
import { type FeedReader, heldPartsSql } from '../db/leases.ts';
import { type Queryable, sql } from '../db/tx.ts';
import { insertFactsSql, insertPublishSql } from '../marks/publish-marks.ts';

/**
 * An unchanged book moves its times at most this often: a row for each sighting would cost as much as one for each change. The limit of a
 * live book, a minute, leaves room for it beside the interval of the polls.
 */
export const SIGHTING_EVERY_MS = 15_000;

/**
 * Upserts latest books guarded by the venue's time. `received_at` advances with every applied book and never decreases: a writer that waited
 * for a row lock stamps after the other writer, so history has the order in which books were applied.
 * A book that equals the stored one is written only when that one was last seen before `SIGHTING_EVERY_MS`, or before the end of a gap of
 * the feed, which covers the book until then.
 * An unchanged side is written back as it is, which costs Postgres no new copy.
 * A book adds a history row when its content changed, and at its first sighting of each UTC day: partitions are dropped by day, and a
 * book that stays unchanged beyond their retention must remain in history. A new best level marks the book for the publisher.
 */
const UPSERT_BOOKS = sql(
  'upsert_books',
  `WITH clock AS MATERIALIZED (SELECT date_trunc('milliseconds', clock_timestamp()) AS at),
   input AS MATERIALIZED (
     SELECT DISTINCT ON (token_id) * FROM unnest($1::bigint[], $2::timestamptz[], $3::jsonb[], $4::jsonb[], $7::int[])
       AS i (token_id, as_of, bids, asks, part)
     WHERE $5::text IS NULL OR part IN (${heldPartsSql('$5', '$6')}) ORDER BY token_id, as_of DESC),
   before AS MATERIALIZED (
     SELECT b.* FROM book_latest b JOIN input USING (token_id) ORDER BY token_id FOR UPDATE OF b),
   compared AS MATERIALIZED (
     SELECT i.*, b.received_at AS seen_at, b.as_of IS NULL OR i.as_of > b.as_of AS newer,
            b.as_of IS NULL OR i.as_of > b.as_of AND (b.bids, b.asks) IS DISTINCT FROM (i.bids, i.asks) AS changed,
            b.as_of IS NULL OR i.as_of > b.as_of AND (b.bids -> 0, b.asks -> 0) IS DISTINCT FROM (i.bids -> 0, i.asks -> 0) AS has_new_top
     FROM input i LEFT JOIN before b USING (token_id) WHERE b.as_of IS NULL OR i.as_of >= b.as_of),
   sighting AS MATERIALIZED (
     SELECT * FROM compared c
     WHERE changed OR seen_at <= clock_timestamp() - interval '${SIGHTING_EVERY_MS} milliseconds' OR EXISTS (
       SELECT FROM outcome o JOIN feed_gap g ON g.market_id = o.market_id
       WHERE o.token_id = c.token_id AND g.affected = 'books' AND g.to_at > c.seen_at OFFSET 0)),
   applied AS (
     INSERT INTO book_latest AS b (token_id, as_of, bids, asks, received_at)
     SELECT token_id, as_of, bids, asks, at FROM sighting, clock ORDER BY token_id
     ON CONFLICT (token_id) DO UPDATE SET as_of = excluded.as_of,
       bids = CASE WHEN b.as_of < excluded.as_of AND b.bids <> excluded.bids THEN excluded.bids ELSE b.bids END,
       asks = CASE WHEN b.as_of < excluded.as_of AND b.asks <> excluded.asks THEN excluded.asks ELSE b.asks END,
       received_at = greatest(excluded.received_at, b.received_at + interval '1 millisecond')
     WHERE b.as_of <= excluded.as_of
     RETURNING b.*),
   history AS (
     INSERT INTO book_history (token_id, received_at, as_of, bids, asks)
     SELECT a.token_id, a.received_at, a.as_of, a.bids, a.asks FROM applied a JOIN sighting s USING (token_id)
     WHERE s.changed OR (s.seen_at AT TIME ZONE 'UTC')::date < (a.received_at AT TIME ZONE 'UTC')::date),
   published AS (
     ${insertPublishSql('book', 'SELECT token_id FROM applied JOIN sighting USING (token_id) WHERE has_new_top')}),
   seen AS (
     ${insertFactsSql('book-seen', 'SELECT o.market_id FROM applied JOIN outcome o USING (token_id)')})
   SELECT token_id, newer FROM applied JOIN sighting USING (token_id)`,
);

type TokenBook = Omit<BookRecord, 'outcomeId'> & {
  tokenId: bigint;
  /** The part of the feed that has the outcome. */
  part?: number;
};

/** Levels as `[price, size]` text pairs, with the count of orders third where the venue sends one: exact digits in compact form. */
function levels(side: readonly PriceLevel[]): string {
  return JSON.stringify(
    side
      .slice(0, MAX_STORED_LEVELS)
      .map(({ price, size, count }) => (count === undefined ? [price, size] : [price, size, count])),
  );
}

/** A digest of the content of a book, as far as it is stored. */
export function bookDigest({ bids, asks }: Pick<BookRecord, 'bids' | 'asks'>): string {
  return createHash('sha1').update(levels(bids)).update(levels(asks)).digest('base64');
}

interface WrittenBooks {
  /** The number of applied books with a later time of the venue. */
  newer: number;
  /** The tokens whose stored book is now the given one, as of its time. */
  appliedTokenIds: bigint[];
}

/**
 * Writes books, guarded by the venue's time: an older book is dropped, an equally old one updates only the time of its sighting, and the
 * newer of two books of a token counts. With `feed`, books of parts that the streamer does not hold are ignored. The partitions of
 * `book_history` around now must exist.
 */
export async function writeBooks(db: Queryable, books: readonly TokenBook[], feed?: FeedReader): Promise<WrittenBooks> {
  if (books.length === 0) return { newer: 0, appliedTokenIds: [] };
  const rows = await db.query<{ tokenId: bigint; newer: boolean }>(UPSERT_BOOKS, [
    books.map((book) => book.tokenId),
    books.map((book) => new Date(book.asOfMs).toISOString()),
    books.map((book) => levels(book.bids)),
    books.map((book) => levels(book.asks)),
    feed?.streamer ?? null,
    feed?.venue ?? null,
    books.map(({ part }) => part ?? null),
  ]);
  return { newer: rows.filter(({ newer }) => newer).length, appliedTokenIds: rows.map(({ tokenId }) => tokenId) };
}
