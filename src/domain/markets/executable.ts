import {
  addDecimals,
  compareDecimals,
  type Decimal,
  divideDecimals,
  fromUnits,
  midpoint,
  multiplyDecimals,
  negateDecimal,
  ONE,
  roundDecimal,
  scaleOf,
  subtractDecimals,
  toUnits,
  ZERO,
} from '../values/decimal.ts';
import type { FeeRule } from './fee.ts';
import type { OrderSide, PriceLevel } from './market.ts';

/** Stored levels per side: more than any `depth` that a client may request. A side with as many may have more at the venue. */
export const MAX_STORED_LEVELS = 200;

/** Digits after the point of a quotient, unless the finest price of the fill has more. */
const QUOTIENT_DIGITS = 18;

/** An order by its size in units of the outcome, or by its notional: price × size without the fee, in the currency of the market. */
export interface Order {
  readonly side: OrderSide;
  /** The unit of `amount`. */
  readonly by: 'size' | 'notional';
  readonly amount: Decimal;
}

/** The terms of an order besides the book. */
interface OrderTerms {
  /** Null: not known. */
  readonly fee: FeeRule | null;
  /** Digits after the point of a size at the venue: an order by notional is filled in such sizes. */
  readonly sizeDigits: number;
}

export interface Executable {
  filledSize: Decimal;
  /** Price × size of the fills, without the fee. */
  filledNotional: Decimal;
  /** Null without a fill. At most `QUOTIENT_DIGITS` digits after the point, or those of its finest price, rounded half to even. */
  averagePrice: Decimal | null;
  worstPrice: Decimal | null;
  /** Levels of the book that the order takes from. */
  levels: number;
  /** Null: not known, or without a fill. */
  fee: Decimal | null;
  /** What a buyer pays or a seller gets, with the fee. */
  total: Decimal | null;
  /** `total` per unit, rounded like `averagePrice`. */
  priceWithFee: Decimal | null;
  /** How much worse `averagePrice` is than the middle of the best prices; null when a side is empty. */
  slippage: Decimal | null;
  isComplete: boolean;
  /** The rest that the book of the venue does not have. Absent when the stored book is cut. */
  missingSize?: Decimal;
  missingNotional?: Decimal;
  /** The notional is less than the price of the smallest size. */
  isBelowStep: boolean;
  /** The stored levels end, and the venue may have more. */
  isTruncated: boolean;
  /** The best bid is at the best ask or above it. */
  isCrossed: boolean;
}

/** The levels of a book, the best ones first. */
export interface OrderBookLevels {
  readonly bids: readonly PriceLevel[];
  readonly asks: readonly PriceLevel[];
}

