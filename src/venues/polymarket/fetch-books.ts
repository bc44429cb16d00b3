import type { BookRecord, PriceRecord } from '../../domain/markets/market.ts';
import { isTight, quotesOf } from '../../domain/markets/quoted-price.ts';
import type { Decimal } from '../../domain/values/decimal.ts';
import { isHttpStatus, VenueError } from '../errors.ts';
import { type ObservedRows, observedAtMs } from '../http/age.ts';
import { createBatchRoute } from '../http/batch-route.ts';
import { type Asked, joinAnswers, rejectMembers, unreadOf } from '../http/member-batches.ts';
import type { Batch, CallContext, RejectedRecord } from '../port.ts';
import type { Report } from '../report.ts';
import type { PolymarketClient } from './client.ts';
import { bestQuotesOfOther, parseBooks, parseLastTrades, priceWithLast } from './parse-book.ts';

/** The limit of `POST /books`, tokens. */
export const MAX_BOOKS = 500;
/** Single book requests in flight at once, where the batch route is absent. */
const BOOKS_AT_ONCE = 8;
const TOKEN_ID = /^\d{1,100}$/;

type FetchPrices = (
  outcomeIds: readonly string[],
  context: CallContext,
  mirrors?: ReadonlyMap<string, string>,
) => Promise<Batch<PriceRecord>>;

/** Reads the books and prices of tokens. Rejections of books that make prices count as records of prices. */
export function createBookReader(
  client: PolymarketClient,
  report: Report,
): {
  /**
   * Prices of tokens from their books, or from their last trades where the book is too wide. A token in `mirrors` needs no book of its own:
   * the venue keeps one book per market and shows it from both sides.
   */
  fetchPrices: FetchPrices;
  fetchBooks(outcomeIds: readonly string[], context: CallContext): Promise<Batch<BookRecord>>;
} {
  const batches = {
    books: client.members('clob', 'books'),
    book: client.members('clob', 'book'),
    lastTrades: client.members('clob', 'last_trades'),
  };
  const askBooks = createBatchRoute({
    isCertain: (error) => isHttpStatus(error, [404, 405]),
    isPossible: (error) => isHttpStatus(error, [400]),
  });

  function listBooks(tokenIds: readonly string[], signal: AbortSignal): Promise<Asked<ObservedRows | undefined>> {
    return askBooks<ObservedRows>(tokenIds, {
      many: {
        batches: batches.books,
        size: MAX_BOOKS,
        get: (ids, request) => client.listBooks(ids, signal, request),
      },
      one: {
        batches: batches.book,
        atOnce: BOOKS_AT_ONCE,
        async get(tokenId, request) {
          try {
            return await client.getBook(tokenId, signal, request);
          } catch (error) {
            // The venue answers 400 or 404 for a token without a book.
            if (isHttpStatus(error, [400, 404])) return undefined;
            throw error;
          }
        },
      },
    });
  }

  async function readBooks(kind: 'books' | 'prices', outcomeIds: readonly string[], { signal, now }: CallContext) {
    // The made-up ids of markets without tokens have no book.
    const tokenIds = [...new Set(outcomeIds)].filter((id) => TOKEN_ID.test(id));
    const asked = await listBooks(tokenIds, signal);
    const read = joinAnswers(kind, asked, now(), (answer, requested) => ({
      rows: answer.rows.length,
      part: parseBooks(kind, answer.rows, observedAtMs(answer, now()), requested),
    }));
    return { ...read, ...unreadOf(asked) };
  }

  async function readLastTrades(tokenIds: readonly string[], context: CallContext): Promise<LastTrades> {
    const last: LastTrades = { trades: new Map(), rejected: [] };
    try {
      const asked = await batches.lastTrades.ask(
        tokenIds,
        (ids, request) => client.listLastTrades(ids, context.signal, request),
        { size: MAX_BOOKS, isOfRoute: (error) => isHttpStatus(error, [404, 405]) },
      );
      last.rejected.push(...rejectMembers('prices', asked.refused, context.now()));
      if (asked.fault) last.fault = asked.fault;
      for (const { members, answer } of asked.answers) {
        const asOfMs = observedAtMs(answer, context.now());
        const { prices, rejected } = parseLastTrades(answer.rows, new Set(members));
        for (const [tokenId, price] of prices) last.trades.set(tokenId, { price, asOfMs });
        last.rejected.push(...rejected);
      }
    } catch (error) {
      if (!(error instanceof VenueError)) throw error;
      // Wide books have no price then; the middles of the other books stay valid. Without the route this is the normal state.
      if (!isHttpStatus(error, [400, 404, 405])) last.fault = error;
    }
    return last;
  }

  return {
    async fetchPrices(outcomeIds, context, mirrors = new Map()) {
      const { rows, batch: books, ...unread } = await readBooks('prices', outcomeIds, context);
      const both = books.records.flatMap((book) => {
        const other = mirrors.get(book.outcomeId);
        return other === undefined ? [book] : [book, bestQuotesOfOther(book, other)];
      });
      const loose = both.filter((book) => !isTight(quotesOf(book))).map((book) => book.outcomeId);
      const last = await readLastTrades(loose, context);
      const prices = both.map((book) => {
        const { price, asOfMs: lastMs = Number.POSITIVE_INFINITY } = last.trades.get(book.outcomeId) ?? {};
        const { asOfMs, seenAtMs = asOfMs } = book;
        // A last trade from an older answer than the book may be older than the book's time.
        const times = { asOfMs: Math.min(asOfMs, lastMs), seenAtMs: Math.min(seenAtMs, lastMs) };
        return priceWithLast({ ...book, ...times }, price);
      });
      const records = prices.filter((price) => price !== undefined);
      const rejected = [...books.rejected, ...last.rejected];
      const skipped = Array(prices.length - records.length).fill('no_price');
      // The other side of a book counts as a record. Last trades complete prices: only a rejected one counts by itself.
      const received = rows + both.length - books.records.length + last.rejected.length;
      const fault = last.fault && { fault: last.fault };
      return { ...report.counted('prices', received, { records, rejected, skipped }), ...fault, ...unread };
    },
    async fetchBooks(outcomeIds, context) {
      const { rows, batch, ...unread } = await readBooks('books', outcomeIds, context);
      return { ...report.counted('books', rows, batch), ...unread };
    },
  };
}

interface LastTrades {
  trades: Map<string, { price: Decimal; asOfMs: number }>;
  rejected: RejectedRecord[];
  fault?: VenueError;
}
