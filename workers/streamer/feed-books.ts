import type { BookRecord, PriceRecord } from '../../src/domain/markets/market.ts';
import type { FeedBatch } from '../ingest/price-store.ts';
import type { FollowedMarkets } from './followed-markets.ts';

/** The whole book of an outcome of a followed market is stored at most this often. */
const FOLLOWED_EVERY_MS = 1_000;
/**
 * That of another market is stored at most this often: the default interval of the polls, so that a feed does not store more of a book
 * without readers than the polls do. Quotes are stored at once in any case.
 */
const EVERY_MS = 5_000;
/** A changed book of a followed market is stored within this time of its turn. */
const LOOK_EVERY_MS = 100;
/** The same of other markets, which share a transaction. */
const LOOK_UNFOLLOWED_EVERY_MS = 1_000;
const BOOKS_AT_ONCE = 100;
/** The wait after a failed write. */
const RETRY_MS = 250;

interface ChangedBook {
  readonly outcome: FeedOutcome;
  readonly changedAtMs: number;
  readonly read: () => BookRecord | undefined;
}

interface BooksOptions {
  /** Epoch milliseconds. */
  readonly now: () => number;
  readonly followed: Pick<FollowedMarkets, 'has'>;
  readonly store: (books: readonly Pending<BookRecord>[]) => Promise<void>;
  readonly onStored: () => void;
  readonly onFailed: (error: unknown) => void;
}

/**
 * When the changed books of a feed are stored. A book that waits is read at its turn, so that only its newest state is stored. A process that
 * dies loses the books that wait: the next owner of the part begins with snapshots.
 */
export class FeedBooks {
  readonly #options: BooksOptions;
  readonly #waiting = new Map<bigint, ChangedBook>();
  readonly #stored = new Map<bigint, { atMs: number; asOfMs: number }>();
  /** Runs while books wait: at rest it would be most of the wake-ups of a process. */
  #timer: NodeJS.Timeout | undefined;
  #lookedAtMs = Number.NEGATIVE_INFINITY;
  #failedAtMs = Number.NEGATIVE_INFINITY;
  #storing: Promise<void> | undefined;
  #isStopped = false;

  constructor(options: BooksOptions) {
    this.#options = options;
  }

  /** The book of an outcome changed; `read` returns the present one when it is stored. */
  changed(outcome: FeedOutcome, read: () => BookRecord | undefined): void {
    this.#waiting.set(outcome.tokenId, { outcome, changedAtMs: this.#options.now(), read });
    if (!this.#isStopped) this.#timer ??= setInterval(() => this.#look(), LOOK_EVERY_MS);
  }

  /** Forgets an outcome without a subscription. */
  forget(tokenId: bigint): void {
    this.#waiting.delete(tokenId);
    this.#stored.delete(tokenId);
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    clearInterval(this.#timer);
    await this.#storing;
  }

  #look(): void {
    if (this.#storing !== undefined) return;
    if (this.#waiting.size === 0) {
      clearInterval(this.#timer);
      this.#timer = undefined;
      return;
    }
    const { now, followed, onStored, onFailed } = this.#options;
    const nowMs = now();
    if (Math.abs(nowMs - this.#failedAtMs) < RETRY_MS) return;
    const sinceLookMs = Math.abs(nowMs - this.#lookedAtMs);
    const urgent: ChangedBook[] = [];
    const others: ChangedBook[] = [];
    for (const book of this.#waiting.values()) {
      const { tokenId, marketPk } = book.outcome;
      const isFollowed = followed.has(marketPk);
      const storedAtMs = this.#stored.get(tokenId)?.atMs ?? Number.NEGATIVE_INFINITY;
      if (Math.abs(nowMs - storedAtMs) < (isFollowed ? FOLLOWED_EVERY_MS : EVERY_MS)) continue;
      (isFollowed ? urgent : others).push(book);
    }
    const due = [...urgent, ...others];
    if (due.length === 0 || (urgent.length === 0 && sinceLookMs < LOOK_UNFOLLOWED_EVERY_MS)) return;
    // The rest of many books follows at the next look.
    if (due.length <= BOOKS_AT_ONCE) this.#lookedAtMs = nowMs;
    const some = due.slice(0, BOOKS_AT_ONCE);
    this.#storing = this.#store(some, nowMs)
      .then(onStored)
      .catch((error: unknown) => {
        for (const book of some)
          if (!this.#waiting.has(book.outcome.tokenId)) this.#waiting.set(book.outcome.tokenId, book);
        this.#lookedAtMs = Number.NEGATIVE_INFINITY;
        this.#failedAtMs = now();
        onFailed(error);
      })
      .finally(() => {
        this.#storing = undefined;
      });
  }

  async #store(due: readonly ChangedBook[], nowMs: number): Promise<void> {
    const pending = due.flatMap(({ outcome, changedAtMs, read }): Pending<BookRecord>[] => {
      this.#waiting.delete(outcome.tokenId);
      const book = read();
      if (book === undefined) return [];
      // Some sessions date a book by its quote, which a deeper level does not change.
      const lastMs = this.#stored.get(outcome.tokenId)?.asOfMs ?? 0;
      const asOfMs = book.asOfMs > lastMs ? book.asOfMs : Math.max(changedAtMs, lastMs + 1);
      return [{ outcome, record: { ...book, asOfMs } }];
    });
    if (pending.length === 0) return;
    await this.#options.store(pending);
    for (const { outcome, record } of pending) {
      this.#stored.set(outcome.tokenId, { atMs: nowMs, asOfMs: record.asOfMs });
    }
  }
}

/** An outcome of a feed. */
export interface FeedOutcome {
  readonly outcomeId: string;
  readonly tokenId: bigint;
  readonly marketPk: bigint;
  readonly part: number;
}

/** A record of an outcome that waits for the database. */
export interface Pending<R> {
  readonly outcome: FeedOutcome;
  readonly record: R;
}

/** The batch of these records. */
export function batchOf<R extends PriceRecord | BookRecord>(pending: readonly Pending<R>[]): FeedBatch<R> {
  return {
    records: pending.map(({ record }) => record),
    rejected: [],
    tokenIdOf: new Map(pending.map(({ outcome }) => [outcome.outcomeId, outcome.tokenId])),
    partOf: new Map(pending.map(({ outcome }) => [outcome.outcomeId, outcome.part])),
  };
}
