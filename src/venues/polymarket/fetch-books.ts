import { quotesOf } from '../../domain/markets/book-price.ts';
import type { BookRecord, PriceRecord } from '../../domain/markets/market.ts';
import { isTight } from '../../domain/markets/quoted-price.ts';
import type { Decimal } from '../../domain/values/decimal.ts';
import { type ObservedRows, observedAtMs } from '../http/age.ts';
import type { Batch, CallContext, RejectedRecord } from '../port.ts';
import type { Report } from '../report.ts';
import { isHttpStatus, type PolymarketClient } from './client.ts';
import { bestQuotesOfOther, parseBooks, parseLastTrades, priceWithLast } from './parse-book.ts';

/** The limit of `POST /books`, tokens. */
export const MAX_BOOKS = 500;
/** Single book requests in flight at once, where the batch route is absent. */
const BOOKS_AT_ONCE = 8;
const TOKEN_ID = /^\d{1,100}$/;

/**
 * Prices of tokens from their books, or from their last trades where the book is too wide. A token in `mirrors` needs no book of its own:
 * the venue keeps one book per market and shows it from both sides.
 */
export async function fetchPrices(
  client: PolymarketClient,
  outcomeIds: readonly string[],
  context: CallContext,
  report: Report,
  mirrors: ReadonlyMap<string, string> = new Map(),
): Promise<Batch<PriceRecord>> {
  const books = await fetchBooks(client, 'prices', outcomeIds, context, report);
  const both = books.records.flatMap((book) => {
    const other = mirrors.get(book.outcomeId);
    return other === undefined ? [book] : [book, bestQuotesOfOther(book, other)];
  });
  const loose = both.filter((book) => !isTight(quotesOf(book))).map((book) => book.outcomeId);
  const last = await fetchLastTrades(client, loose, context);
  const prices = both.map((book) => {
    const { price, asOfMs: lastMs = Number.POSITIVE_INFINITY } = last.trades.get(book.outcomeId) ?? {};
    const { asOfMs, seenAtMs = asOfMs } = book;
    // A last trade from an older answer than the book may be older than the book's time.
    const times = { asOfMs: Math.min(asOfMs, lastMs), seenAtMs: Math.min(seenAtMs, lastMs) };
    return priceWithLast({ ...book, ...times }, price);
  });
  const records = prices.filter((price) => price !== undefined);
  report.skipped('prices', Array(prices.length - records.length).fill('no_price'));
  // The other side of a book counts as a record. Last trades complete prices: only a rejected one counts by itself.
  report.received('prices', both.length - books.records.length + last.rejected.length);
  return {
    records,
    rejected: [...books.rejected, ...last.rejected],
  };
}

/** Books of tokens; rejections count as records of `kind`. */
export async function fetchBooks(
  client: PolymarketClient,
  kind: 'books' | 'prices',
  outcomeIds: readonly string[],
  context: CallContext,
  report: Report,
): Promise<Batch<BookRecord>> {
  // The made-up ids of markets without tokens have no book, and one bad id would make the venue refuse the whole batch.
  const tokenIds = [...new Set(outcomeIds)].filter((id) => TOKEN_ID.test(id));
  const batch: Batch<BookRecord> = { records: [], rejected: [] };
  let received = 0;
  for (let start = 0; start < tokenIds.length; start += MAX_BOOKS) {
    const chunk = tokenIds.slice(start, start + MAX_BOOKS);
    for (const answer of await listBooks(client, chunk, context.signal)) {
      const asOfMs = observedAtMs(answer, context.now());
      const parsed = parseBooks(kind, answer.rows, asOfMs, new Set(answer.tokenIds));
      batch.records.push(...parsed.records);
      batch.rejected.push(...parsed.rejected);
      received += answer.rows.length;
    }
  }
  report.received(kind, received);
  return batch;
}

interface LastTrades {
  trades: Map<string, { price: Decimal; asOfMs: number }>;
  rejected: RejectedRecord[];
}

async function fetchLastTrades(
  client: PolymarketClient,
  tokenIds: readonly string[],
  context: CallContext,
): Promise<LastTrades> {
  const last: LastTrades = { trades: new Map(), rejected: [] };
  for (let start = 0; start < tokenIds.length; start += MAX_BOOKS) {
    const chunk = tokenIds.slice(start, start + MAX_BOOKS);
    try {
      const answer = await client.listLastTrades(chunk, context.signal);
      const asOfMs = observedAtMs(answer, context.now());
      const { prices, rejected } = parseLastTrades(answer.rows, new Set(chunk));
      for (const [tokenId, price] of prices) last.trades.set(tokenId, { price, asOfMs });
      last.rejected.push(...rejected);
    } catch (error) {
      // Without the route, wide books have no price; the middles of the other books stay valid.
      if (!isHttpStatus(error, [400, 404, 405])) throw error;
    }
  }
  return last;
}

/** An answer with the tokens of its request. */
interface BooksAnswer extends ObservedRows {
  tokenIds: readonly string[];
}

async function listBooks(
  client: PolymarketClient,
  tokenIds: readonly string[],
  signal: AbortSignal,
): Promise<BooksAnswer[]> {
  try {
    return [{ ...(await client.listBooks(tokenIds, signal)), tokenIds }];
  } catch (error) {
    if (!isHttpStatus(error, [400, 404, 405])) throw error;
    return getBooks(client, tokenIds, signal);
  }
}

async function getBooks(
  client: PolymarketClient,
  tokenIds: readonly string[],
  signal: AbortSignal,
): Promise<BooksAnswer[]> {
  const answers: BooksAnswer[] = [];
  const waiting = [...tokenIds];
  const work = async () => {
    for (let tokenId = waiting.shift(); tokenId !== undefined; tokenId = waiting.shift()) {
      try {
        answers.push({ ...(await client.getBook(tokenId, signal)), tokenIds: [tokenId] });
      } catch (error) {
        // The venue answers 400 or 404 for a token without a book.
        if (isHttpStatus(error, [400, 404])) continue;
        waiting.length = 0;
        throw error;
      }
    }
  };
  await Promise.all(Array.from({ length: BOOKS_AT_ONCE }, work));
  return answers;
}
