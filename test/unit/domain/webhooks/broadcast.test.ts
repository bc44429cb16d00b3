import { describe, expect, it } from 'vitest';
import { tradeBoundOf, tradeFilterProblem } from '../../../../src/domain/webhooks/broadcast.ts';
import type { EventFilter } from '../../../../src/domain/webhooks/filter.ts';

describe('tradeBoundOf', () => {
  it.each<[EventFilter | null, unknown]>([
    [null, null],
    [[], null],
    [[{ field: 'data.venue', equal: 'kalshi' }], null],
    [[{ field: 'data.marketId', exists: true }], null],
    [[{ field: 'data.notional', above: 999.999 }], null],
    [[{ field: 'data.notional', below: 5_000 }], null],
    [[{ field: 'data.notional', above: 1_000 }], { by: 'notional', atLeast: 1_000 }],
    [[{ field: 'data.marketId', equal: 'm' }], { by: 'market', ids: ['m'] }],
    [[{ field: 'data.eventId', in: ['a', 'b'] }], { by: 'event', ids: ['a', 'b'] }],
    [
      [
        { field: 'data.notional', above: 5_000 },
        { field: 'data.eventId', equal: 'e' },
        { field: 'data.marketId', in: ['m'] },
      ],
      { by: 'market', ids: ['m'] },
    ],
  ])('of %j is %j', (filter, bound) => {
    expect(tradeBoundOf(filter)).toEqual(bound);
  });
});

describe('tradeFilterProblem', () => {
  it('concerns webhooks that list trade only', () => {
    expect(tradeFilterProblem(['price_alert', 'new_market'], null)).toBeNull();
    expect(tradeFilterProblem(['trade'], null)).toContain('data.notional');
    expect(tradeFilterProblem(['trade'], [{ field: 'data.eventId', equal: 'e' }])).toBeNull();
  });
});
