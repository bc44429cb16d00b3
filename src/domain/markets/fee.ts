import {
  addDecimals,
  type Decimal,
  multiplyDecimals,
  ONE,
  roundDecimal,
  subtractDecimals,
  ZERO,
} from '../values/decimal.ts';

/** Why the fee of a market is not known. */
export const FEE_REASONS = ['not_read', 'not_stated', 'unknown_rule'] as const;
export type FeeReason = (typeof FEE_REASONS)[number];
/** Of a price of the past, also that oddswire knew no fee then. */
export const UNKNOWN_FEE_REASONS = [...FEE_REASONS, 'not_known_then'] as const;

/** What is rounded: the fee, or the amount that the account pays or gets, whose rest goes to the fee. */
export type RoundedAmount = 'fee' | 'balance';

/**
 * The fee of an order that takes from the book, and of one that rests in it. Rates are decimals; the fee is in the currency of the market.
 * - `none`: the venue takes no fee.
 * - `price_curve`: size × rate × (price × (1 − price))^exponent of each fill, with the price as a share of the payout.
 */
export type FeeRule =
  | { readonly model: 'none' }
  | {
      readonly model: 'price_curve';
      readonly takerRate: Decimal;
      /** Absent: the venue does not state it. */
      readonly makerRate?: Decimal;
      /** A whole number from 1 to 4. */
      readonly exponent: number;
      readonly rounding: {
        /** Digits after the point. */
        readonly digits: number;
        /** `up` is in favour of the venue. */
        readonly mode: 'up' | 'half_up' | 'down';
        readonly of: RoundedAmount;
      };
    };

/** A rule and the time from which it applies, epoch milliseconds; without it since before it was read. */
export interface FeePeriod {
  readonly fromMs?: number;
  /** Null: the venue states a fee by a rule that oddswire does not know. */
  readonly rule: FeeRule | null;
}

/** What a venue states about the fee of a market: the present rule and announced ones, in the order of their times. */
export interface FeeStatement {
  readonly periods: readonly FeePeriod[];
  /** Why no rule is known; `periods` is empty then. */
  readonly reason?: FeeReason;
  /** The venue's own words of an unknown rule, at most 200 characters. */
  readonly raw?: string;
}

/** The period that applies at a moment, epoch milliseconds; undefined for none. */
export function feePeriodAt({ periods }: FeeStatement, atMs: number): FeePeriod | undefined {
  return periods.findLast(({ fromMs }) => fromMs === undefined || fromMs <= atMs);
}

/** The periods that begin after a moment, epoch milliseconds. */
export function laterFeePeriods({ periods }: FeeStatement, atMs: number): (FeePeriod & { readonly fromMs: number })[] {
  return periods.flatMap(({ fromMs, rule }) => (fromMs !== undefined && fromMs > atMs ? [{ fromMs, rule }] : []));
}

/** The fee of one fill of an order that takes from the book. */
export function takerFee(rule: FeeRule, fill: { side: 'buy' | 'sell'; price: Decimal; size: Decimal }): Decimal {
  if (rule.model === 'none') return ZERO;
  const { side, price, size } = fill;
  const { takerRate, exponent, rounding } = rule;
  const { digits, mode, of } = rounding;
  let fee = multiplyDecimals(size, takerRate);
  const variance = multiplyDecimals(price, subtractDecimals(ONE, price));
  for (let power = 0; power < exponent; power += 1) fee = multiplyDecimals(fee, variance);
  if (of === 'fee') return roundDecimal(fee, digits, mode);
  const notional = multiplyDecimals(size, price);
  if (side === 'buy') return subtractDecimals(roundDecimal(addDecimals(notional, fee), digits, mode), notional);
  // What the account gets is rounded against it.
  return addDecimals(notional, roundDecimal(subtractDecimals(fee, notional), digits, mode));
}
