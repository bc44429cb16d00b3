import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { decimal, ONE, subtractDecimals } from '../../../../src/domain/values/decimal.ts';
import { parseBooks } from '../../../../src/venues/kalshi/parse-book.ts';

const NOW = Date.UTC(2026, 7, 9);

function books(book: object, requested?: ReadonlySet<string>) {
  const { records, rejected } = parseBooks([{ ticker: 'KXA', ...book }], NOW, requested);
  return { yes: records[0], no: records[1], count: records.length, reason: rejected[0]?.reason };
}

describe('Kalshi books', () => {
  it('convert bids of NO to asks of YES and the other way round, exactly', () => {
    const { yes, no } = books({
      orderbook_fp: {
        yes_dollars: [
          ['0.0100', '1058328.00'],
          ['0.5800', '3.14'],
        ],
        no_dollars: [
          ['0.3590', '0.01'],
          ['0.4100', '641.00'],
        ],
      },
    });
    expect(yes).toEqual({
      outcomeId: 'KXA:yes',
      asOfMs: NOW,
      bids: [
        { price: '0.58', size: '3.14' },
        { price: '0.01', size: '1058328' },
      ],
      asks: [
        { price: '0.59', size: '641' },
        { price: '0.641', size: '0.01' },
      ],
    });
    expect(no).toEqual({
      outcomeId: 'KXA:no',
      asOfMs: NOW,
      bids: [
        { price: '0.41', size: '641' },
        { price: '0.359', size: '0.01' },
      ],
      asks: [
        { price: '0.42', size: '3.14' },
        { price: '0.99', size: '1058328' },
      ],
    });
  });

  it('may be empty on either side: an empty list, null, or absent', () => {
    const bids = [['0.4000', '5.00']];
    expect(books({ orderbook_fp: { yes_dollars: bids, no_dollars: [] } }).yes?.asks).toEqual([]);
    expect(books({ orderbook_fp: { yes_dollars: null, no_dollars: bids } }).yes?.bids).toEqual([]);
    expect(books({ orderbook_fp: { no_dollars: bids } }).no?.bids).toEqual([{ price: '0.4', size: '5' }]);
    const nulls = { orderbook: { yes: null, no: null, yes_dollars: null, no_dollars: null } };
    expect(books(nulls)).toMatchObject({ count: 2, yes: { bids: [], asks: [] }, no: { bids: [], asks: [] } });
  });

  it('are empty when the answer has no side', () => {
    expect(books({ orderbook_fp: {} })).toMatchObject({
      count: 2,
      yes: { bids: [], asks: [] },
      no: { bids: [], asks: [] },
    });
    expect(books({ orderbook_fp: { yes_levels: [['0.4', '5']] } }).reason).toBe('missing_field');
  });

  it('are skipped when they are empty and have the empty market id of an unknown market', () => {
    const empty = { ticker: 'KXA', orderbook_fp: { yes_dollars: [], no_dollars: null } };
    const batch = parseBooks([{ ...empty, market_id: '' }], NOW);
    expect(batch).toMatchObject({ records: [], rejected: [], skipped: ['unknown_market'] });
    expect(books({ ...empty, market_id: 'a1' }).count).toBe(2);
    expect(books({ orderbook_fp: { yes_dollars: [['0.4', '5']] }, market_id: '' }).count).toBe(2);
  });

  it('are read from the older key, dollars before cents', () => {
    const { yes } = books({ orderbook: { yes: [[8, 10]], no: [[90, 20]], no_dollars: [['0.9050', '20']] } });
    expect(yes).toMatchObject({ bids: [{ price: '0.08', size: '10' }], asks: [{ price: '0.095', size: '20' }] });
  });

  it('are rejected when they have no known key', () => {
    expect(books({}).reason).toBe('missing_field');
    expect(books({ orderbook_v3: { yes_dollars: [] } }).reason).toBe('missing_field');
    expect(books({ orderbook_fp: { yes_prices: [], no_prices: [] } }).reason).toBe('missing_field');
  });

  it('are rejected when their ticker was not requested', () => {
    const empty = { orderbook_fp: { yes_dollars: [], no_dollars: [] } };
    // The venue's answer to a comma list on the route with repeated parameters.
    expect(books({ ...empty, ticker: 'KXA,KXB' }, new Set(['KXA', 'KXB'])).reason).toBe('invalid_field');
    expect(books(empty, new Set(['KXB'])).reason).toBe('not_requested');
  });

  it('are rejected when crossed, with prices outside 0..1, or with invalid sizes', () => {
    const of = (yes: unknown, no: unknown) => books({ orderbook_fp: { yes_dollars: yes, no_dollars: no } }).reason;
    expect(of([['0.6', '1']], [['0.5', '1']])).toBe('crossed_book');
    expect(of([['6', '1']], [])).toBe('price_out_of_range');
    expect(of([['0.6', '-1']], [])).toBe('size_out_of_range');
    expect(of([['0.6', 'many']], [])).toBe('invalid_field');
    expect(of([['0.6']], [])).toBe('invalid_field');
    expect(of({ '0.6': '1' }, [])).toBe('invalid_field');
  });

  it('mirror each other in any order of levels, with equal prices merged and empty levels dropped', () => {
    const side = fc.array(fc.tuple(fc.integer({ min: 1, max: 4_999 }), fc.integer({ min: 0, max: 10_000 })), {
      maxLength: 30,
    });
    const wire = (levels: readonly (readonly [number, number])[]) =>
      levels.map(([price, size]) => [(price / 10_000).toFixed(4), (size / 100).toFixed(2)]);
    fc.assert(
      fc.property(side, side, (yes, no) => {
        const book = books({ orderbook_fp: { yes_dollars: wire(yes), no_dollars: wire(no) } });
        const mirrored = book.no?.bids.map(({ price, size }) => ({ price: subtractDecimals(ONE, price), size }));
        expect(book.yes?.asks).toEqual(mirrored);
        const sums = new Map<string, number>();
        for (const [price, size] of yes) {
          if (size > 0) sums.set(decimal(price / 10_000), (sums.get(decimal(price / 10_000)) ?? 0) + size);
        }
        const expected = [...sums].sort(([a], [b]) => Number(b) - Number(a));
        expect(book.yes?.bids).toEqual(expected.map(([price, size]) => ({ price, size: decimal(size / 100) })));
      }),
    );
  });
});
