import type { OrderSide } from '../../../src/domain/markets/market.ts';
import type { Decimal } from '../../../src/domain/values/decimal.ts';
import { type Subject, subjectKey } from '../../reads/journal-view.ts';
import type { Subscription } from '../client.ts';
import type { Value, WatchedOrders } from './value.ts';

/** The orders of one subscription. */
export interface Watcher {
  readonly subscription: Subscription;
  readonly places: readonly { readonly book: WatchedBook; readonly order: WatchedOrder }[];
  /** It has the first value of so many of its places, and gets their changes. */
  begun: number;
}

/** An order that one or several subscriptions watch. */
class WatchedOrder {
  readonly side: OrderSide;
  readonly size: Decimal;
  /** The place of the order in each of them. */
  readonly watchers = new Map<Watcher, number>();
  /** The last computed value; undefined before the first, and without a stored book. */
  value: Value | undefined;

  constructor(side: OrderSide, size: Decimal) {
    this.side = side;
    this.size = size;
  }

  /** The subscriptions that get changes of the value. */
  *begun(): Generator<Watcher> {
    for (const [watcher, place] of this.watchers) if (place < watcher.begun) yield watcher;
  }
}

/** An outcome whose book is watched. */
export class WatchedBook {
  readonly outcomeId: string;
  /** The market of the outcome. It may move to another one. */
  subject: Subject;
  readonly orders = new Map<string, WatchedOrder>();
  /** Whether the last read was too old to be sent. */
  isPassedOver = false;
  #waiting: (() => void)[] = [];

  constructor(outcomeId: string, subject: Subject) {
    this.outcomeId = outcomeId;
    this.subject = subject;
  }

  /** Resolves when the book was read, or is not watched any more. */
  nextRead(): Promise<void> {
    return new Promise((resolve) => void this.#waiting.push(resolve));
  }

  release(): void {
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const resolve of waiting) resolve();
  }
}

/** The watched books and orders of all subscriptions. Each exists once, as long as a subscription watches it. */
export class Watched {
  readonly #books = new Map<string, WatchedBook>();
  readonly #byMarket = new Map<string, Set<WatchedBook>>();
  readonly #watchers = new Map<Subscription, Watcher>();
  #orders = 0;

  get orders(): number {
    return this.#orders;
  }

  books(): Iterable<WatchedBook> {
    return this.#books.values();
  }

  ofMarket(market: Subject): Iterable<WatchedBook> {
    return this.#byMarket.get(subjectKey(market)) ?? [];
  }

  of(subscription: Subscription): Watcher | undefined {
    return this.#watchers.get(subscription);
  }

  has(book: WatchedBook): boolean {
    return this.#books.get(book.outcomeId) === book;
  }

  /** Returns the books with an order that nobody watched before. */
  add(subscription: Subscription, { outcomes, sides, sizes }: WatchedOrders): ReadonlySet<WatchedBook> {
    const fresh = new Set<WatchedBook>();
    const places: { book: WatchedBook; order: WatchedOrder }[] = [];
    for (const { outcomeId, venue, marketId } of outcomes) {
      const book = this.#books.get(outcomeId) ?? this.#open(outcomeId, { venue, marketId });
      for (const side of sides) {
        for (const size of sizes) {
          const key = orderKey(side, size);
          let order = book.orders.get(key);
          if (!order) {
            order = new WatchedOrder(side, size);
            book.orders.set(key, order);
            this.#orders += 1;
            fresh.add(book);
          }
          places.push({ book, order });
        }
      }
    }
    const watcher = { subscription, places, begun: 0 };
    for (const [place, { order }] of places.entries()) order.watchers.set(watcher, place);
    this.#watchers.set(subscription, watcher);
    return fresh;
  }

  /** Returns the books that nobody watches any more. */
  remove(subscription: Subscription): WatchedBook[] {
    const watcher = this.#watchers.get(subscription);
    if (!watcher) return [];
    this.#watchers.delete(subscription);
    const ended: WatchedBook[] = [];
    for (const { book, order } of watcher.places) {
      order.watchers.delete(watcher);
      if (order.watchers.size > 0) continue;
      book.orders.delete(orderKey(order.side, order.size));
      this.#orders -= 1;
      if (book.orders.size > 0) continue;
      this.#books.delete(book.outcomeId);
      this.#leave(book);
      ended.push(book);
    }
    return ended;
  }

  /** Notes the market of a book that was read. */
  move(book: WatchedBook, { venue, marketId }: Subject): void {
    if (book.subject.marketId === marketId && book.subject.venue === venue) return;
    this.#leave(book);
    book.subject = { venue, marketId };
    this.#enter(book);
  }

  #open(outcomeId: string, subject: Subject): WatchedBook {
    const book = new WatchedBook(outcomeId, subject);
    this.#books.set(outcomeId, book);
    this.#enter(book);
    return book;
  }

  #enter(book: WatchedBook): void {
    const key = subjectKey(book.subject);
    const books = this.#byMarket.get(key) ?? new Set();
    this.#byMarket.set(key, books.add(book));
  }

  #leave(book: WatchedBook): void {
    const key = subjectKey(book.subject);
    const books = this.#byMarket.get(key);
    books?.delete(book);
    if (books?.size === 0) this.#byMarket.delete(key);
  }
}

function orderKey(side: OrderSide, size: Decimal): string {
  return `${side} ${size}`;
}
