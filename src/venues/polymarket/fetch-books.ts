import type { BookRecord, PriceRecord } from '../../domain/markets/market.ts';
import { isTight, quotedPrice, quotesOf } from '../../domain/markets/quoted-price.ts';
import type { Decimal } from '../../domain/values/decimal.ts';
import { isHttpStatus, VenueError } from '../errors.ts';
import { observedAtMs } from '../http/age.ts';
import { type AnswerReading, readingSize } from '../http/answer-memory.ts';
import { createBatchRoute } from '../http/batch-route.ts';
import type { BatchRequest } from '../http/http.ts';
import { type Asked, joinAnswers, rejectMembers, unreadOf } from '../http/member-batches.ts';
import type { ParsedBatch } from '../parsed-batch.ts';
import type { Batch, CallContext, RejectedRecord } from '../port.ts';
import type { Report } from '../report.ts';
import { MAX_AHEAD_MS } from '../venue-time.ts';
import type { PolymarketClient } from './client.ts';
import {
  bestLevels,
  bestLevelsOfOther,
  latestTimeOf,
  parseBooks,
  parseLastTrades,
  priceWithLast,
  readBooks,
  timesOf,
  type UndatedBook,
} from './parse-book.ts';

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

  /** Asks the batch route, or the route for one token where that one is absent. */
  function ask<A>(
    tokenIds: readonly string[],
    many: (ids: readonly string[], request: BatchRequest) => Promise<A>,
    one: (id: string, request: BatchRequest) => Promise<A>,
  ): Promise<Asked<A | undefined>> {
    return askBooks<A>(tokenIds, {
      many: { batches: batches.books, size: MAX_BOOKS, get: many },
      one: {
        batches: batches.book,
        atOnce: BOOKS_AT_ONCE,
        async get(tokenId, request) {
          try {
            return await one(tokenId, request);
          } catch (error) {
            // The venue answers 400 or 404 for a token without a book.
            if (isHttpStatus(error, [400, 404])) return undefined;
            throw error;
          }
        },
      },
    });
  }

  async function readQuotes(outcomeIds: readonly string[], { signal, now }: CallContext) {
    const answeredAtMs = (observedAt: number) => observedAtMs({ observedAt }, now());
    const readerOf = (ids: readonly string[]) => ({
      read: (rows: readonly unknown[], observedAt: number) => quotedBooks(rows, answeredAtMs(observedAt), new Set(ids)),
      holds: ({ latestMs }: QuotedBooks, observedAt: number) => latestMs <= answeredAtMs(observedAt) + MAX_AHEAD_MS,
    });
    const asked = await ask(
      bookIds(outcomeIds),
      (ids, request) => client.readBooks(ids, signal, request, readerOf(ids)),
      async (id, request) => {
        const { rows, observedAt } = await client.getBook(id, signal, request);
        return { reading: readerOf([id]).read(rows, observedAt), observedAt };
      },
    );
    const read = joinAnswers('prices', asked, now(), ({ reading, observedAt }) => {
      const atMs = answeredAtMs(observedAt);
      const { records, rejected, unknowns, skipped } = reading.books;
      const timed = records.map(({ outcomeId, own, other, changedAtMs }) => ({
        outcomeId,
        own,
        other,
        times: timesOf(changedAtMs, atMs),
      }));
      return { rows: reading.rows, part: { records: timed, rejected, unknowns, skipped } };
    });
    return { ...read, ...unreadOf(asked) };
  }

  async function readLastTrades(tokenIds: readonly string[], context: CallContext): Promise<LastTrades> {
    const last: LastTrades = { trades: new Map(), rejected: [] };
    try {
      const asked = await batches.lastTrades.ask(
        tokenIds,
        (ids, request) =>
          client.readLastTrades(ids, context.signal, request, (rows) => {
            const read = parseLastTrades(rows, new Set(ids));
            return { size: readingSize(rows.length, read.rejected), ...read };
          }),
        { size: MAX_BOOKS, isOfRoute: (error) => isHttpStatus(error, [404, 405]) },
      );
      last.rejected.push(...rejectMembers('prices', asked.refused, context.now()));
      if (asked.fault) last.fault = asked.fault;
      for (const { answer } of asked.answers) {
        const asOfMs = observedAtMs(answer, context.now());
        const { prices, rejected } = answer.reading;
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
      const { rows, batch: books, ...unread } = await readQuotes(outcomeIds, context);
      const both = books.records.flatMap(({ outcomeId, own, other, times }) => {
        const otherId = mirrors.get(outcomeId);
        const side = { outcomeId, quotes: own, times };
        return otherId === undefined ? [side] : [side, { outcomeId: otherId, quotes: other, times }];
      });
      const loose = both.filter(({ quotes }) => 'bids' in quotes).map(({ outcomeId }) => outcomeId);
      const last = await readLastTrades(loose, context);
      const prices = both.map(({ outcomeId, quotes, times }) => {
        if ('price' in quotes) return dated(outcomeId, quotes, times);
        const { price, asOfMs: lastMs = Number.POSITIVE_INFINITY } = last.trades.get(outcomeId) ?? {};
        const { asOfMs, seenAtMs = asOfMs } = times;
        // A last trade from an older answer than the book may be older than the book's time.
        const earlier = { asOfMs: Math.min(asOfMs, lastMs), seenAtMs: Math.min(seenAtMs, lastMs) };
        return priceWithLast({ outcomeId, ...quotes, ...earlier }, price);
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
      const { signal, now } = context;
      const asked = await ask(
        bookIds(outcomeIds),
        (ids, request) => client.listBooks(ids, signal, request),
        (id, request) => client.getBook(id, signal, request),
      );
      const { rows, batch } = joinAnswers('books', asked, now(), (answer, requested) => ({
        rows: answer.rows.length,
        part: parseBooks('books', answer.rows, observedAtMs(answer, now()), requested),
      }));
      return { ...report.counted('books', rows, batch), ...unreadOf(asked) };
    },
  };
}

/** The made-up ids of markets without tokens have no book. */
function bookIds(outcomeIds: readonly string[]): string[] {
  return [...new Set(outcomeIds)].filter((id) => TOKEN_ID.test(id));
}

type BestLevels = Pick<BookRecord, 'bids' | 'asks'>;
/** The middle of tight quotes. */
type TightPrice = Required<Pick<PriceRecord, 'price' | 'bid' | 'ask'>>;

interface QuotedBook extends Pick<UndatedBook, 'outcomeId' | 'changedAtMs'> {
  /** Levels where the last trade decides. */
  own: TightPrice | BestLevels;
  /** The same of the market's other token. */
  other: TightPrice | BestLevels;
}

/** An answer with books, as the quotes that they make. */
interface QuotedBooks extends AnswerReading {
  rows: number;
  /** See `latestTimeOf`. */
  latestMs: number;
  books: ParsedBatch<QuotedBook>;
}

function dated(
  outcomeId: string,
  { price, bid, ask }: TightPrice,
  { asOfMs, seenAtMs }: Pick<PriceRecord, 'asOfMs' | 'seenAtMs'>,
): PriceRecord {
  return seenAtMs === undefined
    ? { outcomeId, asOfMs, price, bid, ask }
    : { outcomeId, asOfMs, seenAtMs, price, bid, ask };
}

function quotedBooks(rows: readonly unknown[], nowMs: number, requested: ReadonlySet<string>): QuotedBooks {
  const { records, ...batch } = readBooks('prices', rows, nowMs, requested);
  const quoted = ({ bids, asks, ...book }: UndatedBook): QuotedBook => ({
    ...book,
    own: quotesOfLevels(bestLevels({ bids, asks })),
    other: quotesOfLevels(bestLevelsOfOther({ bids, asks })),
  });
  return {
    size: readingSize(rows.length, batch.rejected),
    rows: rows.length,
    latestMs: latestTimeOf(rows),
    books: { ...batch, records: records.map(quoted) },
  };
}

function quotesOfLevels(levels: BestLevels): TightPrice | BestLevels {
  const { bid, ask } = quotesOf(levels);
  const price = isTight({ bid, ask }) ? quotedPrice({ bid, ask }, undefined) : undefined;
  return price === undefined || bid === undefined || ask === undefined ? levels : { price, bid, ask };
}

interface LastTrades {
  trades: Map<string, { price: Decimal; asOfMs: number }>;
  rejected: RejectedRecord[];
  fault?: VenueError;
}
