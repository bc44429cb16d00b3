import { describe, expect, it } from 'vitest';
import { priceOfBook } from '../../../../src/domain/markets/quoted-price.ts';
import { parseBooks } from '../../../../src/venues/limitless/parse-book.ts';
import { parsePrices } from '../../../../src/venues/limitless/parse-price.ts';

const AS_OF_MS = Date.UTC(2026, 10, 1);
const clob = (bid: unknown, ask: unknown, more: object = {}) => ({
  slug: 'a',
  tradeType: 'clob',
  tokens: { yes: '10', no: '11' },
  prices: [0.5, 0.5],
  tradePrices: { buy: { market: [ask, 0.1] }, sell: { market: [bid, 0.1] } },
  ...more,
});
const pool = (prices: unknown) => ({ slug: 'p', tradeType: 'amm', tokens: null, prices });

describe('parsePrices', () => {
  it('takes the middle of tight quotes, and mirrors it for NO', () => {
    expect(parsePrices([clob(0.54, 0.57)], AS_OF_MS).records).toEqual([
      { outcomeId: '10', asOfMs: AS_OF_MS, price: '0.555', bid: '0.54', ask: '0.57' },
      { outcomeId: '11', asOfMs: AS_OF_MS, price: '0.445', bid: '0.43', ask: '0.46' },
    ]);
  });

  it.each([
    ['the quotes of a stub', clob(0.001, 0.999)],
    ['the wider quotes of a stub', clob(0.002, 0.998)],
    ['quotes far apart', clob(0.54, 0.97)],
    ['one side', clob(0, 0.5)],
    ['no quotes', clob(undefined, undefined, { tradePrices: null })],
    ['a pool without prices', pool(null)],
  ])('skips a market with %s, whatever its middle says', (_what, row) => {
    const { records, skipped } = parsePrices([row], AS_OF_MS);
    expect(records).toEqual([]);
    expect(skipped).toEqual(['no_price']);
  });

  it.each([
    ['fractions', [0.42, 0.58], '0.42'],
    ['percents', [42.5, 57.5], '0.425'],
    ['percents as texts', ['0.4', '99.6'], '0.004'],
    ['fractions that round', [0.333, 0.666], '0.333'],
  ])('reads the prices of a pool as %s', (_what, prices, expected) => {
    const [yes, no] = parsePrices([pool(prices)], AS_OF_MS).records;
    expect(yes).toMatchObject({ outcomeId: 'limitless:p:YES', price: expected });
    expect(Number(yes?.price) + Number(no?.price)).toBeCloseTo(1, 12);
  });

  it.each([[[0.42, 57.5]], [[4, 6]], [[0.1, 0.1]], [[500, 500]]])(
    'skips the prices %o, whose unit is unknown',
    (prices) => {
      expect(parsePrices([pool(prices)], AS_OF_MS).skipped).toEqual(['price_unit']);
    },
  );

  it.each([
    ['crossed quotes', clob(0.6, 0.5), 'crossed_quote'],
    ['a quote in percent', clob(54, 57), 'price_out_of_range'],
    ['a quote that is a word', clob('much', 0.5), 'invalid_field'],
    ['a negative price', pool([-1, 2]), 'price_out_of_range'],
  ])('rejects %s', (_what, row, reason) => {
    expect(parsePrices([row], AS_OF_MS).rejected.map((each) => each.reason)).toEqual([reason]);
  });
});

describe('parseBooks', () => {
  const book = (fields: object) => ({ outcomeIds: ['10', '11'], tokenId: '10', bids: [], asks: [], ...fields });

  it('scales sizes, sorts and merges levels, and mirrors them for NO', () => {
    const bids = [
      { price: 0.4, size: 1_500_000 },
      { price: '0.41', size: '2000000' },
      { price: 0.4, size: 500_000 },
      { price: 0.3, size: 0 },
    ];
    const asks = [{ price: 0.45, size: 1_441_000 }];
    expect(parseBooks([book({ bids, asks })], AS_OF_MS).records).toEqual([
      {
        outcomeId: '10',
        asOfMs: AS_OF_MS,
        bids: [
          { price: '0.41', size: '2' },
          { price: '0.4', size: '2' },
        ],
        asks: [{ price: '0.45', size: '1.441' }],
      },
      {
        outcomeId: '11',
        asOfMs: AS_OF_MS,
        bids: [{ price: '0.55', size: '1.441' }],
        asks: [
          { price: '0.59', size: '2' },
          { price: '0.6', size: '2' },
        ],
      },
    ]);
  });

  it('keeps a stub, which has no price', () => {
    const stub = { bids: [{ price: 0.001, size: 1 }], asks: [{ price: 0.999, size: 1 }], midpoint: 0.5 };
    const [yes] = parseBooks([book(stub)], AS_OF_MS).records;
    expect(yes && priceOfBook(yes)).toBeUndefined();
  });

  it('rejects the book of another token, and a crossed one', () => {
    expect(parseBooks([book({ tokenId: '12' })], AS_OF_MS).rejected[0]?.reason).toBe('not_requested');
    const crossed = { bids: [{ price: 0.6, size: 1 }], asks: [{ price: 0.5, size: 1 }] };
    expect(parseBooks([book(crossed)], AS_OF_MS).rejected[0]?.reason).toBe('crossed_book');
  });
});
