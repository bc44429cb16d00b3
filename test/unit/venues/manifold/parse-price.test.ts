import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { addDecimals, decimal } from '../../../../src/domain/values/decimal.ts';
import { countProbs, parseProbs } from '../../../../src/venues/manifold/parse-price.ts';

const NOW = 1_790_000_000_000;

describe('parseProbs', () => {
  it('prices answers by their ids', () => {
    const probs = { c2: { answerProbs: { a1: 0.67, a2: 0.33 } }, c3: { prob: 0.5 } };
    const { records } = parseProbs(probs, NOW);
    expect(records.map((record) => `${record.outcomeId} ${record.price}`)).toEqual([
      'c2:a1 0.67',
      'c2:a2 0.33',
      'c3:YES 0.5',
      'c3:NO 0.5',
    ]);
  });

  it('returns prices of both sides that add up to 1 for any probability', () => {
    fc.assert(
      fc.property(fc.double({ min: 0, max: 1, noNaN: true }), (prob) => {
        const [yes, no] = parseProbs({ c: { prob } }, NOW).records;
        expect(addDecimals(yes?.price ?? decimal(9), no?.price ?? decimal(9))).toBe('1');
      }),
    );
  });

  it.each([
    [1.000000000000004, 'price_out_of_range'],
    [-0.1, 'price_out_of_range'],
    ['0.5', 'invalid_field'],
    [null, 'missing_field'],
    [1e300, 'price_out_of_range'],
  ])('rejects %s and keeps its neighbours', (prob, reason) => {
    const probs = { bad: { prob }, good: { prob: 0.4 }, multi: { answerProbs: { a1: prob, a2: 0.1 } } };
    const { records, rejected } = parseProbs(probs, NOW);
    expect(records.map((record) => record.outcomeId)).toEqual(['good:YES', 'good:NO', 'multi:a2']);
    expect(rejected.map((each) => `${each.recordId} ${each.reason}`)).toEqual([`bad ${reason}`, `multi ${reason}`]);
  });

  it('rejects ids of another form', () => {
    const probs = { 'a:b': { prob: 0.5 }, c: { answerProbs: { 'x y': 0.5, a: 0.5 } } };
    const { records, rejected } = parseProbs(probs, NOW);
    expect(records.map(({ outcomeId }) => outcomeId)).toEqual(['c:a']);
    expect(rejected.map(({ recordId, reason }) => [recordId, reason])).toEqual([
      ['a:b', 'invalid_field'],
      ['c', 'invalid_field'],
    ]);
  });

  it('accounts for every price of any answer', () => {
    const prob = fc.oneof(fc.double(), fc.constantFrom(0, 1, null, '0.5', undefined));
    const entry = fc.oneof(
      fc.record({ prob }),
      fc.record({ answerProbs: fc.dictionary(fc.constantFrom('a', 'b', 'prob', 'x y'), prob) }),
      fc.jsonValue(),
    );
    fc.assert(
      fc.property(fc.dictionary(fc.constantFrom('c1', 'c2', 'a:b', ''), entry), (probs) => {
        const { records, rejected, skipped } = parseProbs(probs, NOW);
        expect(records.length + rejected.length + skipped.length).toBe(countProbs(probs));
      }),
    );
  });

  it.each([null, 5, [], { answerProbs: null }, { answerProbs: [] }, {}])('rejects %o', (entry) => {
    const { records, rejected } = parseProbs({ c: entry }, NOW);
    expect(records).toEqual([]);
    expect(rejected.length).toBe(1);
  });
});
