import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { childSlices } from '../../../sim/recorded/json-slices.ts';

describe('childSlices', () => {
  it('splits any object and array into its members', () => {
    fc.assert(
      fc.property(fc.jsonValue(), fc.constantFrom(0, 2), (generated, indent) => {
        const text = JSON.stringify(generated, null, indent);
        // JSON has no negative zero.
        const value = JSON.parse(text) as unknown;
        const slices = childSlices(text);
        if (Array.isArray(value)) {
          expect(slices.map((slice) => JSON.parse(slice.text))).toEqual(value);
        } else if (typeof value === 'object' && value !== null) {
          expect(slices.map((slice) => [slice.key, JSON.parse(slice.text)])).toEqual(Object.entries(value));
        } else expect(slices).toEqual([]);
      }),
      { numRuns: 500 },
    );
  });

  it('keeps the text of numbers and the order of keys', () => {
    expect(childSlices('[ {"size": 100.0, "2": 1, "1": 2} , 1e5]').map((slice) => slice.text)).toEqual([
      '{"size": 100.0, "2": 1, "1": 2}',
      '1e5',
    ]);
  });
});
