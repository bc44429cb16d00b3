import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { OrderBook } from '../../../sim/engine/order-book.ts';

type BookSide = Parameters<OrderBook<null>['depth']>[0];

const GRID = 20;

type Action =
  | { kind: 'place'; owner: number; side: BookSide; ticks: number; size: number; remainder: 'rest' | 'drop' }
  | { kind: 'cancel'; pick: number }
  | { kind: 'cancelOwner'; owner: number };

const action: fc.Arbitrary<Action> = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.record({
      kind: fc.constant('place' as const),
      owner: fc.integer({ min: 0, max: 3 }),
      side: fc.constantFrom<BookSide>('bid', 'ask'),
      ticks: fc.integer({ min: 1, max: GRID - 1 }),
      size: fc.integer({ min: 1, max: 50 }),
      remainder: fc.constantFrom('rest' as const, 'drop' as const),
    }),
  },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('cancel' as const), pick: fc.nat(60) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('cancelOwner' as const), owner: fc.nat(3) }) },
);

/** The same market as one flat list in order of arrival: slow, but too simple for the same mistakes. */
class NaiveBook {
  orders: { id: number; owner: number; side: BookSide; ticks: number; size: number }[] = [];

  place(id: number, request: Extract<Action, { kind: 'place' }>) {
    const fills: { makerOrderId: number; ticks: number; size: number }[] = [];
    let open = request.size;
    const sign = request.side === 'bid' ? 1 : -1;
    while (open > 0) {
      const candidates = this.orders.filter((o) => o.side !== request.side && (request.ticks - o.ticks) * sign >= 0);
      const best = candidates.sort((a, b) => (a.ticks - b.ticks) * sign || a.id - b.id)[0];
      if (best === undefined) break;
      const size = Math.min(open, best.size);
      fills.push({ makerOrderId: best.id, ticks: best.ticks, size });
      open -= size;
      best.size -= size;
      if (best.size === 0) this.orders = this.orders.filter((o) => o !== best);
    }
    if (open > 0 && request.remainder === 'rest') {
      this.orders.push({ id, owner: request.owner, side: request.side, ticks: request.ticks, size: open });
    }
    return fills;
  }

  depth(side: BookSide) {
    const byTicks = new Map<number, number>();
    for (const o of this.orders) if (o.side === side) byTicks.set(o.ticks, (byTicks.get(o.ticks) ?? 0) + o.size);
    return [...byTicks]
      .map(([ticks, size]) => ({ ticks, size }))
      .sort((a, b) => (side === 'bid' ? b.ticks - a.ticks : a.ticks - b.ticks));
  }
}

describe('OrderBook', () => {
  it('matches by price, then time, exactly like a flat list', () => {
    fc.assert(
      fc.property(fc.array(action, { maxLength: 60 }), (actions) => {
        const book = new OrderBook<null>(GRID);
        const naive = new NaiveBook();
        for (const step of actions) {
          if (step.kind === 'place') {
            const placed = book.place({ ...step, note: null });
            const fills = placed.fills.map(({ makerOrderId, ticks, size }) => ({ makerOrderId, ticks, size }));
            expect(fills).toEqual(naive.place(placed.orderId, step));
          } else if (step.kind === 'cancel') {
            const known = naive.orders.find((o) => o.id === step.pick);
            expect(book.cancel(step.pick)).toBe(known?.size);
            naive.orders = naive.orders.filter((o) => o !== known);
          } else {
            expect(book.cancelOwner(step.owner)).toBe(naive.orders.filter((o) => o.owner === step.owner).length);
            naive.orders = naive.orders.filter((o) => o.owner !== step.owner);
          }
          expect(book.depth('bid')).toEqual(naive.depth('bid'));
          expect(book.depth('ask')).toEqual(naive.depth('ask'));
          expect(book.bestBid).toBe(naive.depth('bid')[0]?.ticks);
          expect(book.bestAsk).toBe(naive.depth('ask')[0]?.ticks);
          expect(book.orderCount).toBe(naive.orders.length);
        }
      }),
      { numRuns: 300 },
    );
  });

  it('is never crossed, and accounts for every unit of size', () => {
    fc.assert(
      fc.property(fc.array(action, { maxLength: 80 }), (actions) => {
        const book = new OrderBook<null>(GRID);
        let entered = 0;
        let left = 0;
        for (const step of actions) {
          if (step.kind === 'place') {
            const { fills, resting, dropped } = book.place({ ...step, note: null });
            const filled = fills.reduce((sum, fill) => sum + fill.size, 0);
            expect(filled + resting + dropped).toBe(step.size);
            // A fill reduces maker and taker by the same size.
            entered += step.size;
            left += filled * 2 + dropped;
            for (const fill of fills) {
              expect(step.side === 'bid' ? fill.ticks <= step.ticks : fill.ticks >= step.ticks).toBe(true);
            }
          } else if (step.kind === 'cancel') left += book.cancel(step.pick) ?? 0;
          const inBook = [...book.depth('bid'), ...book.depth('ask')].reduce((sum, level) => sum + level.size, 0);
          if (step.kind !== 'cancelOwner') expect(inBook).toBe(entered - left);
          else {
            book.cancelOwner(step.owner);
            const after = [...book.depth('bid'), ...book.depth('ask')].reduce((sum, level) => sum + level.size, 0);
            left += inBook - after;
          }
          if (book.bestBid !== undefined && book.bestAsk !== undefined) {
            expect(book.bestBid).toBeLessThan(book.bestAsk);
          }
        }
      }),
      { numRuns: 300 },
    );
  });

  it('changes its version exactly when the resting orders change', () => {
    fc.assert(
      fc.property(fc.array(action, { maxLength: 60 }), (actions) => {
        const book = new OrderBook<null>(GRID);
        const picture = () => JSON.stringify([book.depth('bid'), book.depth('ask'), book.orderCount]);
        for (const step of actions) {
          const before = { version: book.version, picture: picture() };
          if (step.kind === 'place') book.place({ ...step, note: null });
          else if (step.kind === 'cancel') book.cancel(step.pick);
          else book.cancelOwner(step.owner);
          expect(book.version > before.version).toBe(picture() !== before.picture);
        }
      }),
    );
  });

  it('is empty after clear', () => {
    const book = new OrderBook<null>(GRID);
    book.place({ owner: 1, side: 'bid', ticks: 3, size: 5, remainder: 'rest', note: null });
    book.place({ owner: 2, side: 'ask', ticks: 9, size: 5, remainder: 'rest', note: null });
    book.clear();
    expect([book.orderCount, book.bestBid, book.bestAsk]).toEqual([0, undefined, undefined]);
  });

  it.each([
    [0, 5],
    [GRID, 5],
    [1.5, 5],
    [3, 0],
    [3, -1],
    [3, 0.5],
  ])('rejects a price of %s ticks with size %s', (ticks, size) => {
    const book = new OrderBook<null>(GRID);
    expect(() => book.place({ owner: 1, side: 'bid', ticks, size, remainder: 'rest', note: null })).toThrow(
      /is not on the grid|is not a positive integer/,
    );
  });
});
