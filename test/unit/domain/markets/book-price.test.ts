import { describe, expect, it } from 'vitest';
import type { BookRecord } from '../../../../src/domain/markets/market.ts';
import { priceOfBook } from '../../../../src/domain/markets/quoted-price.ts';
import { decimal } from '../../../../src/domain/values/decimal.ts';

describe('priceOfBook', () => {
  const book = (bids: string[], asks: string[]): BookRecord => ({
    outcomeId: 'o',
    asOfMs: 1_000,
    bids: bids.map((price) => ({ price: decimal(price), size: decimal('1') })),
    asks: asks.map((price) => ({ price: decimal(price), size: decimal('1') })),
  });

  it('is the exact midpoint of the best bid and ask', () => {
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
  ])('is undefined for %j / %j', (bids, asks) => expect(priceOfBook(book(bids, asks))).toBeUndefined());

  it('is the last price with the existing quotes when the book is not tight', () => {
    expect(priceOfBook(book(['0.15'], ['0.59']), decimal('0.2'))).toMatchObject({
      price: '0.2',
      bid: '0.15',
      ask: '0.59',
    });
    expect(priceOfBook(book([], ['0.59']), decimal('0.2'))).toEqual({
      outcomeId: 'o',
      asOfMs: 1_000,
      price: '0.2',
      ask: '0.59',
    });
  });

  it('is the midpoint at a spread of exactly 0.1', () => {
    expect(priceOfBook(book(['0.4'], ['0.5']))?.price).toBe('0.45');
  });
});
