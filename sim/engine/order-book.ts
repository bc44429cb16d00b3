type BookSide = 'bid' | 'ask';

/**
 * An order on the axis of the first outcome: `ticks` counts ticks of its price, `size` whole millionths of a share.
 * A buy of the second outcome at `1 - p` is an ask here at `p`; `note` carries the trader's original request.
 */
interface OrderRequest<Note> {
  readonly owner: number;
  readonly side: BookSide;
  /** The worst acceptable price, in ticks, `1..ticksPerUnit-1`. */
  readonly ticks: number;
  readonly size: number;
  /** `rest` leaves the unfilled part in the book, `drop` cancels it (a market order is `drop` at the far end). */
  readonly remainder: 'rest' | 'drop';
  readonly note: Note;
}

interface Fill<Note> {
  readonly makerOrderId: number;
  readonly makerOwner: number;
  readonly makerNote: Note;
  readonly ticks: number;
  readonly size: number;
}

/** `size` of the request equals the sum of fills + `resting` + `dropped`. */
export interface Placement<Note> {
  readonly orderId: number;
  readonly fills: readonly Fill<Note>[];
  readonly resting: number;
  readonly dropped: number;
}

interface DepthLevel {
  readonly ticks: number;
  readonly size: number;
}

class InvalidOrderError extends Error {
  readonly code = 'invalid_order';
  readonly retryable = false;
}

/** Price-time-priority matching of one market. Integers only; never crossed after a call returns. */
export class OrderBook<Note> {
  readonly ticksPerUnit: number;
  private readonly bids: PriceLevels<Note>;
  private readonly asks: PriceLevels<Note>;
  private readonly orders = new Map<number, { side: BookSide; order: RestingOrder<Note> }>();
  private readonly ordersByOwner = new Map<number, Set<number>>();
  private nextOrderId = 1;
  private changes = 0;

  constructor(ticksPerUnit: number) {
    this.ticksPerUnit = ticksPerUnit;
    this.bids = new PriceLevels(ticksPerUnit, 'highest');
    this.asks = new PriceLevels(ticksPerUnit, 'lowest');
  }

  /** Grows by at least one with every change of the resting orders. */
  get version(): number {
    return this.changes;
  }

  get bestBid(): number | undefined {
    return this.bids.best;
  }

  get bestAsk(): number | undefined {
    return this.asks.best;
  }

  /** Matches, then rests or drops the remainder. @throws InvalidOrderError on a price off the grid or an empty size. */
  place(request: OrderRequest<Note>): Placement<Note> {
    this.check(request);
    const orderId = this.nextOrderId;
    this.nextOrderId += 1;
    const fills: Fill<Note>[] = [];
    let open = request.size;
    const opposite = request.side === 'bid' ? this.asks : this.bids;
    while (open > 0) {
      const best = opposite.best;
      if (best === undefined) break;
      if (request.side === 'bid' ? best > request.ticks : best < request.ticks) break;
      const maker = opposite.front(best);
      if (maker === undefined) break;
      const size = Math.min(open, maker.remaining);
      opposite.reduce(maker, size);
      open -= size;
      fills.push({ makerOrderId: maker.id, makerOwner: maker.owner, makerNote: maker.note, ticks: best, size });
      if (maker.remaining === 0) this.forget(maker);
    }
    const resting = request.remainder === 'rest' ? open : 0;
    if (resting > 0) this.rest(orderId, request, resting);
    if (fills.length > 0 || resting > 0) this.changes += 1;
    return { orderId, fills, resting, dropped: open - resting };
  }

  /** Removes a resting order; returns its remaining size, or undefined when it no longer rests. */
  cancel(orderId: number): number | undefined {
    const entry = this.orders.get(orderId);
    if (entry === undefined) return undefined;
    const { remaining } = entry.order;
    (entry.side === 'bid' ? this.bids : this.asks).reduce(entry.order, remaining);
    this.forget(entry.order);
    this.changes += 1;
    return remaining;
  }

  /** Cancels every resting order of one owner; returns their number. */
  cancelOwner(owner: number): number {
    const ids = this.ordersByOwner.get(owner);
    if (ids === undefined) return 0;
    const all = [...ids];
    for (const id of all) this.cancel(id);
    return all.length;
  }

  /** Empties the book, as at the end of a market. */
  clear(): void {
    for (const id of [...this.orders.keys()]) this.cancel(id);
  }

  /** Levels from the best price outwards. */
  depth(side: BookSide): DepthLevel[] {
    return (side === 'bid' ? this.bids : this.asks).levels().map((level: Level<Note>) => ({
      ticks: level.ticks,
      size: level.size,
    }));
  }

  /** The number of resting orders. */
  get orderCount(): number {
    return this.orders.size;
  }

