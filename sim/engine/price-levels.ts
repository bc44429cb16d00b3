/** An order in a level's queue, linked so that a cancel costs the same at every position. */
export interface RestingOrder<Note> {
  readonly id: number;
  readonly owner: number;
  readonly ticks: number;
  readonly note: Note;
  remaining: number;
  previous: RestingOrder<Note> | undefined;
  next: RestingOrder<Note> | undefined;
}

export interface Level<Note> {
  readonly ticks: number;
  size: number;
  head: RestingOrder<Note> | undefined;
  tail: RestingOrder<Note> | undefined;
}

/** One side of a book: a first-in-first-out queue per price. */
export class PriceLevels<Note> {
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
