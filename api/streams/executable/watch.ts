import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Change } from '../../../src/domain/live/change.ts';
import type { DecimalFormat } from '../../../src/domain/values/api-json.ts';
import { FailureStreaks } from '../../../src/observe/failures.ts';
import { logLimited } from '../../../src/observe/limited-lines.ts';
import type { Logger } from '../../../src/observe/logger.ts';
import type { Queryable } from '../../../src/store/db/tx.ts';
import type { JournalStamp } from '../../../src/store/journal/read-journal.ts';
import type { JournalBatch } from '../../../src/store/journal/tail.ts';
import { type OrderBook, readOrderBooks } from '../../../src/store/series/book-reads.ts';
import { sizeDigits } from '../../reads/executable-answer.ts';
import { FILL_KINDS, namedBy } from '../../reads/journal-view.ts';
import type { EnabledVenue } from '../../reads/venue-catalog.ts';
import type { Subscription } from '../client.ts';
import type { Replaceable, StreamCursors } from '../frame.ts';
import type { MarketHub } from '../hub.ts';
import { computedValue, countOf, stableMs, type Value, valueMessage } from './value.ts';
import { Watched, type WatchedBook, type Watcher } from './watched.ts';

/** Books of one statement: they may have 400 levels each. */
const BOOKS_AT_ONCE = 50;
/** Changes of a few milliseconds share a statement. */
const ROUND_MS = 20;
/** Other work of the process gets a turn after this time. */
const SLICE_MS = 5;

interface WatchOptions {
  hub: MarketHub;
  db: Queryable;
  venues: readonly EnabledVenue[];
  cursors: StreamCursors;
  decimalFormat: DecimalFormat;
  log: Logger;
  /** Counts a value that was handed to this many subscriptions. */
  onDispatched(type: string, subscriptions: number): void;
  /** Epoch milliseconds. */
  now(): number;
}

/**
 * Computes the values of the channel `executable` for all subscriptions of this process: the journal names the books that changed, one
 * statement at a time reads them, and each order is computed and encoded once. Nothing runs while nobody watches.
 */
export class ExecutableWatch {
  readonly #options: WatchOptions;
  readonly #venues: readonly string[];
  readonly #digitsOf: ReturnType<typeof sizeDigits>;
  readonly #watched = new Watched();
  /** The books whose values may have changed, with the number of the journal that their next read must contain. */
  readonly #dirty = new Map<WatchedBook, number>();
  readonly #alarms: AlarmClock<WatchedBook>;
  readonly #streaks = new FailureStreaks();
  #reading: Promise<void> | undefined;
  #startedAtMs = Number.NEGATIVE_INFINITY;
  #isClosed = false;

  constructor(options: WatchOptions) {
    this.#options = options;
    this.#venues = options.venues.map(({ venue }) => venue);
    this.#digitsOf = sizeDigits(options);
    this.#alarms = new AlarmClock((book) => this.#mark(book, 0));
  }

  /** The watched orders of all subscriptions; the same order counts once. */
  get orders(): number {
    return this.#watched.orders;
  }

