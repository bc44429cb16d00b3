import { setTimeout as delay } from 'node:timers/promises';
import type { BookRecord, PriceRecord, TradeRecord } from '../../src/domain/markets/market.ts';
import { VENUES, type VenueName } from '../../src/domain/markets/venue.ts';
import { FailureStreaks } from '../../src/observe/failures.ts';
import type { ProcessContext } from '../../src/runtime/process-context.ts';
import type { Tx } from '../../src/store/db/tx.ts';
import { heldParts } from '../../src/store/feeds/parts.ts';
import type { RecordKind, RejectedRecord } from '../../src/venues/port.ts';
import { type FeedBatch, feedBookStore, feedPriceStore } from '../ingest/price-store.ts';
import { type PageStore, storePage, type Written } from '../ingest/store-page.ts';
import { rejectUntimely, tradeStore } from '../ingest/trade-store.ts';
import { batchOf, FeedBooks, type FeedOutcome, type Pending } from './feed-books.ts';
import type { FollowedMarkets } from './followed-markets.ts';

/** A batch collects the changes of this time. */
const BATCH_MS = 4;
/** The wait after a failed write. */
const RETRY_MS = 250;
/** Trades that wait for the database; later ones are left to the polls. */
const MAX_TRADES = 20_000;
/** A flood of garbage must not delay prices: further rejections of a batch are counted only. */
const MAX_REJECTED = 100;

/** A write about a part, which is skipped when the streamer does not hold the part any more. It may run again. */
interface PartWrite {
  readonly part: number;
  readonly write: (tx: Tx) => Promise<void>;
  /** Called after the commit. */
  readonly onStored?: () => void;
}

interface WriterOptions {
  readonly deps: ProcessContext;
  readonly venue: VenueName;
  readonly streamer: string;
  readonly followed: FollowedMarkets;
}

/**
 * Writes the changes of one venue's feed, batch after batch. While the database is away, the newest quote of each outcome waits. What is
 * announced after a quote, such as the end of a gap, is stored after it.
 */
export class FeedWriter {
  readonly #deps: ProcessContext;
  readonly #venue: VenueName;
  readonly #streamer: string;
  readonly #prices: PageStore<PriceRecord, Written, FeedBatch<PriceRecord>>;
  readonly #bookStore: PageStore<BookRecord, Written, FeedBatch<BookRecord>>;
  readonly #tradeStore: PageStore<TradeRecord, Written>;
  readonly #streaks = new FailureStreaks();
  #quotes = new Map<bigint, Pending<PriceRecord>>();
  readonly #books: FeedBooks;
  #trades: TradeRecord[] = [];
  #rejected: RejectedRecord[] = [];
  #writes: PartWrite[] = [];
  #timer: NodeJS.Timeout | undefined;
  #running: Promise<void> | undefined;
  #isStopped = false;
  #isFailing = false;

