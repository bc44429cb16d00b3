import fc from 'fast-check';
import { expect, it } from 'vitest';
import { alertSection } from '../../../api/pages/console/alert-form.ts';
import { decimal } from '../../../src/domain/values/decimal.ts';

const VIEWER = { session: { mayAct: true, hiddenFields: () => '' } } as never;
const MARKET = { venue: 'polymarket', market_id: 'm' } as never;

/** The price that the form of a market page suggests. */
function suggestedTarget(price: number): number {
  const page = { market: MARKET, range: 'day' as never };
  const nothing = { alerts: [], webhooks: [] };
  const form = alertSection(VIEWER, page, { outcome_id: 'o', label: 'Yes' }, nothing, decimal(price));
  return Number(/ name="price"[^>]* value="([^"]+)"/.exec(String(form))?.[1]);
}

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
