import { LRUCache } from 'lru-cache';
import type { BookRecord } from '../../domain/market.ts';
import type { ParsedBatch } from '../parsed-batch.ts';
import { isHttpStatus, type KalshiClient } from './client.ts';
import { tickersOf } from './outcome-ids.ts';
import { isEmpty, parseBooks, UNKNOWN_MARKET } from './parse-book.ts';
import { fieldOf } from './parse-market.ts';

/** Single book requests under way at once where the batch route cannot be used. */
const BOOKS_AT_ONCE = 8;

const MAX_KNOWN = 100_000;
/** Markets leave the live routes months after they settle: an hour is soon enough to notice. */
const KNOWN_FOR_MS = 3_600_000;

/** The books of at most 100 markets. Throws VenueError. */
type ReadBooks = (tickers: readonly string[], nowMs: number, signal: AbortSignal) => Promise<ParsedBatch<BookRecord>>;

/**
 * The venue answers with an empty book for any ticker, and nothing in that answer tells an unknown market from one without
 * orders. A market with an empty book counts as known while it is on the market route, which is asked once an hour.
 */
export function createBookReader(client: Pick<KalshiClient, 'listBooks' | 'getBook' | 'listQuotes'>): ReadBooks {
  const known = new LRUCache<string, true>({ max: MAX_KNOWN, ttl: KNOWN_FOR_MS });
  return async (tickers, nowMs, signal) => {
    const batch = parseBooks(await listBooks(client, tickers, signal), nowMs, new Set(tickers));
    const empty = tickersOf(batch.records.filter(isEmpty).map((book) => book.outcomeId));
    const doubtful = empty.filter((ticker) => !known.has(ticker));
    if (doubtful.length === 0) return batch;
    for (const row of await client.listQuotes(doubtful, signal)) {
      const ticker = fieldOf(row, 'ticker');
      if (typeof ticker === 'string') known.set(ticker, true);
    }
    const unknown = new Set(doubtful.filter((ticker) => !known.has(ticker)));
    const isKnown = ({ outcomeId }: BookRecord) => !tickersOf([outcomeId]).some((ticker) => unknown.has(ticker));
    const skipped = [...batch.skipped, ...Array.from(unknown, () => UNKNOWN_MARKET)];
    return { ...batch, records: batch.records.filter(isKnown), skipped };
  };
}

/** By the batch route, or one by one where it is missing or wants a key that the single route does not. */
async function listBooks(
  client: Pick<KalshiClient, 'listBooks' | 'getBook'>,
  tickers: readonly string[],
  signal: AbortSignal,
): Promise<unknown[]> {
  try {
    return await client.listBooks(tickers, signal);
  } catch (error) {
    if (!isHttpStatus(error, [400, 401, 403, 404, 405])) throw error;
    return getBooks(client, tickers, signal);
  }
}

async function getBooks(
  client: Pick<KalshiClient, 'getBook'>,
  tickers: readonly string[],
  signal: AbortSignal,
): Promise<unknown[]> {
  const rows: unknown[] = [];
  const waiting = [...tickers];
  const work = async () => {
    for (let ticker = waiting.shift(); ticker !== undefined; ticker = waiting.shift()) {
      try {
        rows.push(await client.getBook(ticker, signal));
      } catch (error) {
        // The venue's way to say that it does not know a market.
        if (isHttpStatus(error, [404])) continue;
        waiting.length = 0;
        throw error;
      }
    }
  };
  await Promise.all(Array.from({ length: BOOKS_AT_ONCE }, work));
  return rows;
}
