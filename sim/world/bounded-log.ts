/** An append-only log that keeps its newest `capacity` entries; positions are running numbers and never reused. */
export class BoundedLog<T> {
  private items: T[] = [];
  private head = 0;
  private dropped = 0;
  private readonly capacity: number;

  constructor(capacity: number) {
    this.capacity = capacity;
  }

  /** Position of the oldest entry still kept. */
  get firstIndex(): number {
    return this.dropped;
  }

  /** Position the next entry will get. */
  get nextIndex(): number {
    return this.dropped + this.length;
  }

  get length(): number {
    return this.items.length - this.head;
  }

  /** Appends, and returns the dropped entry, if any. */
  push(item: T): T | undefined {
    this.items.push(item);
    return this.length > this.capacity ? this.shift() : undefined;
  }

  at(index: number): T | undefined {
    return index < this.dropped ? undefined : this.items[this.head + index - this.dropped];
  }

  get first(): T | undefined {
    return this.items[this.head];
  }

  shift(): T | undefined {
    if (this.length === 0) return undefined;
    const item = this.items[this.head];
    this.head += 1;
    this.dropped += 1;
    // Halving keeps the amortised cost of a shift constant without holding more than twice the entries.
    if (this.head > 1024 && this.head * 2 > this.items.length) {
      this.items = this.items.slice(this.head);
      this.head = 0;
    }
    return item;
  }

  *newestFirst(): Generator<T> {
    for (let at = this.items.length - 1; at >= this.head; at -= 1) {
      const item = this.items[at];
      if (item !== undefined) yield item;
    }
  }
}
