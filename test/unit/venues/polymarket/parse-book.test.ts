import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { decimal } from '../../../../src/domain/values/decimal.ts';
import { parseBooks, parseLastTrades, priceWithLast } from '../../../../src/venues/polymarket/parse-book.ts';

const NOW = 1_786_275_600_000;
const raw = {
  market: '0xab',
  asset_id: '111',
  timestamp: '1786275591068',
  hash: 'x',
  bids: [
    { price: '0.01', size: '100' },
    { price: '0.06', size: '40956' },
  ],
  asks: [
    { price: '0.9', size: '5' },
    { price: '0.07', size: '12.50' },
  ],
  last_trade_price: '0.006',
};
type Level = { price: unknown; size: unknown };

function one(row: unknown) {
  const batch = parseBooks('books', [row], NOW);
  const [book] = batch.records;
  if (!book) throw new Error(`rejected: ${batch.rejected[0]?.reason} ${batch.rejected[0]?.detail}`);
  return book;
}

function rejectionReason(row: unknown) {
  const { records, rejected } = parseBooks('books', [row], NOW, new Set(['111']));
  expect(records).toEqual([]);
  return rejected[0]?.reason;
}

function quotes(bid: string | undefined, ask: string | undefined) {
  const side = (price: string | undefined): Level[] => (price === undefined ? [] : [{ price, size: '1' }]);
  return one({ ...raw, bids: side(bid), asks: side(ask) });
}

describe('parseBooks', () => {
  it('sorts levels from the best price on in any order of the payload', () => {
    expect(one(raw)).toEqual({
      outcomeId: '111',
      asOfMs: 1_786_275_591_068,
      seenAtMs: NOW,
      bids: [
        { price: '0.06', size: '40956' },
        { price: '0.01', size: '100' },
      ],
      asks: [
        { price: '0.07', size: '12.5' },
        { price: '0.9', size: '5' },
      ],
    });
  });

  it('returns the same book for any order, split and padding of its levels', () => {
    const level = fc.record({ ticks: fc.integer({ min: 1, max: 400 }), lots: fc.integer({ min: 1, max: 9 }) });
    fc.assert(
      fc.property(fc.array(level, { maxLength: 30 }), fc.infiniteStream(fc.nat()), (levels, shuffle) => {
        const text = ({ ticks, lots }: { ticks: number; lots: number }) => ({
          price: String(ticks / 1000),
          size: String(lots),
        });
        const whole = new Map<number, number>();
        for (const { ticks, lots } of levels) whole.set(ticks, (whole.get(ticks) ?? 0) + lots);
        const merged = [...whole].map(([ticks, lots]) => text({ ticks, lots }));
        const scattered = [...levels.map(text), { price: '0.999', size: '0.0' }]
          .map((each) => ({ each, key: shuffle.next().value }))
          .sort((a, b) => a.key - b.key)
          .map(({ each }) => ({ ...each, price: `${each.price}000` }));
        expect(one({ ...raw, asks: [], bids: scattered })).toEqual(one({ ...raw, asks: [], bids: merged }));
      }),
    );
  });

  it('accepts empty and one-sided books, and uses the clock when the venue gives no time', () => {
    expect(one({ ...raw, bids: [], asks: [], timestamp: undefined })).toEqual({
      outcomeId: '111',
      bids: [],
      asks: [],
      asOfMs: NOW,
    });
  });

  it.each<[string, object, string]>([
    ['a crossed book', { ...raw, bids: [{ price: '0.08', size: '1' }] }, 'crossed_book'],
    ['a price above 1', { ...raw, asks: [{ price: '1.000000000000000000000001', size: '1' }] }, 'price_out_of_range'],
    ['a negative price', { ...raw, bids: [{ price: '-0.01', size: '1' }] }, 'price_out_of_range'],
    ['a negative size', { ...raw, bids: [{ price: '0.01', size: '-1' }] }, 'size_out_of_range'],
    ['an absurd size', { ...raw, bids: [{ price: '0.01', size: '1e30' }] }, 'size_out_of_range'],
    ['NaN', { ...raw, bids: [{ price: 'NaN', size: '1' }] }, 'invalid_field'],
    ['a level without a size', { ...raw, bids: [{ price: '0.01' }] }, 'missing_field'],
    ['no bids at all', { ...raw, bids: undefined }, 'missing_field'],
    ['a time in the future', { ...raw, timestamp: String(NOW + 301_000) }, 'timestamp_in_future'],
    ['a time in seconds', { ...raw, timestamp: '1786275591' }, 'timestamp_out_of_range'],
    ['a time that is none', { ...raw, timestamp: 'now' }, 'invalid_field'],
    ['a token that was not requested', { ...raw, asset_id: '999' }, 'not_requested'],
  ])('rejects %s', (_, row, reason) => {
    expect(rejectionReason(row)).toBe(reason);
  });

  it('rejects the second book of one token', () => {
    const { records, rejected } = parseBooks('prices', [raw, raw], NOW);
    expect(records).toHaveLength(1);
    expect(rejected).toMatchObject([{ kind: 'prices', reason: 'duplicate_record', recordId: '111' }]);
  });
});

describe('priceWithLast', () => {
  it.each<[string, string | undefined, string | undefined, string | undefined, string | undefined]>([
    ['the middle of a tight book', '0.06', '0.07', '0.99', '0.065'],
    ['the middle at a spread of exactly 0.10', '0.3', '0.4', undefined, '0.35'],
    ['the last trade of a wider book', '0.3', '0.401', '0.33', '0.33'],
    ['nothing when a wide book never traded', '0.01', '0.99', undefined, undefined],
    ['the last trade of a book without bids', undefined, '0.4', '0.2', '0.2'],
    ['the last trade of an empty book', undefined, undefined, '0.2', '0.2'],
    ['nothing when the last trade is plainly that of the other outcome', '0.7', '0.995', '0.006', undefined],
    ['the last trade outside the quotes when its mirror image is outside too', '0.3', '0.45', '0.5', '0.5'],
  ])('is %s', (_, bid, ask, last, price) => {
    const record = priceWithLast(quotes(bid, ask), last === undefined ? undefined : decimal(last));
    expect(record?.price).toBe(price);
    if (record) expect(record).toMatchObject({ outcomeId: '111', ...(bid && { bid }), ...(ask && { ask }) });
  });
});

describe('parseLastTrades', () => {
  it('returns requested tokens that traded', () => {
    const rows = [
      { token_id: '1', price: '0.42', side: 'BUY' },
      { token_id: '2', price: '0.5', side: '' },
      { token_id: '3', price: '7', side: 'SELL' },
      { token_id: '4', side: 'SELL' },
      { token_id: '9', price: '0.1', side: 'BUY' },
    ];
    const { prices, rejected } = parseLastTrades(rows, new Set(['1', '2', '3', '4']));
    expect([...prices]).toEqual([['1', '0.42']]);
    expect(rejected.map((each) => each.reason)).toEqual(['price_out_of_range', 'missing_field']);
  });
});
