import type { FactKind } from '../../domain/live/change.ts';
import { type Queryable, sql } from '../db/tx.ts';

/** A trade that was made longer ago appears in the journal as a part of a range, so that a backfill does not flood it. */
export const LATE_TRADE_MS = 600_000;

/**
 * The marks of the publisher, with the meaning of their columns. Processes of two releases share the numbers during a rolling upgrade, so a
 * number keeps its meaning.
 * - `price`: the quote of the token `key` changed
 * - `trade`: the token `key` gained the trade `ref` of the moment `detail`, epoch microseconds
 * - `book`: the best level of a side of the book of the token `key` changed
 * - `candle`: the 1m candle of the token `key` that begins at `detail`, epoch seconds, changed
 * - `market`: the row or the outcomes of the market `key` changed
 * - `late-trades`: the token `key` gained or lost trades of `[detail, until)`, epoch seconds
 * - `late-candles`: the candles of the token `key` in `[detail, until)`, epoch seconds, changed
 * - `facts`: the facts with the code `detail` of the markets `ref`, keys with commas, changed: one mark for all markets of a statement
 * - `gap`: the gap `detail` of the feed, a key of `feed_gap`, of the market `key` began or ended
 * - `resolution`: the row `detail` of the timeline of the market `key` was added; a process of the former release drops the mark
 */
export const PUBLISH_KINDS = {
  price: 1,
  trade: 2,
  book: 3,
  candle: 4,
  market: 5,
  'late-trades': 6,
  'late-candles': 7,
  facts: 8,
  gap: 9,
  resolution: 10,
} as const;
type PublishKind = keyof typeof PUBLISH_KINDS;

const COLUMNS = {
  price: 'key',
  trade: 'key, detail, ref',
  book: 'key',
  candle: 'key, detail',
  market: 'key',
  'late-trades': 'key, detail, until',
  'late-candles': 'key, detail, until',
  facts: 'key, detail, ref',
  gap: 'key, detail',
  resolution: 'key, detail',
} as const satisfies Record<PublishKind, string>;

/** SQL that inserts a mark per row of a SELECT, in the statement that changes the facts. The row has the columns of its kind, in order. */
export function insertPublishSql(kind: PublishKind, select: string): string {
  const columns = COLUMNS[kind];
  return `INSERT INTO publish_mark (kind, ${columns})
     SELECT ${PUBLISH_KINDS[kind]}, ${columns} FROM (${select}) AS p (${columns})`;
}

/**
 * The codes of facts in marks:
 * - `volumes`: the volumes or the liquidity
 * - `coverage`: the comparison with the venue's volume, or a new request of old trades
 * - `book-seen`: a book was seen, changed or not
 * - `quote-age`: the time of an unchanged quote
 * - `fees`: the statement of the venue about the fee
 */
export const FACT_CODES = {
  volumes: 1,
  coverage: 2,
  'book-seen': 3,
  'quote-age': 4,
  fees: 5,
} as const satisfies Record<FactKind, number>;

/**
 * SQL that marks facts of markets that no message of the streams has. `select` has the keys of the markets. Without this mark an answer
 * from memory would keep the former facts.
 */
export function insertFactsSql(about: FactKind, select: string): string {
  return insertPublishSql(
    'facts',
    `SELECT 0, ${FACT_CODES[about]}, string_agg(DISTINCT id::text, ',') FROM (${select}) AS f (id) HAVING count(*) > 0`,
  );
}

/** SQL of the epoch microseconds of a moment. */
export function microsOf(moment: string): string {
  return `(extract(epoch FROM ${moment}) * 1000000)::bigint`;
}

const MARK_MARKETS = sql('mark_markets', insertPublishSql('market', 'SELECT unnest($1::bigint[])'));

/** Marks changed markets, in the transaction that changes them. */
export async function markMarkets(tx: Queryable, marketPks: readonly bigint[]): Promise<void> {
  if (marketPks.length > 0) await tx.query(MARK_MARKETS, [marketPks]);
}
