import { type Executable, executable, type Order } from '../../src/domain/markets/executable.ts';
import { type FeeReason, type FeeStatement, feePeriodAt, laterFeePeriods } from '../../src/domain/markets/fee.ts';
import type { PriceLevel } from '../../src/domain/markets/market.ts';
import { decimalField, optionalDecimal } from '../../src/domain/values/api-json.ts';
import { type Decimal, decimal } from '../../src/domain/values/decimal.ts';
import type { StoredBook, StoredLevel } from '../../src/store/series/book-reads.ts';
import type { ExecutableBody } from '../contract/executable.ts';
import { epochSeconds } from '../http/respond.ts';

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
export interface PresentedFill {
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
    reason: fill.isTruncated ? 'book_truncated' : undefined,
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