  constructor({ deps, venue, streamer, followed }: WriterOptions) {
    this.#deps = deps;
    this.#venue = venue;
    this.#streamer = streamer;
    const options = { deps, venue, streamer };
    this.#prices = feedPriceStore(options);
    this.#bookStore = feedBookStore(options);
    this.#tradeStore = tradeStore(deps, VENUES[venue]);
    this.#books = new FeedBooks({
      now: deps.now,
      followed,
      store: (books) => this.#storeBooks(books),
      onStored: () => void this.#streaks.succeeded('books'),
      onFailed: (error) => this.#failed('books', error),
    });
  }

  /** Whether changes wait because the last write of quotes, trades and gaps failed. */
  get isFailing(): boolean {
    return this.#isFailing;
  }

  quote(outcome: FeedOutcome, record: PriceRecord): void {
    this.#quotes.set(outcome.tokenId, { outcome, record });
    this.#schedule();
  }

  /** The book of an outcome changed; `read` returns the present one when it is written. */
  book(outcome: FeedOutcome, read: () => BookRecord | undefined): void {
    this.#books.changed(outcome, read);
  }

  /** False when too many trades wait: a poll must read this one. */
  trade(record: TradeRecord): boolean {
    if (this.#trades.length >= MAX_TRADES) return false;
    this.#trades.push(record);
    this.#schedule();
    return true;
  }

  reject(rejected: readonly RejectedRecord[]): void {
    const { metrics } = this.#deps;
    const kept = rejected.slice(0, Math.max(0, MAX_REJECTED - this.#rejected.length));
    this.#rejected.push(...kept);
    for (const { kind, reason } of rejected.slice(kept.length)) {
      this.#received(kind, 1);
      metrics.rejectedRecords.inc({ venue: this.#venue, kind, reason });
    }
    this.#schedule();
  }

  /** A write that follows the quotes before it. */
  after(write: PartWrite): void {
    this.#writes.push(write);
    this.#schedule();
  }

  /** Forgets an outcome without a subscription. */
  forget(tokenId: bigint): void {
    this.#books.forget(tokenId);
  }

  /** Writes everything that waits, if the database answers. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    clearTimeout(this.#timer);
    await this.#running;
    await this.#books.stop();
    await this.#flush().catch((error: unknown) => this.#failed('last', error));
    await this.#prices.end?.();
  }

  #schedule(): void {
    if (this.#timer !== undefined || this.#running !== undefined || this.#isStopped) return;
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      this.#running = this.#work().finally(() => {
        this.#running = undefined;
        if (this.#hasWork()) this.#schedule();
      });
    }, BATCH_MS);
  }

  #hasWork(): boolean {
    return this.#quotes.size + this.#trades.length + this.#rejected.length + this.#writes.length > 0;
  }

  async #work(): Promise<void> {
    try {
      await this.#flush();
      this.#streaks.succeeded('write');
    } catch (error) {
      this.#failed('write', error);
      await delay(RETRY_MS, undefined, { ref: false });
    }
  }

  #failed(what: string, error: unknown): void {
    // The error may be a partition that was dropped after this process had seen it.
    this.#deps.partitions.forget();
    const { inARow, shouldLog } = this.#streaks.failed(what);
    const line = { venue: this.#venue, err: error, inARow };
    const message =
      what === 'last'
        ? 'last changes of a feed not stored: its next reader begins with a gap'
        : 'changes of a feed not stored; will retry';
    this.#deps.log[shouldLog ? 'warn' : 'debug'](line, message);
  }

  async #flush(): Promise<void> {
    const { metrics, now } = this.#deps;
    const origin = { venue: this.#venue };
    const quotes = this.#quotes;
    const trades = this.#trades;
    const rejected = this.#rejected;
    const writes = this.#writes;
    this.#quotes = new Map();
    this.#trades = [];
    this.#rejected = [];
    this.#writes = [];
    try {
      if (quotes.size > 0 || rejected.length > 0) {
        const pending = [...quotes.values()];
        const batch = { ...batchOf(pending), rejected };
        this.#received('prices', batch.records.length);
        for (const { kind } of rejected) this.#received(kind, 1);
        await storePage(this.#deps, this.#prices, batch, origin);
        const storedMs = now();
        for (const { record } of pending) {
          const { seenAtMs = record.asOfMs } = record;
          metrics.feedWrite.observe({ venue: this.#venue }, Math.max(0, storedMs - seenAtMs) / 1000);
        }
      }
      if (trades.length > 0) {
        const batch = { records: trades, rejected: [] };
        this.#received('trades', trades.length);
        await storePage(this.#deps, this.#tradeStore, rejectUntimely(this.#deps, batch), origin);
      }
      if (writes.length > 0) await this.#writeParts(writes);
      this.#isFailing = false;
    } catch (error) {
      this.#isFailing = true;
      // Every write may run again. A quote that changed meanwhile is the newer one.
      this.#quotes = new Map([...quotes, ...this.#quotes]);
      this.#trades = [...trades, ...this.#trades];
      this.#rejected = [...rejected, ...this.#rejected];
      this.#writes = [...writes, ...this.#writes];
      throw error;
    }
  }

  #received(kind: RecordKind, records: number): void {
    this.#deps.metrics.receivedRecords.inc({ venue: this.#venue, kind }, records);
  }

  async #writeParts(writes: readonly PartWrite[]): Promise<void> {
    const parts = [...new Set(writes.map(({ part }) => part))];
    await this.#deps.db.transaction(async (tx) => {
      const ours = await heldParts(tx, this.#streamer, this.#venue, parts);
      for (const { part, write } of writes) if (ours.has(part)) await write(tx);
    });
    for (const { onStored } of writes) onStored?.();
  }

  async #storeBooks(pending: readonly Pending<BookRecord>[]): Promise<void> {
    this.#received('books', pending.length);
    await storePage(this.#deps, this.#bookStore, batchOf(pending), { venue: this.#venue });
  }
}
