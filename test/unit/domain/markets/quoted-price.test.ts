import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { isTight, quotedPrice } from '../../../../src/domain/markets/quoted-price.ts';
import {
  compareDecimals,
  type Decimal,
  decimal,
  ONE,
  subtractDecimals,
} from '../../../../src/domain/values/decimal.ts';

const price = fc.integer({ min: 0, max: 10_000 }).map((ticks) => decimal(ticks / 10_000));
const maybePrice = fc.option(price, { nil: undefined });
const quotes = fc.tuple(price, price, fc.boolean(), fc.boolean()).map(([a, b, hasBid, hasAsk]) => {
  const [low, high] = compareDecimals(a, b) <= 0 ? [a, b] : [b, a];
  return { bid: hasBid ? low : undefined, ask: hasAsk ? high : undefined };
});
const mirror = (value: Decimal | undefined) => (value === undefined ? undefined : subtractDecimals(ONE, value));

describe('quotedPrice', () => {
  type Text = string | undefined;
  it.each<[string, Text, Text, Text, Text]>([
    ['the midpoint of tight quotes, for any last price', '0.41', '0.44', '0.9', '0.425'],
    ['the midpoint at a spread of exactly 0.10', '0.4', '0.5', '0.1', '0.45'],
    ['the last price beyond a spread of 0.10', '0.4', '0.5001', '0.48', '0.48'],
    ['the last price of wide quotes (0.15 / 0.59, last 0.20)', '0.15', '0.59', '0.2', '0.2'],
    ['the last price outside of wide quotes', '0.15', '0.59', '0.7', '0.7'],
    ['the last price without a bid', undefined, '0.01', '0.02', '0.02'],
    ['the last price without quotes', undefined, undefined, '0.02', '0.02'],
    ['undefined for wide quotes without a last price', '0.15', '0.59', undefined, undefined],
    ['undefined without quotes and a last price', undefined, undefined, undefined, undefined],
  ])('gives %s', (_, bid, ask, last, expected) => {
    const of = (text: Text) => (text === undefined ? undefined : decimal(text));
    expect(quotedPrice({ bid: of(bid), ask: of(ask) }, of(last))).toBe(expected);
  });

  it('gives one minus the price for mirrored quotes and a mirrored last price', () => {
    fc.assert(
      fc.property(quotes, maybePrice, ({ bid, ask }, last) => {
        const mirrored = quotedPrice({ bid: mirror(ask), ask: mirror(bid) }, mirror(last));
        expect(mirrored).toBe(mirror(quotedPrice({ bid, ask }, last)));
      }),
    );
  });

  it('gives a price inside tight quotes, or else exactly the last price', () => {
    fc.assert(
      fc.property(quotes, maybePrice, ({ bid, ask }, last) => {
        const result = quotedPrice({ bid, ask }, last);
        const isMiddle = bid !== undefined && ask !== undefined && Number(ask) - Number(bid) <= 0.1 + 1e-9;
        expect(isTight({ bid, ask })).toBe(isMiddle);
        if (!isMiddle) expect(result).toBe(last);
        else {
          expect(compareDecimals(result ?? ONE, bid)).toBeGreaterThanOrEqual(0);
          expect(compareDecimals(result ?? ONE, ask)).toBeLessThanOrEqual(0);
        }
      }),
    );
  });
});
