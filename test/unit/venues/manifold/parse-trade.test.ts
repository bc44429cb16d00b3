import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { addDecimals, decimal } from '../../../../src/domain/values/decimal.ts';
import { parseBets } from '../../../../src/venues/manifold/parse-trade.ts';

const NOW = 1_790_000_000_000;

function bet(more: object = {}): object {
  return {
    id: 'b1',
    contractId: 'c1',
    createdTime: NOW - 10,
    amount: 10,
    shares: 16,
    outcome: 'YES',
    isRedemption: false,
    ...more,
  };
}

function one(more: object) {
  const batch = parseBets([bet(more)], NOW);
  expect(batch.rejected).toEqual([]);
  return batch.records[0];
}

function skipped(more: object): string[] {
  const batch = parseBets([bet(more)], NOW);
  expect(batch.records).toEqual([]);
  expect(batch.rejected).toEqual([]);
  return batch.skipped;
}

describe('a bet as a trade', () => {
  it('has as price the mana per share on its side', () => {
    expect(one({})).toEqual({
      tradeId: 'b1',
      outcomeId: 'c1:YES',
      tsMs: NOW - 10,
      price: '0.625',
      size: '16',
      side: 'buy',
    });
    expect(one({ outcome: 'NO' })).toMatchObject({ outcomeId: 'c1:NO', price: '0.625', side: 'buy' });
  });

  it('is a sale when its amount is negative', () => {
    expect(one({ amount: -10, shares: -16 })).toMatchObject({ price: '0.625', size: '16', side: 'sell' });
  });

  it.each([
    [33.999969, 46.5753, '0.73'],
    // Recorded sales of round numbers of shares.
    [-5.343119824256959, -25, '0.21372479297027836'],
    [-8.674336997415882, -10, '0.8674336997415882'],
    [-83.63415104084338, -100, '0.8363415104084338'],
    // More than 20 digits: rounded half to even.
    [1, 3, '0.33333333333333333333'],
    [2, 3, '0.66666666666666666667'],
    [0.000003, 2_097_152, '0.00000000000143051147'],
  ])('has the exact quotient of its mana by its shares as price: %s / %s', (amount, shares, price) => {
    expect(one({ amount, shares })?.price).toBe(price);
  });

  it('has an exact price whenever mana and shares are exact', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 999 }), fc.integer({ min: 1, max: 99_999_999 }), (thousandths, units) => {
        const amount = (thousandths * units) / 10_000_000;
        expect(one({ amount, shares: units / 10_000 })?.price).toBe(decimal(thousandths / 1_000));
      }),
    );
  });

  it('on NO of an answer is in terms of its YES: mirrored price, opposite side', () => {
    expect(one({ answerId: 'a1' })).toMatchObject({ outcomeId: 'c1:a1', price: '0.625', side: 'buy' });
    const no = { answerId: 'a1', outcome: 'NO' };
    expect(one(no)).toMatchObject({ outcomeId: 'c1:a1', price: '0.375', side: 'sell' });
    expect(one({ ...no, amount: -10, shares: -16 })).toMatchObject({ price: '0.375', side: 'buy' });
  });

  it('is skipped when it is a redemption, an ante, an empty order or on a numbered outcome', () => {
    expect(skipped({ isRedemption: true })).toEqual(['redemption']);
    expect(skipped({ isAnte: true })).toEqual(['ante']);
    expect(skipped({ amount: 0, shares: 0, limitProb: 0.4, fills: [], isCancelled: true })).toEqual(['nothing_taken']);
    expect(skipped({ outcome: '5' })).toEqual(['outcome']);
  });

  it('with a limit counts the fills that it took when it was placed, without later fills', () => {
    const taken = { matchedBetId: null, amount: 2, shares: 4, timestamp: NOW - 12 };
    const later = { matchedBetId: 'b2', amount: 8, shares: 12, timestamp: NOW - 9 };
    expect(one({ limitProb: 0.7, fills: [taken, later] })).toMatchObject({ price: '0.5', size: '4' });
    expect(skipped({ limitProb: 0.7, fills: [later] })).toEqual(['nothing_taken']);
    expect(one({ limitProb: 0.7, fills: [taken], amount: 2, shares: 4 })).toMatchObject({ price: '0.5', size: '4' });
    // A cancelled order keeps its fills.
    expect(one({ limitProb: 0.7, fills: [taken, later], isCancelled: true })).toMatchObject({ size: '4' });
  });

  it('with a limit does not change as it fills', () => {
    const fill = fc.record({ amount: fc.integer({ min: 1, max: 50 }), shares: fc.integer({ min: 51, max: 200 }) });
    fc.assert(
      fc.property(fc.array(fill, { minLength: 1, maxLength: 4 }), fc.array(fill, { maxLength: 4 }), (own, others) => {
        const sum = (fills: { amount: number; shares: number }[]) => ({
          amount: fills.reduce((total, each) => total + each.amount, 0),
          shares: fills.reduce((total, each) => total + each.shares, 0),
        });
        const taken = own.map((each) => ({ ...each, timestamp: NOW - 10 }));
        const later = others.map((each, index) => ({ ...each, timestamp: NOW - 9 + index }));
        const before = one({ limitProb: 0.5, ...sum(own), fills: taken });
        const after = one({ limitProb: 0.5, ...sum([...own, ...others]), fills: [...taken, ...later] });
        expect(after).toEqual(before);
      }),
    );
  });

  it('has the same price for NO of an answer and for its YES at mirrored prices', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 999 }), (thousandths) => {
        const yes = one({ answerId: 'a', amount: thousandths, shares: 1000 });
        const no = one({ answerId: 'a', outcome: 'NO', amount: thousandths, shares: 1000 });
        expect(addDecimals(yes?.price ?? decimal(9), no?.price ?? decimal(9))).toBe('1');
      }),
    );
  });

  it.each([
    ['more mana than shares', { amount: 20 }, 'price_out_of_range'],
    ['no shares', { shares: 0 }, 'size_not_positive'],
    ['a sale of bought shares', { amount: -10 }, 'invalid_field'],
    ['a time of another type', { createdTime: '5' }, 'invalid_field'],
    ['seconds for milliseconds', { createdTime: 1_790_000_000 }, 'timestamp_out_of_range'],
    ['a time to come', { createdTime: NOW + 300_001 }, 'timestamp_in_future'],
    ['a size beyond reason', { amount: 1e20, shares: 1e21 }, 'size_out_of_range'],
    ['no id', { id: undefined }, 'missing_field'],
    ['fills of another form', { fills: [{ amount: 'x' }] }, 'invalid_field'],
  ])('is rejected with %s', (_, more, reason) => {
    const batch = parseBets([bet(more)], NOW);
    expect(batch.records).toEqual([]);
    expect(batch.rejected.map((each) => each.reason)).toEqual([reason]);
  });
});