/** The fill of an order by a book, level by level. Exact, except for the quotients. */
export function executable(book: OrderBookLevels, order: Order, { fee: rule, sizeDigits }: OrderTerms): Executable {
  const { side, by } = order;
  const levels = side === 'buy' ? book.asks : book.bids;
  let missing = order.amount;
  let filledSize = ZERO;
  let filledNotional = ZERO;
  let fees = ZERO;
  let worstPrice: Decimal | null = null;
  let used = 0;
  let isComplete = false;
  for (const level of levels) {
    const wanted = by === 'size' ? missing : affordable(missing, level.price, sizeDigits);
    const isWhole = wanted === undefined || compareDecimals(wanted, level.size) > 0;
    const size = isWhole ? level.size : wanted;
    if (size !== ZERO) {
      const cost = multiplyDecimals(size, level.price);
      filledSize = addDecimals(filledSize, size);
      filledNotional = addDecimals(filledNotional, cost);
      if (rule) fees = addDecimals(fees, takerFee(rule, { price: level.price, size }));
      worstPrice = level.price;
      used += 1;
      missing = subtractDecimals(missing, by === 'size' ? size : cost);
    }
    isComplete = !isWhole || missing === ZERO;
    if (isComplete) break;
  }
  const isBelowStep = isComplete && filledSize === ZERO;
  const isTruncated = !isComplete && levels.length >= MAX_STORED_LEVELS;
  const hasFill = filledSize !== ZERO;
  const fee = rule && hasFill ? orderFee(rule, { isBuy: side === 'buy', notional: filledNotional, fees }) : null;
  const digits = Math.max(QUOTIENT_DIGITS, ...levels.slice(0, used).map(({ price }) => scaleOf(price)));
  const averagePrice = hasFill ? divideDecimals(filledNotional, filledSize, digits) : null;
  const total =
    fee === null ? null : side === 'buy' ? addDecimals(filledNotional, fee) : subtractDecimals(filledNotional, fee);
  const [bid, ask] = [book.bids[0]?.price, book.asks[0]?.price];
  const mid = bid === undefined || ask === undefined ? undefined : midpoint(bid, ask);
  return {
    filledSize,
    filledNotional,
    averagePrice,
    worstPrice,
    levels: used,
    fee,
    total,
    priceWithFee: total === null ? null : divideDecimals(total, filledSize, digits),
    slippage:
      averagePrice === null || mid === undefined
        ? null
        : side === 'buy'
          ? subtractDecimals(averagePrice, mid)
          : subtractDecimals(mid, averagePrice),
    isComplete: isComplete && !isBelowStep,
    isBelowStep,
    ...(!isComplete && !isTruncated && { [by === 'size' ? 'missingSize' : 'missingNotional']: missing }),
    isTruncated,
    isCrossed: bid !== undefined && ask !== undefined && compareDecimals(bid, ask) >= 0,
  };
}

/** The sum that a seller gets minus the cost of the same size for a buyer, and per unit; null unless both fills are complete with known fees. */
export function netOfFills(buy: Executable, sell: Executable): { net: Decimal; perUnit: Decimal } | null {
  if (!buy.isComplete || !sell.isComplete || buy.total === null || sell.total === null) return null;
  const net = subtractDecimals(sell.total, buy.total);
  const averages = [buy.averagePrice ?? ZERO, sell.averagePrice ?? ZERO];
  return { net, perUnit: divideDecimals(net, buy.filledSize, Math.max(QUOTIENT_DIGITS, ...averages.map(scaleOf))) };
}

/** Whether a venue would fill the whole order at a known fee: a crossed book is one that no venue executes. */
export function isExecutable({ isComplete, isCrossed, priceWithFee }: Executable): boolean {
  return isComplete && !isCrossed && priceWithFee !== null;
}

/** The largest size, in the steps of the venue, whose cost is at most an amount; undefined at a price of 0, which has no limit. */
function affordable(amount: Decimal, price: Decimal, sizeDigits: number): Decimal | undefined {
  if (price === ZERO) return undefined;
  const scale = Math.max(scaleOf(amount), scaleOf(price));
  return fromUnits((toUnits(amount, scale) * 10n ** BigInt(sizeDigits)) / toUnits(price, scale), sizeDigits);
}

/** The fee of one fill of an order that takes from the book, before its balance is rounded. */
function takerFee(rule: FeeRule, { price, size }: { price: Decimal; size: Decimal }): Decimal {
  if (rule.model === 'none') return ZERO;
  let fee = multiplyDecimals(size, rule.takerRate);
  const variance = multiplyDecimals(price, subtractDecimals(ONE, price));
  for (let power = 0; power < rule.exponent; power += 1) fee = multiplyDecimals(fee, variance);
  return roundDecimal(fee, rule.digits, rule.rounding);
}

/** The fee of an order: `fees` of its fills with the rest of its balance, which is rounded against the account. */
function orderFee(rule: FeeRule, order: { isBuy: boolean; notional: Decimal; fees: Decimal }): Decimal {
  const { isBuy, notional, fees } = order;
  if (rule.model === 'none' || rule.balanceDigits === undefined) return fees;
  // The change of the balance of a buyer is negative, so both are rounded down.
  const change = subtractDecimals(isBuy ? negateDecimal(notional) : notional, fees);
  return addDecimals(fees, subtractDecimals(change, roundDecimal(change, rule.balanceDigits, 'down')));
}
