import type { Change } from '../../src/domain/live/change.ts';
import type { DecimalFormat } from '../../src/domain/values/api-json.ts';
import type { Logger } from '../../src/observe/logger.ts';
import type { Queryable } from '../../src/store/db/tx.ts';
import type { JournalHead } from '../../src/store/journal/read-journal.ts';
import type { JournalBatch, JournalTail } from '../../src/store/journal/tail.ts';
import type { StreamClient, Subscription } from './client.ts';
import { Categories, type Filter, matches } from './filter.ts';
import { type Frame, frameOf, gapMessage, type Message, type StreamCursors } from './frame.ts';
import type { WriteRounds } from './outbox.ts';

interface HubOptions {
  tail: Pick<JournalTail, 'on' | 'staleMs'>;
  db: Queryable;
  cursors: StreamCursors;
  decimalFormat: DecimalFormat;
  log: Logger;
  /** Called with each batch after its changes were handed on. `hasLost`: other changes than those of the batch may exist. */
  onHanded(batch: JournalBatch, hasLost: boolean): void;
  /** Counts a change that was handed to this many subscriptions. */
  onDispatched?(type: string, subscriptions: number): void;
  /** Memory for the latest changes. */
  recentBytes: number;
}

/**
 * Hands the changes of the journal to the subscriptions of this process. The journal is read once for all clients, and each change is
 * encoded once.
 */
export class MarketHub {
  readonly categories: Categories;
  readonly rounds: WriteRounds<StreamClient>;
  readonly #options: HubOptions;
  readonly #recent: RecentFrames;
  readonly #byMarket = new Map<string, Set<Subscription>>();
  readonly #byVenue = new Map<string, Set<Subscription>>();
  /** All live and replaying subscriptions. */
  readonly #all = new Set<Subscription>();
  readonly #stopListening: () => void;
  #withCategory = 0;
  #head: JournalHead | undefined;
  #seq = 0;
  /** Batches that wait for the categories of their markets. */
  #queue: Promise<void> | undefined;
  #nextBatch: (() => void)[] = [];
  #isClosed = false;

  constructor(options: HubOptions, rounds: WriteRounds<StreamClient>) {
    this.#options = options;
    this.rounds = rounds;
    this.categories = new Categories(options.db);
    this.#recent = new RecentFrames(options.recentBytes);
    this.#stopListening = options.tail.on((batch) => this.#receive(batch));
  }

  /** The head of the last batch; undefined before the first. */
  get head(): JournalHead | undefined {
    return this.#head;
  }

  /** Every change up to this number was handed to the subscriptions. */
  get seq(): number {
    return this.#seq;
  }

  /** Whether the journal has no change that was not handed on, as of `checkedAt` of the head. */
  get isCaughtUp(): boolean {
    return this.#head?.seq === this.#seq;
  }

  /** Milliseconds since the journal was confirmed to be complete. */
  staleMs(): number {
    return this.#options.tail.staleMs();
  }

  add(subscription: Subscription): void {
    this.#all.add(subscription);
    if (subscription.filter.category !== undefined) this.#withCategory += 1;
    for (const [map, key] of this.#placesOf(subscription.filter)) {
      const set = map.get(key) ?? new Set();
      set.add(subscription);
      map.set(key, set);
    }
  }

