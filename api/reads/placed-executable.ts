import type { Order } from '../../src/domain/markets/executable.ts';
import { scaleOf } from '../../src/domain/values/decimal.ts';
import type { JournalStamp } from '../../src/store/journal/stamp.ts';
import type { OrderBook } from '../../src/store/series/order-books.ts';
import type { PlacedExecutableBody } from '../contract/executable.ts';
import { ApiError, invalidRequest } from '../errors.ts';
import type { Validity } from './answer-cache.ts';
import { presentSighting, stableBookMs } from './cold-read.ts';
import { type PresentedFill, presentExecutable, stableFeeMs } from './executable-answer.ts';
import type { NamedKind } from './journal-view.ts';
import type { MarketReadDeps } from './read-deps.ts';

type KnownBook = OrderBook & { asOf: Date; bids: NonNullable<OrderBook['bids']>; asks: NonNullable<OrderBook['asks']> };

export function hasBook(book: OrderBook): book is KnownBook {
  return book.asOf !== null;
}

interface PlacedTerms {
  order: Order;
  sizeDigits: number;
  atMs: number;
  isPast: boolean;
}

/** A fill with its venue, and for a latest book with its age. */
export function presentPlaced(
  book: KnownBook,
  terms: PlacedTerms,
): Pick<PresentedFill, 'fill'> & { body: PlacedExecutableBody } {
  const { marketId, outcomeId, venue, status, receivedAt, unseenMs, fee } = book;
  const { fill, body } = presentExecutable({ marketId, outcomeId, book, fee, ...terms });
  const sighting = receivedAt && unseenMs !== null ? presentSighting({ receivedAt, unseenMs }, { status }) : {};
  return { fill, body: { ...body, venue, ...sighting } };
}

/** The facts of a fill: the book with its gaps, the status of the market, and its fee. */
export const FILL_KINDS: ReadonlySet<NamedKind> = new Set(['book', 'book-seen', 'market', 'gap', 'fees']);

/** The validity of an answer about the latest books of several outcomes; undefined when one of them may change without the journal. */
export function booksValidity(
  books: readonly OrderBook[],
  stamp: JournalStamp | undefined,
  atMs: number,
): Validity | undefined {
  const times = books.flatMap((book) => {
    const { unseenMs, fee } = book;
    return [unseenMs === null ? [] : stableBookMs({ unseenMs }, book), stableFeeMs(fee, atMs)].flat();
  });
  const forMs = Math.min(...times);
  return stamp && forMs > 0 ? { stamp, subjects: books, kinds: FILL_KINDS, forMs } : undefined;
}

/** The digits after the point of a size by the venue. The function throws `orderbook_not_supported` for a venue without books. */
export function sizeDigits({ venues }: Pick<MarketReadDeps, 'venues'>): (market: { venue: string }) => number {
  const known = new Map<string, number>(
    venues.flatMap(({ venue, sizeDigits: digits }) => (digits === undefined ? [] : [[venue, digits]])),
  );
  return ({ venue }) => {
    const digits = known.get(venue);
    if (digits === undefined) throw venueWithoutBooks(venue);
    return digits;
  };
}

export function venueWithoutBooks(venue: string): ApiError {
  return new ApiError('orderbook_not_supported', `${venue} has no orderbooks`);
}

/** @throws ApiError `invalid_request` for a size with more digits after the point than the venue accepts. */
export function checkSizeDigits({ by, amount }: Pick<Order, 'by' | 'amount'>, digits: number): void {
  if (by === 'size' && scaleOf(amount) > digits)
    throw invalidRequest([{ path: 'size', message: `must have at most ${digits} digits after the point` }]);
}
