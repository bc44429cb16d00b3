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
 */
export const PUBLISH_KINDS = {
  price: 1,
  trade: 2,
  book: 3,
  candle: 4,
  market: 5,
  'late-trades': 6,
  'late-candles': 7,
} as const;
export type PublishKind = keyof typeof PUBLISH_KINDS;

const COLUMNS = {
  price: 'key',
  trade: 'key, detail, ref',
  book: 'key',
  candle: 'key, detail',
  market: 'key',
  'late-trades': 'key, detail, until',
  'late-candles': 'key, detail, until',
} as const satisfies Record<PublishKind, string>;

/** SQL that inserts a mark per row of a SELECT, in the statement that changes the facts. The row has the columns of its kind, in order. */
export function insertPublishSql(kind: PublishKind, select: string): string {
  const columns = COLUMNS[kind];
  return `INSERT INTO publish_mark (kind, ${columns})
     SELECT ${PUBLISH_KINDS[kind]}, ${columns} FROM (${select}) AS p (${columns})`;
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