  remove(subscription: Subscription): void {
    if (!this.#all.delete(subscription)) return;
    if (subscription.filter.category !== undefined) this.#withCategory -= 1;
    for (const [map, key] of this.#placesOf(subscription.filter)) {
      const set = map.get(key);
      set?.delete(subscription);
      if (set?.size === 0) map.delete(key);
    }
  }

  /** Up to `limit` changes after a number from memory; undefined when memory does not reach so far back. */
  recentAfter(seq: number, limit: number): readonly Frame[] | undefined {
    return this.#recent.after(seq, limit);
  }

  /** The message of a change of this epoch. */
  frameOf(change: Change): Frame {
    const { cursors, decimalFormat } = this.#options;
    return frameOf(change, { cursors, decimalFormat, epoch: this.#head?.epoch ?? '' });
  }

  /** Resolves when the next batch arrives, which shows that the database answers, or when the hub closes or is closed. */
  nextBatch(): Promise<void> {
    if (this.#isClosed) return Promise.resolve();
    return new Promise((resolve) => void this.#nextBatch.push(resolve));
  }

  close(): void {
    this.#isClosed = true;
    this.#stopListening();
    this.#releaseWaiting();
  }

  *#placesOf({ venues, marketIds }: Filter): Generator<[Map<string, Set<Subscription>>, string]> {
    for (const venue of venues) {
      if (marketIds === undefined) yield [this.#byVenue, venue];
      else for (const marketId of marketIds) yield [this.#byMarket, `${venue}\n${marketId}`];
    }
  }

  #receive(batch: JournalBatch): void {
    this.#releaseWaiting();
    for (const change of batch.changes) this.categories.learn(change);
    const needsCategories = this.#withCategory > 0 && this.categories.lacks(batch.changes);
    if (!this.#queue && !needsCategories) {
      this.#dispatch(batch);
      return;
    }
    const before = this.#queue ?? Promise.resolve();
    const after = before.then(async () => {
      await this.#loadCategories(batch.changes);
      this.#dispatch(batch);
      if (this.#queue === after) this.#queue = undefined;
    });
    this.#queue = after;
  }

  /** Repeats until the database answers: without its category a change would reach the wrong subscriptions. */
  async #loadCategories(changes: readonly Change[]): Promise<void> {
    while (!this.#isClosed && this.categories.lacks(changes)) {
      try {
        await this.categories.load(changes);
      } catch (error) {
        this.#options.log.warn({ err: error }, 'categories of changed markets not read; will retry');
        await this.nextBatch();
      }
    }
  }

  #dispatch(batch: JournalBatch): void {
    const before = this.#head;
    const isNewEpoch = before !== undefined && before.epoch !== batch.head.epoch;
    this.#head = batch.head;
    if (isNewEpoch) {
      this.#recent.clear();
      try {
        this.#announceGap({ from: this.#seq + 1, to: batch.upTo, reason: 'epoch' }, batch.upTo);
      } catch (error) {
        // The next batch announces it again.
        this.#head = before;
        throw error;
      }
    } else if (batch.missed) {
      this.#recent.clear();
      this.#announceGap({ ...batch.missed, reason: 'expired' }, batch.missed.to);
    }
    for (const change of batch.changes) {
      const frame = this.frameOf(change);
      this.#recent.push(frame);
      if (frame.channels.length > 0) this.#hand(frame);
    }
    this.#seq = batch.upTo;
    this.#options.onHanded(batch, isNewEpoch || batch.missed !== undefined);
  }

  #hand(frame: Frame): void {
    let handed = 0;
    for (const subscription of this.#candidatesOf(frame)) {
      const { state, after, filter, client } = subscription;
      if (state !== 'live' || frame.seq <= after || !matches(filter, frame, this.categories.of)) continue;
      client.offer(frame, subscription);
      this.rounds.mark(client);
      handed += 1;
    }
    if (handed > 0) this.#options.onDispatched?.(frame.type, handed);
  }

  *#candidatesOf({ venue, marketId }: Frame): Generator<Subscription> {
    if (marketId === '') {
      yield* this.#all;
      return;
    }
    yield* this.#byVenue.get(venue) ?? [];
    yield* this.#byMarket.get(`${venue}\n${marketId}`) ?? [];
  }

  #announceGap(gap: { from: number; to: number; reason: 'epoch' | 'expired' }, seq: number): void {
    const { cursors, decimalFormat } = this.#options;
    const messages = new Map<string, Message>();
    for (const subscription of this.#all) {
      if (subscription.state !== 'live') continue;
      const { venue } = subscription.filter;
      const message =
        messages.get(venue) ??
        gapMessage({ ...gap, venue, head: this.#head as JournalHead, seq }, { cursors, decimalFormat });
      messages.set(venue, message);
      if (gap.reason === 'epoch') {
        subscription.after = 0;
        subscription.sent = 0;
      }
      subscription.client.push(message, subscription.id);
      this.rounds.mark(subscription.client);
    }
  }

  #releaseWaiting(): void {
    const waiting = this.#nextBatch;
    this.#nextBatch = [];
    for (const resolve of waiting) resolve();
  }
}

/**
 * The latest changes of the journal, so that a client that reconnects after a short loss costs no database query. Bounded by its bytes,
 * which does not grow with the number of clients.
 */
class RecentFrames {
  readonly #maxBytes: number;
  #frames: Frame[] = [];
  /** The index of the oldest kept frame; the earlier ones are dropped in blocks. */
  #start = 0;
  #bytes = 0;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** Adds the next change. */
  push(frame: Frame): void {
    this.#frames.push(frame);
    this.#bytes += bytesOf(frame);
    while (this.#bytes > this.#maxBytes && this.#start < this.#frames.length) {
      this.#bytes -= bytesOf(this.#frames[this.#start] as Frame);
      this.#start += 1;
    }
    if (this.#start > 1_024 && this.#start * 2 > this.#frames.length) {
      this.#frames = this.#frames.slice(this.#start);
      this.#start = 0;
    }
  }

  clear(): void {
    this.#frames = [];
    this.#start = 0;
    this.#bytes = 0;
  }

  /** Up to `limit` changes after a number. Undefined when it does not have all of them. */
  after(seq: number, limit: number): readonly Frame[] | undefined {
    const oldest = this.#frames[this.#start];
    if (!oldest || seq < oldest.seq - 1) return undefined;
    // The numbers have no holes.
    const from = this.#start + Math.max(0, seq + 1 - oldest.seq);
    return this.#frames.slice(from, from + limit);
  }
}

function bytesOf({ head, data }: Frame): number {
  return 2 * (head.length + data.length) + 300;
}
