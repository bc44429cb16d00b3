import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { identifyTrades, readFeed } from '../../../../src/venues/polymarket/parse-trade.ts';

const NOW = 1_767_900_000_000;
const raw = {
  proxyWallet: '0x6031b6eed1c97e853c6e0f03ad3ce3529351f96d',
  side: 'BUY',
  asset: '111',
  conditionId: '0xab',
  size: 16.9984,
  price: 0.8073684210526316,
  timestamp: 1_767_841_819,
  transactionHash: '0xB0E3',
};

const parse = (rows: readonly unknown[]) => identifyTrades(readFeed(rows, NOW));
const idsOf = (rows: readonly unknown[]) => parse(rows).records.map((trade) => trade.tradeId);

describe('trade rows', () => {
  it('are read with every digit the venue sent', () => {
    expect(parse([raw]).records).toEqual([
      {
        tradeId: expect.stringMatching(/^[0-9a-f]{40}$/),
        outcomeId: '111',
        tsMs: 1_767_841_819_000,
        price: '0.8073684210526316',
        size: '16.9984',
        side: 'buy',
      },
    ]);
    expect(parse([{ ...raw, price: 1e-7 }]).records[0]?.price).toBe('0.0000001');
  });

  it('have one id however their numbers and hex digits are written', () => {
    const again = { ...raw, size: '16.99840', transactionHash: '0xb0e3', side: 'buy', title: 'renamed since' };
    expect(idsOf([again])).toEqual(idsOf([raw]));
  });

  it.each(['transactionHash', 'asset', 'side', 'size', 'price', 'proxyWallet'] as const)(
    'have another id when %s differs',
    (field) => {
      const changed = {
        ...raw,
        [field]: field === 'size' || field === 'price' ? 0.25 : field === 'side' ? 'SELL' : '0x1',
      };
      expect(idsOf([changed])).not.toEqual(idsOf([raw]));
    },
  );

  it('that are equal all survive, and reading them again in any order adds nothing', () => {
    const row = fc.record({
      price: fc.constantFrom(0.1, 0.2),
      timestamp: fc.constantFrom(1_767_841_819, 1_767_841_820),
    });
    fc.assert(
      fc.property(
        fc
          .array(row, { maxLength: 12 })
          .chain((rows) => fc.tuple(fc.constant(rows), fc.shuffledSubarray(rows, { minLength: rows.length }))),
        ([rows, shuffled]) => {
          const first = idsOf(rows.map((each) => ({ ...raw, ...each })));
          const second = idsOf(shuffled.map((each) => ({ ...raw, ...each })));
          expect(new Set(first).size).toBe(rows.length);
          expect(new Set(second)).toEqual(new Set(first));
        },
      ),
    );
  });

  it.each<[string, unknown, string]>([
    ['no object', 7, 'not_an_object'],
    ['no price', { ...raw, price: undefined }, 'missing_field'],
    ['no wallet', { ...raw, proxyWallet: undefined }, 'missing_field'],
    ['no time', { ...raw, timestamp: undefined }, 'missing_field'],
    ['a price above 1', { ...raw, price: 1.01 }, 'price_out_of_range'],
    ['a price below 0', { ...raw, price: -0.01 }, 'price_out_of_range'],
    ['NaN for a price', { ...raw, price: 'NaN' }, 'invalid_field'],
    ['size zero', { ...raw, size: 0 }, 'size_not_positive'],
    ['a negative size', { ...raw, size: -4 }, 'size_not_positive'],
    ['an absurd size', { ...raw, size: 1e40 }, 'size_out_of_range'],
    ['a time in milliseconds', { ...raw, timestamp: 1_767_841_819_000 }, 'timestamp_in_future'],
    ['a time before the venue', { ...raw, timestamp: 12 }, 'timestamp_out_of_range'],
    ['a broken time', { ...raw, timestamp: 1_767_841_819.5 }, 'invalid_field'],
    ['a token id that cannot be stored', { ...raw, asset: 'a\u0000' }, 'unstorable_text'],
  ])('with %s are refused one by one', (_, row, reason) => {
    const batch = parse([raw, row, { ...raw, size: 3 }]);
    expect(batch.records).toHaveLength(2);
    expect(batch.rejected.map((each) => each.reason)).toEqual([reason]);
  });

  it('of an unknown side have none, and say so', () => {
    const batch = parse([{ ...raw, side: 'SWAP' }]);
    expect(batch.records[0]).not.toHaveProperty('side');
    expect(batch.unknowns).toEqual([{ field: 'side', value: 'SWAP' }]);
  });

  it('come out oldest first', () => {
    const rows = [3, 2, 1].map((second) => ({ ...raw, timestamp: raw.timestamp + second }));
    const times = parse(rows).records.map((trade) => trade.tsMs);
    expect(times).toEqual([...times].sort((a, b) => a - b));
  });
});
