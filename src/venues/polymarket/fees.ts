import type { FeeRule, FeeStatement } from '../../domain/markets/fee.ts';
import { parseDecimal, ZERO } from '../../domain/values/decimal.ts';
import type { GammaMarket } from './models.ts';

/** Fees are rounded to 5 digits; the smallest is 0.00001. A recorded fee of 0.2850432 was charged as 0.28504, so it is not rounded up. */
const DIGITS = 5;
const MAX_EXPONENT = 4;

/**
 * What Gamma states about the fee of a market. `feeSchedule` has the rate; `makerBaseFee` and `takerBaseFee` are limits of an order and no
 * rates. The venue announces no changes.
 */
export function gammaFees({ feesEnabled, feeType, feeSchedule }: GammaMarket): FeeStatement {
  if (feesEnabled === false) return { periods: [{ rule: { model: 'none' } }], isPresentOnly: true };
  if (feesEnabled !== true) return { periods: [], reason: 'not_stated', isPresentOnly: true };
  const rule = feeSchedule ? ruleOf(feeSchedule) : null;
  if (rule !== null) return { periods: [{ rule }], isPresentOnly: true };
  return {
    periods: [],
    reason: 'unknown_rule',
    isPresentOnly: true,
    ...(feeType && { raw: feeType.slice(0, 200) }),
  };
}

function ruleOf({ rate, exponent, takerOnly }: NonNullable<GammaMarket['feeSchedule']>): FeeRule | null {
  const takerRate = parseDecimal(rate);
  const power = Number(exponent);
  if (takerRate === null || takerRate.startsWith('-') || !Number.isInteger(power)) return null;
  if (takerRate === ZERO) return { model: 'none' };
  if (power < 1 || power > MAX_EXPONENT) return null;
  return {
    model: 'price_curve',
    takerRate,
    ...(takerOnly === true && { makerRate: ZERO }),
    exponent: power,
    digits: DIGITS,
    rounding: 'half_up',
  };
}