  /** Watches the orders of a subscription. It gets no value before `begin`. */
  add(subscription: Subscription): void {
    const { orders } = subscription.filter;
    if (!orders) return;
    subscription.client.use.addOrders(countOf(orders));
    for (const book of this.#watched.add(subscription, orders)) this.#mark(book, this.#options.hub.seq);
  }

  remove(subscription: Subscription): void {
    const { orders } = subscription.filter;
    if (!orders) return;
    subscription.client.use.removeOrders(countOf(orders));
    for (const book of this.#watched.remove(subscription)) {
      this.#dirty.delete(book);
      this.#alarms.delete(book);
      book.release();
    }
  }

  /** Sends the present values of a live subscription, at the speed of its reader, and from then on the changes. */
  async begin(subscription: Subscription): Promise<void> {
    const watcher = this.#watched.of(subscription);
    if (!watcher) return;
    const isOpen = () => this.#watched.of(subscription) === watcher && subscription.state === 'live';
    for (const { book, order } of watcher.places) {
      await subscription.client.room();
      if (isOpen() && this.#dirty.has(book)) await book.nextRead();
      if (!isOpen()) return;
      watcher.begun += 1;
      if (order.value) this.#hand(order.value, [watcher]);
    }
  }

  /** Whether the subscription may get values of books that the journal has named, or has not got all of its first ones. */
  isPending(subscription: Subscription): boolean {
    const watcher = this.#watched.of(subscription);
    if (!watcher) return false;
    return (
      watcher.begun < watcher.places.length ||
      (this.#dirty.size > 0 && watcher.places.some(({ book }) => this.#dirty.has(book)))
    );
  }

  /** Notes which books a batch of the journal names. With `hasLost`, any of them may have changed. */
  note({ changes, upTo }: Pick<JournalBatch, 'changes' | 'upTo'>, hasLost: boolean): void {
    if (this.#watched.orders === 0) return;
    if (hasLost) for (const book of this.#watched.books()) this.#mark(book, upTo);
    for (const change of changes) this.#noteChange(change);
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#alarms.close();
    await this.#reading;
  }

  #noteChange(change: Change): void {
    const { venue, seq } = change;
    const { kind, ids } = namedBy(change);
    if (!FILL_KINDS.has(kind)) return;
    for (const marketId of ids) for (const book of this.#watched.ofMarket({ venue, marketId })) this.#mark(book, seq);
  }

  #mark(book: WatchedBook, seq: number): void {
    this.#dirty.set(book, Math.max(seq, this.#dirty.get(book) ?? 0));
    this.#reading ??= this.#read();
  }

  /** Reads the marked books until none is left. Never rejects. */
  async #read(): Promise<void> {
    // The rest of the batch marks its books first.
    await nextTurn();
    while (this.#dirty.size > 0 && !this.#isClosed) {
      await this.#round();
      const some = [...this.#dirty.keys()].slice(0, BOOKS_AT_ONCE);
      const { db, hub, log } = this.#options;
      try {
        const ids = some.map(({ outcomeId }) => outcomeId);
        const { books, stamp } = await readOrderBooks(db, this.#venues, ids);
        this.#streaks.succeeded('read');
        const byId = new Map(books.map((book) => [book.outcomeId, book]));
        let failed = 0;
        for (const book of some) {
          try {
            await this.#apply(book, byId.get(book.outcomeId), stamp);
          } catch (error) {
            // The others go on, and no heartbeat reaches the subscriptions of this one.
            logLimited(log, { level: 'error', fields: { err: error }, message: 'executable price not computed' });
            this.#postpone(book);
            failed += 1;
          }
        }
        if (failed === some.length) await hub.nextBatch();
      } catch (error) {
        const { inARow, shouldLog } = this.#streaks.failed('read');
        log[shouldLog ? 'warn' : 'debug']({ err: error, inARow }, 'books of open streams not read; will retry');
        await hub.nextBatch();
      }
    }
    this.#reading = undefined;
  }

  /** Reads a marked book behind the others, which wait for their first turn. */
  #postpone(book: WatchedBook): void {
    const seq = this.#dirty.get(book);
    if (seq === undefined) return;
    this.#dirty.delete(book);
    this.#dirty.set(book, seq);
  }

  async #round(): Promise<void> {
    const waitMs = this.#startedAtMs + ROUND_MS - performance.now();
    if (waitMs > 0) await new Promise((resolve) => void setTimeout(resolve, waitMs));
    this.#startedAtMs = performance.now();
  }

  /**
   * Applies a read to the values of a book. A book that the journal has named again since then is read again first, but not a second time:
   * the values would stand still while changes arrive faster than reads.
   */
  async #apply(book: WatchedBook, read: OrderBook | undefined, stamp: JournalStamp | undefined): Promise<void> {
    if (!this.#watched.has(book)) return;
    const isCurrent = () => read === undefined || this.#contains(stamp, this.#dirty.get(book) ?? 0);
    if (!isCurrent() && !book.isPassedOver) {
      book.isPassedOver = true;
      this.#postpone(book);
      return;
    }
    book.isPassedOver = false;
    if (read) {
      this.#watched.move(book, read);
      await this.#compute(book, read);
    }
    if (isCurrent()) this.#dirty.delete(book);
    book.release();
  }

  async #compute(book: WatchedBook, read: OrderBook): Promise<void> {
    const { now, decimalFormat } = this.#options;
    const atMs = now();
    const context = { atMs, sizeDigits: this.#digitsOf(read), decimalFormat };
    this.#alarms.set(book, stableMs(read, atMs));
    let startedMs = performance.now();
    for (const order of book.orders.values()) {
      const value = computedValue(read, order, context);
      // A value counts as sent behind its last watcher, so that a failure at one of them is repeated for all.
      if (value && order.value?.text !== value.text) this.#hand(value, order.begun());
      order.value = value;
      if (performance.now() - startedMs < SLICE_MS) continue;
      await nextTurn();
      startedMs = performance.now();
    }
  }

  /** Whether a read saw every change up to this number. */
  #contains(stamp: JournalStamp | undefined, seq: number): boolean {
    return stamp !== undefined && stamp.epoch === this.#options.hub.head?.epoch && stamp.seq >= seq;
  }

  #hand(value: Value, watchers: Iterable<Watcher>): void {
    const { hub, cursors, decimalFormat, onDispatched } = this.#options;
    const { head, seq } = hub;
    if (!head) return;
    let message: Replaceable | undefined;
    let handed = 0;
    for (const { subscription } of watchers) {
      message ??= valueMessage(value, { head, seq, cursors, decimalFormat });
      subscription.client.offer(message, subscription);
      hub.rounds.mark(subscription.client);
      handed += 1;
    }
    if (handed > 0) onDispatched('executable', handed);
  }
}

/** The longest time of a timer of Node. */
const MAX_TIMER_MS = 2 ** 31 - 1;
/** Alarms of the same moment ring together. */
const PRECISION_MS = 50;

/** Rings for each key once after its time, with one timer for the next of them. */
class AlarmClock<Key> {
  readonly #ring: (key: Key) => void;
  /** Milliseconds of the monotonic clock. */
  readonly #dueMs = new Map<Key, number>();
  #timer: NodeJS.Timeout | undefined;
  #timerMs = Number.POSITIVE_INFINITY;

