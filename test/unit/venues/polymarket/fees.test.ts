import { describe, expect, it } from 'vitest';
import { gammaFees } from '../../../../src/venues/polymarket/fees.ts';
import { type GammaMarket, gammaMarket } from '../../../../src/venues/polymarket/models.ts';

const market = (fields: object): GammaMarket =>
  gammaMarket.parse({ conditionId: '0x1', question: 'Q', closed: false, outcomes: '["Yes","No"]', ...fields });
const stated = (fields: object) => gammaFees(market(fields));

describe('the fee of a market of Polymarket', () => {
  it('is that of its schedule, and not the limit of its orders', () => {
    const feeSchedule = { exponent: 1, rate: 0.05, takerOnly: true, rebateRate: 0.25 };
    expect(stated({ feesEnabled: true, feeType: 'economics_fees', feeSchedule, takerBaseFee: 1000 })).toEqual({
      periods: [
        {
          rule: {
            model: 'price_curve',
            takerRate: '0.05',
            makerRate: '0',
            exponent: 1,
            digits: 5,
            rounding: 'half_up',
          },
        },
      ],
      isPresentOnly: true,
    });
  });

  it('is none when fees are disabled or the rate is 0', () => {
    const none = { periods: [{ rule: { model: 'none' } }], isPresentOnly: true };
    expect(stated({ feesEnabled: false, feeType: null })).toEqual(none);
    expect(stated({ feesEnabled: true, feeSchedule: { exponent: 0, rate: 0, takerOnly: true } })).toEqual(none);
  });

  it('is not known when fees are enabled without a readable schedule', () => {
    const unknown = { periods: [], reason: 'unknown_rule', isPresentOnly: true, raw: 'crypto_fees' };
    expect(stated({ feesEnabled: true, feeType: 'crypto_fees' })).toEqual(unknown);
    for (const feeSchedule of [
      { exponent: 1.5, rate: 0.05 },
      { exponent: 1, rate: -0.05 },
      { exponent: 1, rate: 'much' },
      { exponent: 9, rate: 0.05 },
      { rate: 0.05 },
    ])
      expect(stated({ feesEnabled: true, feeType: 'crypto_fees', feeSchedule })).toEqual(unknown);
  });

  it('is not stated when the answer says nothing about fees', () => {
    expect(stated({ takerBaseFee: 1000 })).toEqual({ periods: [], reason: 'not_stated', isPresentOnly: true });
  });
});
