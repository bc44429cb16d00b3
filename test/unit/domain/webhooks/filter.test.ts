import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type FilterCondition, passesFilter } from '../../../../src/domain/webhooks/filter.ts';

const BODY = `{"id":"evt_1","type":"transaction","data":{"venue":"kalshi","price":0.62,"size":12345678901234567890.5,"isLast":true,
  "note":null,"text":"7","transfers":[{"tokenMint":"yes","change":25},{"tokenMint":"usd","change":-15.5}],"deep":{"a":{"b":{"c":1}}}}}`;
const passes = (...filter: FilterCondition[]) => passesFilter(filter, BODY);

describe('passesFilter', () => {
  it.each<[FilterCondition, boolean]>([
    [{ field: 'type', equal: 'transaction' }, true],
    [{ field: 'type', in: ['price_alert', 'balance_change'] }, false],
    [{ field: 'data.venue', in: ['polymarket', 'kalshi'] }, true],
    [{ field: 'data.venue', equal: 'Kalshi' }, false],
    [{ field: 'data.price', equal: 0.62 }, true],
    [{ field: 'data.price', above: 0.62 }, true],
    [{ field: 'data.price', below: 0.62 }, true],
    [{ field: 'data.price', above: 0.621 }, false],
    [{ field: 'data.price', below: 0.619 }, false],
    [{ field: 'data.size', above: 12345678901234567000 }, true],
    [{ field: 'data.text', equal: 7 }, false],
    [{ field: 'data.text', above: 1 }, false],
    [{ field: 'data.venue', below: 1 }, false],
    [{ field: 'data.isLast', equal: true }, true],
    [{ field: 'data.isLast', equal: 'true' }, false],
    [{ field: 'data.note', exists: true }, false],
    [{ field: 'data.note', exists: false }, true],
    [{ field: 'data.missing', exists: false }, true],
    [{ field: 'data.missing', equal: 'x' }, false],
    [{ field: 'data.price.digits', exists: true }, false],
    [{ field: 'data.size.text', exists: true }, false],
    [{ field: 'data.constructor', exists: true }, false],
    [{ field: 'data.transfers.tokenMint', equal: 'usd' }, true],
    [{ field: 'data.transfers.change', below: -15.5 }, true],
    [{ field: 'data.transfers.change', above: 26 }, false],
    [{ field: 'data.deep.a.b.c', equal: 1 }, true],
  ])('evaluates %j to %s', (condition, expected) => expect(passes(condition)).toBe(expected));

  it('lets a correction pass the conditions on the result, and no other one', () => {
    const body = (correction: string) =>
      `{"type":"market_status","data":{"venue":"kalshi","status":"resolved","winningOutcomeId":"no"${correction}}}`;
    const winner = { field: 'data.winningOutcomeId', equal: 'yes' };
    expect(passesFilter([winner], body(''))).toBe(false);
    expect(passesFilter([winner], body(',"correction":true'))).toBe(true);
    expect(passesFilter([winner], body(',"correction":"true"'))).toBe(false);
    expect(passesFilter([winner, { field: 'data.venue', equal: 'manifold' }], body(',"correction":true'))).toBe(false);
    expect(passesFilter([{ field: 'data.correction', exists: false }], body(',"correction":true'))).toBe(false);
  });

  it('requires every condition', () => {
    const venue = { field: 'data.venue', equal: 'kalshi' };
    expect(passes(venue, { field: 'data.price', above: 0.5 })).toBe(true);
    expect(passes(venue, { field: 'data.price', above: 0.7 })).toBe(false);
    expect(passes()).toBe(true);
  });

  it('compares numbers as numbers do when a double holds them', () => {
    const cents = fc.integer({ min: -100_000, max: 100_000 }).map((value) => value / 100);
    fc.assert(
      fc.property(cents, cents, (value, bound) => {
        const body = JSON.stringify({ type: 'x', data: { value } });
        expect(passesFilter([{ field: 'data.value', above: bound }], body)).toBe(value >= bound);
        expect(passesFilter([{ field: 'data.value', below: bound }], body)).toBe(value <= bound);
        expect(passesFilter([{ field: 'data.value', equal: bound }], body)).toBe(value === bound);
      }),
    );
  });
});
