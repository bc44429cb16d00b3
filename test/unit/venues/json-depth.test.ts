import fc from 'fast-check';
import { expect, it } from 'vitest';
import { isDeeperThan } from '../../../src/venues/http/json-depth.ts';

function depthOf(value: unknown): number {
  if (value === null || typeof value !== 'object') return 0;
  return 1 + Math.max(0, ...Object.values(value).map(depthOf));
}

it('isDeeperThan finds the depth of any JSON with any text in its strings', () => {
  const text = fc.oneof(fc.string(), fc.stringMatching(/^["\\[\]{}]{0,6}$/));
  fc.assert(
    fc.property(fc.jsonValue({ maxDepth: 6, stringUnit: 'grapheme' }), text, (value, more) => {
      const json = JSON.stringify({ [more]: [value, more] });
      const depth = depthOf(JSON.parse(json));
      expect([isDeeperThan(json, depth), isDeeperThan(json, depth - 1)]).toEqual([false, true]);
    }),
  );
});

it.each(['', '"', '"\\"', '[[', ']]', '"['])('isDeeperThan ends on text that is not JSON: %j', (json) => {
  expect(isDeeperThan(json, 5)).toBe(false);
});
