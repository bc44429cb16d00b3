import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { isConditionMet } from '../../../src/domain/alert.ts';
import { priceOfBook } from '../../../src/domain/book-price.ts';
import { decimal } from '../../../src/domain/decimal.ts';
import type { BookRecord } from '../../../src/domain/market.ts';

describe('isConditionMet', () => {
  it.each([
    ['above', '0.5', '0.5', true],
    ['above', '0.5', '0.5000000000000000000001', true],
    ['above', '0.5', '0.4999999999999999999999', false],
    ['below', '0.5', '0.5', true],
    ['below', '0.5', '0.4999999999999999999999', true],
    ['below', '0.5', '0.5000000000000000000001', false],
    ['above', '0.3', '0.30000000000000004', true],
    ['below', '0.3', '0.30000000000000004', false],
    ['above', '10', '9', false],
    ['below', '10', '9', true],
  ] as const)('%s %s at %s is %s', (condition, target, price, expected) => {
    expect(isConditionMet(condition, decimal(target), decimal(price))).toBe(expected);
  });

  it('any price meets one of the two, and only the target itself meets both', () => {
    const price = fc.integer({ min: 0, max: 40 }).map((units) => decimal(units / 40));
    fc.assert(
      fc.property(price, price, (target, seen) => {
        const above = isConditionMet('above', target, seen);
        const below = isConditionMet('below', target, seen);
        expect(above || below).toBe(true);
        expect(above && below).toBe(target === seen);
      }),
    );
  });
});

describe('priceOfBook', () => {
  const book = (bids: string[], asks: string[]): BookRecord => ({
    outcomeId: 'o',
    asOfMs: 1_000,
    bids: bids.map((price) => ({ price: decimal(price), size: decimal('1') })),
    asks: asks.map((price) => ({ price: decimal(price), size: decimal('1') })),
  });

  it('is the exact middle of the best bid and ask', () => {
    expect(priceOfBook(book(['0.41', '0.4'], ['0.44', '0.5']))).toEqual({
      outcomeId: 'o',
      asOfMs: 1_000,
      price: '0.425',
      bid: '0.41',
      ask: '0.44',
    });
  });

  it.each([
    [[], ['0.5']],
    [['0.5'], []],
    [[], []],
    [['0.1'], ['0.9']],
    [['0.4'], ['0.5001']],
  ])('is none for %j / %j', (bids, asks) => expect(priceOfBook(book(bids, asks))).toBeNull());

  it('a spread of exactly 0.1 still counts', () => {
    expect(priceOfBook(book(['0.4'], ['0.5']))?.price).toBe('0.45');
  });
});
