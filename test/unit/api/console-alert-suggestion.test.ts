import fc from 'fast-check';
import { expect, it } from 'vitest';
import { suggestedTarget } from '../../../api/pages/console/alert-form.ts';

it.each([
  [0.5, 0.55],
  [0.0012, 0.05],
  [0.94, 0.97],
  [0.992, 0.996],
])('the form of an alert at %d suggests %d', (price, target) => expect(suggestedTarget(price)).toBe(target));

it('the form of an alert suggests a target that the price has not reached', () => {
  fc.assert(
    fc.property(fc.integer({ min: 0, max: 999_990 }), (millionths) => {
      const target = suggestedTarget(millionths / 1_000_000);
      expect(target).toBeGreaterThan(millionths / 1_000_000);
      expect(target).toBeLessThan(1);
    }),
  );
});
