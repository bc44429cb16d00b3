import { type Executable, executable, type Order } from '../../src/domain/markets/executable.ts';
import { type FeeReason, type FeeStatement, feePeriodAt, laterFeePeriods } from '../../src/domain/markets/fee.ts';
import type { PriceLevel } from '../../src/domain/markets/market.ts';
import { decimalField, optionalDecimal } from '../../src/domain/values/api-json.ts';
import { type Decimal, decimal, scaleOf } from '../../src/domain/values/decimal.ts';
import type { JournalStamp } from '../../src/store/journal/read-journal.ts';
import type { OrderBook, StoredBook, StoredLevel } from '../../src/store/series/book-reads.ts';
import type { ExecutableBody, PlacedExecutableBody } from '../contract/executable.ts';
import { ApiError, invalidRequest } from '../errors.ts';
import { epochSeconds } from '../http/respond.ts';
import type { Validity } from './answer-cache.ts';
import { presentSighting, stableBookMs } from './cold-read.ts';
import { FILL_KINDS } from './journal-view.ts';
import type { MarketReadDeps } from './read-deps.ts';

/** An order on the stored book of an outcome. */
interface OrderOnBook {
  marketId: string;
  outcomeId: string;
  book: StoredBook;
  /** Null: none is stored, or with `isPast` none was known at that moment. */
  fee: FeeStatement | null;
  /** The moment whose fee applies, epoch milliseconds. */
  atMs: number;
  isPast?: boolean;
  order: Order;
  /** Digits after the point of a size at the venue. */
  sizeDigits: number;
}

/** The fill of an order, and its answer. */
interface PresentedFill {
  fill: Executable;
  body: ExecutableBody;
}

/** Fills an order from a stored book with the fee of a moment, and presents it (docs/executable.md). */
export function presentExecutable(asked: OrderOnBook): PresentedFill {
  const { book, fee, atMs, order, sizeDigits } = asked;
  const { side, by, amount } = order;
  const rule = (fee && feePeriodAt(fee, atMs)?.rule) ?? null;
  // Of the other side, an order needs the best price only.
  const levels =
    side === 'buy'
      ? { bids: book.bids.slice(0, 1).map(toLevel), asks: book.asks.map(toLevel) }
      : { bids: book.bids.map(toLevel), asks: book.asks.slice(0, 1).map(toLevel) };
  const fill = executable(levels, order, { fee: rule, sizeDigits });
  const body: ExecutableBody = {
    market_id: asked.marketId,
    outcome_id: asked.outcomeId,
    side,
    size: by === 'size' ? decimalField(amount) : undefined,
    notional: by === 'notional' ? decimalField(amount) : undefined,
    filled_size: decimalField(fill.filledSize),
    filled_notional: decimalField(fill.filledNotional),
    average_price: nullableDecimal(fill.averagePrice),
    worst_price: nullableDecimal(fill.worstPrice),
    levels: fill.levels,
    fee: nullableDecimal(fill.fee),
    fee_reason: rule === null ? unknownFeeReason(asked) : undefined,
    total: nullableDecimal(fill.total),
    price_with_fee: nullableDecimal(fill.priceWithFee),
    slippage: nullableDecimal(fill.slippage),
    complete: fill.isComplete,
    missing_size: optionalDecimal(fill.missingSize),
    missing_notional: optionalDecimal(fill.missingNotional),
    reason: fill.isTruncated ? 'book_truncated' : fill.isBelowStep ? 'below_step' : undefined,
    crossed: fill.isCrossed,
    as_of: epochSeconds(book.asOf),
  };
  return { fill, body };
}

/** The time until an announced fee applies, milliseconds: an answer about now changes then without a change of its facts. */
export function stableFeeMs(fee: FeeStatement | null, atMs: number): number {
  const [next] = fee ? laterFeePeriods(fee, atMs) : [];
  return next === undefined ? Number.POSITIVE_INFINITY : next.fromMs - atMs;
}

function unknownFeeReason({ fee, atMs, isPast }: OrderOnBook): NonNullable<ExecutableBody['fee_reason']> {
  if (fee === null) return isPast ? 'not_known_then' : 'not_read';
  return feeReason(fee, atMs);
}

/** Why a stored statement has no known rule for a moment. One about later times says nothing about this moment. */
export function feeReason(fee: FeeStatement, atMs: number): FeeReason {
  if (fee.periods.length > 0 && !feePeriodAt(fee, atMs)) return 'not_stated';
  return fee.reason ?? 'unknown_rule';
}

function toLevel([price, size]: StoredLevel): PriceLevel {
  return { price: decimal(price), size: decimal(size) };
}

function nullableDecimal(value: Decimal | null): ExecutableBody['total'] {
  return value === null ? null : decimalField(value);
}

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
