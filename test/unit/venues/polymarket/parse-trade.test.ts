import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { identifyTrades, readFeed } from '../../../../src/venues/polymarket/parse-trade.ts';

const NOW = 1_767_900_000_000;
const raw = {
  proxy_wallet: '0x6031b6eed1c97e853c6e0f03ad3ce3529351f96d',
  side: 'BUY',
  token_id: '111',
  condition_id: '0xab',
  size: 16.9984,
  price: 0.8073684210526316,
  timestamp: 1_767_841_819,
  transaction_hash: '0xB0E3',
};

const parse = (rows: readonly unknown[]) => identifyTrades(readFeed(rows, NOW));
const idsOf = (rows: readonly unknown[]) => parse(rows).records.map((trade) => trade.tradeId);

describe('trade rows', () => {
  it('keep every digit of the venue', () => {
    expect(parse([raw]).records).toEqual([
      {
        tradeId: expect.stringMatching(/^[0-9a-f]{40}$/),
        outcomeId: '111',
        tsMs: 1_767_841_819_000,
        price: '0.8073684210526316',
        size: '16.9984',
        side: 'buy',
        ordinal: 0,
      },
    ]);
    expect(parse([{ ...raw, price: 1e-7 }]).records[0]?.price).toBe('0.0000001');
  });

  it('have one id in every notation of their numbers and hex digits', () => {
    const again = { ...raw, size: '16.99840', transaction_hash: '0xb0e3', side: 'buy', title: 'renamed since' };
    expect(idsOf([again])).toEqual(idsOf([raw]));
  });

  it.each(['transaction_hash', 'token_id', 'side', 'size', 'price', 'proxy_wallet'] as const)(
    'have another id when %s differs',
    (field) => {
      const changed = {
        ...raw,
        [field]: field === 'size' || field === 'price' ? 0.25 : field === 'side' ? 'SELL' : '0x1',
      };
      expect(idsOf([changed])).not.toEqual(idsOf([raw]));
    },
  );

  it('all survive when they are equal, and have the same ids in a second read in any order', () => {
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
    ['no wallet', { ...raw, proxy_wallet: undefined }, 'missing_field'],
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
    ['a token id that cannot be stored', { ...raw, token_id: 'a\u0000' }, 'unstorable_text'],
  ])('with %s are rejected individually', (_, row, reason) => {
    const batch = parse([raw, row, { ...raw, size: 3 }]);
    expect(batch.records).toHaveLength(2);
    expect(batch.rejected.map((each) => each.reason)).toEqual([reason]);
  });

  it('have no side when theirs is unknown, which is reported', () => {
    const batch = parse([{ ...raw, side: 'SWAP' }]);
    expect(batch.records[0]).not.toHaveProperty('side');
    expect(batch.unknowns).toEqual([{ field: 'side', value: 'SWAP' }]);
  });

  it('are sorted oldest first', () => {
    const rows = [3, 2, 1].map((second) => ({ ...raw, timestamp: raw.timestamp + second }));
    const times = parse(rows).records.map((trade) => trade.tsMs);
    expect(times).toEqual([...times].sort((a, b) => a - b));
  });

  it('have their order within a second of their market, the oldest first', () => {
    const rows = [
      { ...raw, transaction_hash: '0x4' },
      { ...raw, transaction_hash: '0x3', condition_id: '0xCD' },
      { ...raw, transaction_hash: '0x2', condition_id: '0xAB', token_id: '112' },
      { ...raw, transaction_hash: '0x1', timestamp: raw.timestamp - 1 },
    ];
    expect(parse(rows).records.map(({ outcomeId, ordinal }) => [outcomeId, ordinal])).toEqual([
      ['111', 0],
      ['112', 0],
      ['111', 0],
      ['111', 1],
    ]);
  });

  it('keep their id when the names of market and outcome are absent', () => {
    const fresh = { ...raw, event_slug: '', outcome_index: 999, title: '', slug: '', outcome: '' };
    expect(idsOf([fresh])).toEqual(idsOf([{ ...raw, event_slug: 'e', outcome_index: 0, slug: 's', outcome: 'Yes' }]));
  });

  it('have the same id as from version 1 of the API', () => {
    // The id of the row with `transactionHash`, `asset` and `proxyWallet` in a release before version 2.
    expect(idsOf([raw])).toEqual(['eaf5e9935f935b093a79e3772bd8d6a6bc8484a9']);
  });

  const combination = `0x03${'3c'.repeat(20)}${'0'.repeat(20)}`;
  it.each([
    ['the module of combinations', combination, 'a slug', ['combination']],
    ['an unknown module and no slug', `0x${'ab'.repeat(31)}`, '', ['combination']],
    ['an unknown module and a slug', `0x${'ab'.repeat(31)}`, 'a slug', []],
    ['the module of binary markets', `0x01${'ab'.repeat(30)}`, '', []],
    ['32 bytes', `0x03${'ab'.repeat(31)}`, '', []],
    ['a combination and the byte of an outcome', `${combination}01`, '', ['combination']],
    ['32 bytes that look like a combination and a slug', `${combination}01`, 'a slug', []],
  ])('with a condition id of %s are skipped only as combinations', (_, condition_id, slug, skipped) => {
    const batch = parse([{ ...raw, condition_id, slug }]);
    expect(batch.skipped).toEqual(skipped);
    expect(batch.records).toHaveLength(1 - skipped.length);
    expect(batch.rejected).toEqual([]);
  });
});