  private rest(orderId: number, request: OrderRequest<Note>, remaining: number): void {
    const { owner, side, ticks, note } = request;
    const order = (side === 'bid' ? this.bids : this.asks).append({ id: orderId, owner, ticks, remaining, note });
    this.orders.set(orderId, { side, order });
    const owned = this.ordersByOwner.get(owner);
    if (owned === undefined) this.ordersByOwner.set(owner, new Set([orderId]));
    else owned.add(orderId);
  }

  private forget(order: RestingOrder<Note>): void {
    this.orders.delete(order.id);
    const owned = this.ordersByOwner.get(order.owner);
    owned?.delete(order.id);
    if (owned?.size === 0) this.ordersByOwner.delete(order.owner);
  }

  private check(request: OrderRequest<Note>): void {
    const { ticks, size } = request;
    if (!Number.isInteger(ticks) || ticks < 1 || ticks >= this.ticksPerUnit) {
      throw new InvalidOrderError(`price of ${ticks} ticks is not on the grid 1..${this.ticksPerUnit - 1}`);
    }
    if (!Number.isSafeInteger(size) || size <= 0) throw new InvalidOrderError(`size ${size} is not a positive integer`);
  }
}

/** An order in a level's queue, linked so that a cancel costs the same at every position. */
interface RestingOrder<Note> {
  readonly id: number;
  readonly owner: number;
  readonly ticks: number;
  readonly note: Note;
  remaining: number;
  previous: RestingOrder<Note> | undefined;
  next: RestingOrder<Note> | undefined;
}

interface Level<Note> {
  readonly ticks: number;
  size: number;
  head: RestingOrder<Note> | undefined;
  tail: RestingOrder<Note> | undefined;
}

/** One side of a book: a first-in-first-out queue per price. */
class PriceLevels<Note> {
  private readonly byTicks: (Level<Note> | undefined)[];
  private readonly outwards: 1 | -1;
  private bestTicks: number | undefined;

  /** `bestIs` says which end of the prices trades first: `highest` for bids, `lowest` for asks. */
  constructor(ticksPerUnit: number, bestIs: 'highest' | 'lowest') {
    this.byTicks = new Array<Level<Note> | undefined>(ticksPerUnit + 1).fill(undefined);
    this.outwards = bestIs === 'highest' ? -1 : 1;
  }

  get best(): number | undefined {
    return this.bestTicks;
  }

  /** The order at a price that has waited longest. */
  front(ticks: number): RestingOrder<Note> | undefined {
    return this.byTicks[ticks]?.head;
  }

  append(entry: Pick<RestingOrder<Note>, 'id' | 'owner' | 'ticks' | 'remaining' | 'note'>): RestingOrder<Note> {
    const { id, owner, ticks, remaining, note } = entry;
    const level = this.byTicks[ticks] ?? this.open(ticks);
    // Written out: a spread here doubles the cost of the whole history.
    const order: RestingOrder<Note> = { id, owner, ticks, note, remaining, previous: level.tail, next: undefined };
    if (level.tail === undefined) level.head = order;
    else level.tail.next = order;
    level.tail = order;
    level.size += order.remaining;
    return order;
  }

  /** Reduces an order by `size`, and removes it when nothing remains. */
  reduce(order: RestingOrder<Note>, size: number): void {
    const level = this.byTicks[order.ticks];
    if (level === undefined) throw new RangeError(`no level at ${order.ticks} ticks`);
    order.remaining -= size;
    level.size -= size;
    if (order.remaining > 0) return;
    if (order.previous === undefined) level.head = order.next;
    else order.previous.next = order.next;
    if (order.next === undefined) level.tail = order.previous;
    else order.next.previous = order.previous;
    if (level.head === undefined) this.close(level.ticks);
  }

  /** Levels from the best price outwards. */
  levels(): Level<Note>[] {
    const found: Level<Note>[] = [];
    if (this.bestTicks === undefined) return found;
    for (let at = this.bestTicks; at >= 0 && at < this.byTicks.length; at += this.outwards) {
      const level = this.byTicks[at];
      if (level !== undefined) found.push(level);
    }
    return found;
  }

  private open(ticks: number): Level<Note> {
    const level: Level<Note> = { ticks, size: 0, head: undefined, tail: undefined };
    this.byTicks[ticks] = level;
    if (this.bestTicks === undefined || (ticks - this.bestTicks) * this.outwards < 0) this.bestTicks = ticks;
    return level;
  }

  private close(ticks: number): void {
    this.byTicks[ticks] = undefined;
    if (ticks !== this.bestTicks) return;
    this.bestTicks = undefined;
    for (let at = ticks; at >= 0 && at < this.byTicks.length; at += this.outwards) {
      if (this.byTicks[at] !== undefined) {
        this.bestTicks = at;
        return;
      }
    }
  }
}