  constructor(ring: (key: Key) => void) {
    this.#ring = ring;
  }

  /** Sets the alarm of a key, in place of its earlier one. Infinity: none. */
  set(key: Key, inMs: number): void {
    if (inMs === Number.POSITIVE_INFINITY) {
      this.#dueMs.delete(key);
      return;
    }
    const dueMs = performance.now() + inMs;
    this.#dueMs.set(key, dueMs);
    this.#schedule(dueMs);
  }

  delete(key: Key): void {
    this.#dueMs.delete(key);
    if (this.#dueMs.size === 0) this.close();
  }

  close(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#timerMs = Number.POSITIVE_INFINITY;
  }

  #schedule(dueMs: number): void {
    if (dueMs >= this.#timerMs) return;
    clearTimeout(this.#timer);
    this.#timerMs = dueMs;
    const waitMs = Math.max(PRECISION_MS, dueMs - performance.now());
    this.#timer = setTimeout(() => this.#wake(), Math.min(MAX_TIMER_MS, waitMs));
    this.#timer.unref();
  }

  #wake(): void {
    this.close();
    const nowMs = performance.now();
    const due: Key[] = [];
    let nextMs = Number.POSITIVE_INFINITY;
    for (const [key, dueMs] of this.#dueMs) {
      if (dueMs <= nowMs) due.push(key);
      else nextMs = Math.min(nextMs, dueMs);
    }
    for (const key of due) this.#dueMs.delete(key);
    if (nextMs !== Number.POSITIVE_INFINITY) this.#schedule(nextMs);
    for (const key of due) this.#ring(key);
  }
}
