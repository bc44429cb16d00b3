import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parseBets } from '../../../../src/venues/manifold/parse-trade.ts';
import { type Order, ReferenceMarket } from './reference-market.ts';

const START_MS = 1_790_000_000_000;
const NOW_MS = START_MS + 86_400_000;

const STAMPS: Readonly<Record<string, (ms: number) => number>> = {
  'to the millisecond': (ms) => ms,
  'cut to whole seconds': (ms) => Math.floor(ms / 1000) * 1000,
  'rounded to whole seconds': (ms) => Math.round(ms / 1000) * 1000,
  'rounded up to whole seconds': (ms) => Math.ceil(ms / 1000) * 1000,
};

interface Step {
  order: Order;
  waitMs: number;
  cancels: boolean;
}

const orders: fc.Arbitrary<Order> = fc.record(
  {
    outcome: fc.constantFrom('YES', 'NO'),
    amount: fc.integer({ min: 5, max: 120 }),
    limitProb: fc.integer({ min: 20, max: 80 }).map((percent) => percent / 100),
  },
  { requiredKeys: ['outcome', 'amount'] },
);
const steps: fc.Arbitrary<Step[]> = fc.array(
  fc.record({
    order: orders,
    // The venue fills the bets of a market one after the other, with a commit between two.
    waitMs: fc.oneof(fc.integer({ min: 25, max: 400 }), fc.integer({ min: 400, max: 4_000 })),
    cancels: fc.boolean(),
  }),
  { minLength: 2, maxLength: 25 },
);

/** Runs the steps on a market, and stamps the bets. */
function betsOf(taken: readonly Step[], stamp: (ms: number) => number, hasFees: boolean) {
  const market = new ReferenceMarket();
  let atMs = START_MS;
  for (const { order, waitMs, cancels } of taken) {
    atMs += waitMs;
    if (cancels && waitMs > 3_500) market.cancelAll();
    // With a stamp of a whole second, an order at the exact price of the market looks the same when it rested and when it took.
    const isAtMarket = order.limitProb !== undefined && Math.abs(order.limitProb - market.prob) < 1e-3;
    if (isAtMarket && stamp(atMs) % 1000 === 0) continue;
    market.place(order, atMs, hasFees);
  }
  for (const bet of market.bets) bet.wire.createdTime = stamp(bet.placedMs);
  return market.bets;
}

describe('ownFills', () => {
  describe.each(Object.entries(STAMPS))('with bets stamped %s', (_, stamp) => {
    it.each([
      ['with fees on takers’ fills', true],
      ['without fees on fills', false],
    ])('counts each fill of a market once, in the bet that took it, %s', (__, hasFees) => {
      let limitOrdersFilledLater = 0;
      fc.assert(
        fc.property(steps, (taken) => {
          const bets = betsOf(taken, stamp, hasFees);
          const { records, rejected, skipped } = parseBets(
            bets.map(({ wire }) => wire),
            NOW_MS,
          );
          expect(rejected).toEqual([]);
          const takers = bets.filter(({ takenAmount }) => takenAmount > 0);
          expect(records.map(({ tradeId }) => tradeId)).toEqual(takers.map(({ wire }) => wire.id));
          expect(skipped).toEqual(Array.from({ length: bets.length - takers.length }, () => 'nothing_taken'));
          records.forEach(({ size, price }, index) => {
            const { takenShares = 0, takenAmount = 0 } = takers[index] ?? {};
            expect(Number(size)).toBeCloseTo(takenShares, 6);
            expect(Number(price)).toBeCloseTo(takenAmount / takenShares, 6);
          });
          limitOrdersFilledLater += bets.filter(({ wire, takenAmount }) => wire.amount > takenAmount).length;
        }),
        { numRuns: 200 },
      );
      expect(limitOrdersFilledLater).toBeGreaterThan(50);
    });
  });

  const SECOND = START_MS;
  const order = {
    id: 'order',
    contractId: 'c1',
    createdTime: SECOND,
    amount: 12,
    shares: 20,
    outcome: 'YES',
    probBefore: 0.5,
    limitProb: 0.6,
  };
  const fill = { matchedBetId: 'other', amount: 6, shares: 10, timestamp: SECOND + 412 };
  const sizeOf = (bet: object) => parseBets([bet], NOW_MS).records[0]?.size;

  it('keeps the fills that a limit order took at once when its stamp is cut to the second', () => {
    const fills = [{ ...fill, matchedBetId: null, amount: 12, shares: 20 }];
    expect(sizeOf({ ...order, fills })).toBe('20');
  });

  it('keeps fills at better prices than the limit, and fills at the same instant', () => {
    const better = { ...fill, amount: 5.5 };
    const last = { ...fill, timestamp: SECOND + 413 };
    const later = { ...fill, timestamp: SECOND + 700 };
    expect(sizeOf({ ...order, fills: [better, last, later] })).toBe('20');
  });

  it('skips an order that rested below the market and was filled within the second of its stamp', () => {
    const batch = parseBets(
      [{ ...order, probBefore: 0.7, fills: [fill, { ...fill, timestamp: SECOND + 800 }] }],
      NOW_MS,
    );
    expect(batch.records).toEqual([]);
    expect(batch.skipped).toEqual(['nothing_taken']);
  });

  it('keeps a fill at the limit when the market was at the limit', () => {
    expect(sizeOf({ ...order, probBefore: 0.6, fills: [fill, { ...fill, timestamp: SECOND + 800 }] })).toBe('10');
  });

  it('trusts fees over clocks that differ', () => {
    const own = { ...fill, timestamp: SECOND + 400, fees: {} };
    const early = { ...fill, timestamp: SECOND + 390 };
    expect(sizeOf({ ...order, createdTime: SECOND + 401, fills: [own, early] })).toBe('10');
  });
});
