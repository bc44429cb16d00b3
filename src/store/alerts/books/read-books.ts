import type { BookLeg, KnownFee, ObservedBook } from '../../../domain/alerts/book-rule.ts';
import type { OrderBookLevels } from '../../../domain/markets/executable.ts';
import type { FeeStatement } from '../../../domain/markets/fee.ts';
import type { PriceLevel } from '../../../domain/markets/market.ts';
import { decimal } from '../../../domain/values/decimal.ts';
import { type Queryable, sql } from '../../db/tx.ts';
import type { StoredLevel } from '../../series/book-reads.ts';
import { type ReadRange, wholeMs } from '../rules.ts';

const BOOKS = sql(
  'rule_books',
  `SELECT r.token_id, ${wholeMs('h.received_at')} AS at_ms, h.bids, h.asks
   FROM unnest($1::bigint[], $2::timestamptz[], $3::timestamptz[]) AS r (token_id, since, until) CROSS JOIN LATERAL (
     (SELECT h.received_at, h.bids, h.asks FROM book_history h
      WHERE h.token_id = r.token_id AND h.received_at < r.since ORDER BY h.received_at DESC LIMIT 1)
     UNION ALL
     (SELECT h.received_at, h.bids, h.asks FROM book_history h
      WHERE h.token_id = r.token_id AND h.received_at >= r.since AND h.received_at < r.until ORDER BY h.received_at LIMIT $4)) h
   ORDER BY r.token_id, h.received_at`,
);

interface BookRow {
  tokenId: bigint;
  atMs: bigint;
  bids: StoredLevel[];
  asks: StoredLevel[];
}

/** The books of an outcome in a time. */
export interface BookList {
  /** The one in effect before the time, and the ones within it, oldest first. */
  books: ObservedBook[];
  /** The last moment of which every book is known, epoch milliseconds; infinite without more books. */
  untilMs: number;
}

/** After every book. */
const NEVER_MS = 8_000_000_000_000;

/** The books of each token within its range, at most `limit`, and the one in effect before it. */
export async function readBooks(
  db: Queryable,
  rangeOf: ReadonlyMap<bigint, ReadRange>,
  limit: number,
): Promise<Map<bigint, BookList>> {
  const found = new Map<bigint, BookList>();
  if (rangeOf.size === 0) return found;
  const ranges = [...rangeOf.values()];
  const isoOf = (ms: number) => new Date(Math.min(ms, NEVER_MS)).toISOString();
  const rows = await db.query<BookRow>(BOOKS, [
    [...rangeOf.keys()],
    ranges.map(({ fromMs }) => isoOf(fromMs)),
    ranges.map(({ untilMs }) => isoOf(untilMs)),
    limit,
  ]);
  for (const tokenId of rangeOf.keys()) found.set(tokenId, { books: [], untilMs: Number.POSITIVE_INFINITY });
  for (const row of rows) found.get(row.tokenId)?.books.push(toBook(row));
  for (const [tokenId, list] of found) {
    const { fromMs = 0 } = rangeOf.get(tokenId) ?? {};
    const within = list.books.filter(({ atMs }) => atMs >= fromMs);
    if (within.length === limit) list.untilMs = within.at(-1)?.atMs ?? fromMs;
  }
  return found;
}

/** Reads the levels of a side when a rule needs them, once for all rules. Of the other side, an order needs the best price only. */
function toBook({ atMs, bids, asks }: BookRow): ObservedBook {
  let toBuy: OrderBookLevels | undefined;
  let toSell: OrderBookLevels | undefined;
  return {
    atMs: Number(atMs),
    levels(side) {
      if (side === 'buy') {
        toBuy ??= { bids: bids.slice(0, 1).map(toLevel), asks: asks.map(toLevel) };
        return toBuy;
      }
      toSell ??= { bids: bids.map(toLevel), asks: asks.slice(0, 1).map(toLevel) };
      return toSell;
    },
  };
}

function toLevel([price, size]: StoredLevel): PriceLevel {
  return { price: decimal(price), size: decimal(size) };
}

/** The statements that were known at a moment, and later ones. */
const FEES = sql(
  'rule_fees',
  `SELECT i.market_id, ceil(extract(epoch FROM f.known_at) * 1000)::bigint AS known_ms, s.statement
   FROM unnest($1::bigint[], $2::timestamptz[]) AS i (market_id, since) CROSS JOIN LATERAL (
     (SELECT f.known_at, f.fee_id FROM market_fee f
      WHERE f.market_id = i.market_id AND f.known_at <= i.since ORDER BY f.known_at DESC LIMIT 1)
     UNION ALL
     (SELECT f.known_at, f.fee_id FROM market_fee f WHERE f.market_id = i.market_id AND f.known_at > i.since)) f
   JOIN fee_statement s ON s.id = f.fee_id ORDER BY i.market_id, f.known_at`,
);

/** What was known about the fees of markets at a moment each, epoch milliseconds, and later; oldest first. */
export async function readFees(
  db: Queryable,
  sinceOf: ReadonlyMap<bigint, number>,
): Promise<Map<bigint, BookLeg['fees']>> {
  const found = new Map<bigint, KnownFee[]>();
  if (sinceOf.size === 0) return found;
  const rows = await db.query<{ marketId: bigint; knownMs: bigint; statement: FeeStatement }>(FEES, [
    [...sinceOf.keys()],
    [...sinceOf.values()].map((ms) => new Date(ms).toISOString()),
  ]);
  for (const { marketId, knownMs, statement } of rows) {
    const list = found.get(marketId) ?? [];
    found.set(marketId, list);
    list.push({ knownMs: Number(knownMs), statement });
  }
  return found;
}
