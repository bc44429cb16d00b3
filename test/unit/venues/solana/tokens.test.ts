import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parseTokenPrices } from '../../../../src/venues/solana/parse-token-prices.ts';
import { parseTokenSymbols } from '../../../../src/venues/solana/parse-token-symbols.ts';
import { createSeenSlots } from '../../../../src/venues/solana/seen-slots.ts';

const SOL = 'So11111111111111111111111111111111111111112';
const USDC = 'EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v';
const JUP = 'JUPyiwrYJFskUPiHa7hkeR8VUtAeFoSYbKedZNsDvCN';

/** The example in the documentation of Price v3. */
const entry = {
  createdAt: '2024-06-05T08:55:25.527Z',
  liquidity: 621679197.67,
  usdPrice: 147.48,
  blockId: 348004023,
  decimals: 9,
  priceChange24h: 1.29,
};

describe('parseTokenPrices', () => {
  it('reads the requested mints and skips mints without a price', () => {
    const answer = { [SOL]: entry, [JUP]: null, Other: entry };
    expect(parseTokenPrices(answer, [SOL, USDC, JUP])).toEqual({
      quotes: [{ mint: SOL, price: '147.48', slot: 348004023 }],
      rejected: [],
    });
  });

  it.each([
    [1e-9, '0.000000001'],
    [0.000012345678901234, '0.000012345678901234'],
    [147.4789340738336, '147.4789340738336'],
    [1e21, null],
    ['0.9999', '0.9999'],
  ])('reads %s by its shortest text', (usdPrice, expected) => {
    const { quotes } = parseTokenPrices({ [SOL]: { ...entry, usdPrice } }, [SOL]);
    expect(quotes.map(({ price }) => price)).toEqual(expected === null ? [] : [expected]);
  });

  it.each([
    [{ usdPrice: 0 }, 'price_out_of_range'],
    [{ usdPrice: -1 }, 'price_out_of_range'],
    [{ usdPrice: 'NaN' }, 'invalid_field'],
    [{ usdPrice: [1] }, 'invalid_field'],
    [{ usdPrice: undefined }, 'missing_field'],
  ])('rejects %j and keeps the neighbours', (bent, reason) => {
    const { quotes, rejected } = parseTokenPrices({ [SOL]: { ...entry, ...bent }, [USDC]: entry }, [SOL, USDC]);
    expect(quotes.map(({ mint }) => mint)).toEqual([USDC]);
    expect(rejected).toMatchObject([{ kind: 'prices', recordId: SOL, reason }]);
  });

  it('rejects an entry that is not an object, and accepts names of Object as keys', () => {
    const mints = ['constructor', '__proto__', SOL];
    expect(parseTokenPrices({ [SOL]: 'x' }, mints)).toMatchObject({
      quotes: [],
      rejected: [{ reason: 'not_an_object' }],
    });
  });

  it('reads a price without a slot', () => {
    const { quotes } = parseTokenPrices({ [SOL]: { usdPrice: 1, blockId: 'x' } }, [SOL]);
    expect(quotes).toEqual([{ mint: SOL, price: '1' }]);
  });

  it('reads or rejects any entry', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        const { quotes, rejected } = parseTokenPrices({ [SOL]: value as unknown, [USDC]: entry }, [SOL, USDC]);
        expect(quotes.some(({ mint }) => mint === USDC)).toBe(true);
        expect(quotes.length + rejected.length).toBe(value === null ? 1 : 2);
      }),
    );
  });
});

describe('symbols', () => {
  const row = { id: SOL, name: 'Wrapped SOL', symbol: 'SOL', decimals: 9, isVerified: true };

  it('belong to the requested mints', () => {
    const rows = [row, { ...row, id: USDC, symbol: ' USDC ' }, { ...row, id: 'other' }];
    expect([...parseTokenSymbols(rows, [SOL, USDC, JUP])]).toEqual([
      [SOL, 'SOL'],
      [USDC, 'USDC'],
    ]);
  });

  it.each([
    ['nothing', ''],
    ['a number', 7],
    ['a NUL', 'A\u0000B'],
    ['a lone surrogate', 'A\ud800'],
    ['a mark that turns the writing direction', 'A\u202eB'],
    ['a line break', 'A\nB'],
    ['a novel', 'x'.repeat(33)],
  ])('that are %s are skipped', (_, symbol) => {
    expect(parseTokenSymbols([{ ...row, symbol }, null, 3], [SOL]).size).toBe(0);
  });
});

describe('slots', () => {
  it('below the last one of the mint are stale; equal ones are current', () => {
    const slots = createSeenSlots();
    expect(slots.isCurrent(SOL, 100, 0)).toBe(true);
    expect(slots.isCurrent(SOL, 99, 1_000)).toBe(false);
    expect(slots.isCurrent(SOL, 100, 1_000)).toBe(true);
    expect(slots.isCurrent(USDC, 50, 1_000)).toBe(true);
  });

  it('that were far too high do not silence a mint permanently', () => {
    const slots = createSeenSlots();
    slots.isCurrent(SOL, 9e15, 0);
    expect(slots.isCurrent(SOL, 100, 599_999)).toBe(false);
    expect(slots.isCurrent(SOL, 100, 600_000)).toBe(true);
  });
});
