import type { Decimal } from '../values/decimal.ts';

/**
 * Why the fee of a market is not known. `not_read`: no answer of the venue had it yet. `not_stated`: the venue states none.
 * `unknown_rule`: the venue names a rule whose formula it does not publish. `depends_on_account`: each account has its own rate.
 */
export const FEE_REASONS = ['not_read', 'not_stated', 'unknown_rule', 'depends_on_account'] as const;
export type FeeReason = (typeof FEE_REASONS)[number];
/** Of a price of the past, also that oddswire knew no fee then. */
export const UNKNOWN_FEE_REASONS = [...FEE_REASONS, 'not_known_then'] as const;

/**
 * The fee of an order that takes from the book, and of one that rests in it, in the currency of the market.
 * - `none`: the venue takes no fee.
 * - `price_curve`: size × rate × (price × (1 − price))^exponent for each fill, with the price as a share of the payout of 1.
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
      /** Digits after the point of the fee of a fill. `up` is in favour of the venue. */
      readonly digits: number;
      readonly rounding: 'up' | 'half_up';
      /** Digits after the point of the sum that the account pays or gets for an order: the rest is a fee too. Absent: it is not rounded. */
      readonly balanceDigits?: number;
    };

/** A rule and the time from which it applies, epoch milliseconds; without it since before it was read. */
export interface FeePeriod {
  readonly fromMs?: number;
  /** Null: the formula is not known, for the reason of the statement. */
  readonly rule: FeeRule | null;
}

/** What a venue states about the fee of a market: the present rule and announced ones, in the order of their times. */
export interface FeeStatement {
  readonly periods: readonly FeePeriod[];
  /** Why a rule is not known: of the periods whose rule is null, or of all times when there are none. */
  readonly reason?: FeeReason;
  /** The venue announces no changes, or they could not be read: later periods may be missing. */
  readonly isPresentOnly?: true;
}

/** The period that applies at a moment, epoch milliseconds; undefined for none. */
export function feePeriodAt({ periods }: FeeStatement, atMs: number): FeePeriod | undefined {
  return periods.findLast(({ fromMs }) => fromMs === undefined || fromMs <= atMs);
}

/** The periods that begin after a moment, epoch milliseconds. */
export function laterFeePeriods({ periods }: FeeStatement, atMs: number): (FeePeriod & { readonly fromMs: number })[] {
  return periods.flatMap(({ fromMs, rule }) => (fromMs !== undefined && fromMs > atMs ? [{ fromMs, rule }] : []));
}
