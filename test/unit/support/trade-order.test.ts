import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { decimal } from '../../../src/domain/values/decimal.ts';
import { compareTrades, type OrderedTrade, signedPrice } from '../../support/laws/trade-order.ts';

/** Few values of each field: most samples tie in some of them. */
const trade: fc.Arbitrary<OrderedTrade> = fc.record(
  {
    tsMs: fc.constantFrom(1_000, 1_000.001, 2_000),
    tradeId: fc.constantFrom('a', 'b', 'B', 'é', '\u{1f600}', '\uffee'),
    price: fc.constantFrom('0', '0.09', '0.1', '0.10', '0.99').map(decimal),
    side: fc.constantFrom('buy' as const, 'sell' as const),
    ordinal: fc.constantFrom(-1, 0, 1),
  },
  { requiredKeys: ['tsMs', 'tradeId', 'price'] },
);
const at = (fields: Partial<OrderedTrade>): OrderedTrade => ({
  tsMs: 0,
  tradeId: 'x',
  price: decimal('0.5'),
  ...fields,
});

describe('compareTrades', () => {
  it('is a total order: antisymmetric, transitive, and 0 only for trades that agree in all keys', () => {
    fc.assert(
      fc.property(trade, trade, trade, (a, b, c) => {
        expect(compareTrades(a, b) + compareTrades(b, a)).toBe(0);
        if (compareTrades(a, b) <= 0 && compareTrades(b, c) <= 0) expect(compareTrades(a, c)).toBeLessThanOrEqual(0);
        const keys = (of: OrderedTrade) => JSON.stringify([of.tsMs, of.ordinal ?? 0, signedPrice(of), of.tradeId]);
        expect(compareTrades(a, b) === 0).toBe(keys(a) === keys(b));
      }),
    );
  });

  it('gives one sequence for every arrival order when ids differ', () => {
    fc.assert(
      fc.property(
        fc.uniqueArray(trade, { maxLength: 8, selector: ({ tradeId }) => tradeId }),
        fc.infiniteStream(fc.nat()),
        (tape, dice) => {
          const shuffled = tape
            .map((one) => ({ one, key: dice.next().value ?? 0 }))
            .sort((a, b) => a.key - b.key)
            .map(({ one }) => one);
          expect(shuffled.sort(compareTrades)).toEqual([...tape].sort(compareTrades));
        },
      ),
    );
  });

  it('puts a sweep of buys in rising and a sweep of sells in falling order of price', () => {
    const sweep = (side: 'buy' | 'sell') =>
      ['0.4', '0.02', '0.31'].map((price, n) => at({ side, price: decimal(price), tradeId: `t${n}` }));
    expect(
      sweep('buy')
        .sort(compareTrades)
        .map(({ price }) => price),
    ).toEqual(['0.02', '0.31', '0.4']);
    expect(
      sweep('sell')
        .sort(compareTrades)
        .map(({ price }) => price),
    ).toEqual(['0.4', '0.31', '0.02']);
  });

  it('puts sells before trades without a side, and these before buys, when all are of one instant', () => {
    const sides = [at({ side: 'buy', price: decimal('0.01') }), at({}), at({ side: 'sell', price: decimal('0.01') })];
    expect(sides.sort(compareTrades).map(({ side }) => side)).toEqual(['sell', undefined, 'buy']);
  });

  it('puts the ordinal of the venue before the price, and the time before the ordinal', () => {
    const cheap = at({ side: 'buy', price: decimal('0.1'), ordinal: 2 });
    const expensive = at({ side: 'buy', price: decimal('0.9'), ordinal: 1 });
    expect(compareTrades(expensive, cheap)).toBe(-1);
    expect(compareTrades(at({ ordinal: 7 }), at({ tsMs: 0.001 }))).toBe(-1);
    expect(compareTrades(at({}), at({ ordinal: 0 }))).toBe(0);
  });
});
