import type { PriceRecord } from '../../src/domain/markets/market.ts';
import type { Decimal } from '../../src/domain/values/decimal.ts';
import type { Logger } from '../../src/observe/logger.ts';
import type { Database } from '../../src/store/db/tx.ts';
import { type ConfirmedPrice, confirmPrices, type KnownBlocks } from '../../src/store/prices/confirmations.ts';
import type { EqualPrice } from '../../src/store/prices/prices.ts';

/** A write touches most blocks of a venue, whether it confirms a hundred prices or ten thousand. */
const EVERY_MS = 5_000;

/** A quote that no sweep reads for as long as this, or twice as long, is forgotten: its market has ended. */
const KNOWN_FOR_MS = 600_000;

interface KnownQuote {
  readonly tokenId: bigint;
  readonly price: Decimal;
  readonly bid: Decimal | undefined;
  readonly ask: Decimal | undefined;
  /** The time of the stored quote, which identifies it, epoch milliseconds. */
  readonly storedMs: number;
  /** The latest answer with this quote, epoch milliseconds. */
  seenAtMs: number;
  /** The next write confirms it. */
  isPending: boolean;
  /** An answer had it since quotes were forgotten last. */
  isUsed: boolean;
}

/**
 * The confirmations of the pages of a process, or of one tick, written every 5 s and at the end. They need no lease: the store compares each
 * with its quote. A process that dies, or a write that fails, loses them, and these prices look older than they are until the next sweep.
 *
 * A quote that was equal to the stored one is known, and confirmed without a comparison in the database when it comes again. Another process
 * may have changed the stored one meanwhile. Then the next write of confirmations finds it, and the next price of this outcome is compared
 * again: so such a price is stored at most 5 s and a sweep late, while the database answers.
 */
export class PriceConfirmations {
  readonly #context: { readonly db: Database; readonly log: Logger };
  #pending: ConfirmedPrice[] = [];
  #pendingQuotes: KnownQuote[] = [];
  #timer: NodeJS.Timeout | undefined;
  #writing: Promise<void> = Promise.resolve();
  readonly #known = new Map<bigint, KnownQuote>();
  #forgottenAtMs = performance.now();
  readonly #blocks: KnownBlocks = new Map();

  constructor(context: { readonly db: Database; readonly log: Logger }) {
    this.#context = context;
  }

  /** Confirms the prices of these outcomes whose quotes are known, and returns the others, also those of other outcomes. */
  confirmKnown<R extends PriceRecord>(records: readonly R[], tokenIdOf: ReadonlyMap<string, bigint>): R[] {
    return records.filter((record) => {
      const tokenId = tokenIdOf.get(record.outcomeId);
      const known = tokenId === undefined ? undefined : this.#known.get(tokenId);
      const { asOfMs, seenAtMs = asOfMs } = record;
      if (known === undefined || !isSameQuote(known, record)) return true;
      // A price that is not later than the stored one leads to no confirmation, whose write would find another stored quote.
      if (asOfMs < known.storedMs || seenAtMs <= known.storedMs) return true;
      this.#confirm(known, seenAtMs);
      return false;
    });
  }

  /** Confirms prices that the database found equal to the stored ones, and knows their quotes from now on. */
  confirm(equal: readonly EqualPrice[]): void {
    for (const { price: record, storedAsOf } of equal) {
      const { tokenId, price, bid, ask, asOfMs, seenAtMs = asOfMs } = record;
      const former = this.#known.get(tokenId);
      const storedMs = storedAsOf.getTime();
      let known = former;
      if (former?.storedMs !== storedMs) {
        if (former) former.isPending = false;
        known = { tokenId, price, bid, ask, storedMs, seenAtMs, isPending: false, isUsed: true };
        this.#known.set(tokenId, known);
      }
      if (known && seenAtMs > storedMs) this.#confirm(known, seenAtMs);
    }
  }

  /** The next prices of these outcomes are compared with the database. */
  forget(tokenIds: readonly bigint[]): void {
    for (const tokenId of tokenIds) this.#known.delete(tokenId);
  }

  #confirm(known: KnownQuote, seenAtMs: number): void {
    known.seenAtMs = Math.max(known.seenAtMs, seenAtMs);
    known.isUsed = true;
    if (known.isPending) return;
    known.isPending = true;
    this.#pendingQuotes.push(known);
    this.#writeLater();
  }

  /** Adds the confirmations of a committed page, in any order of pages. */
  add(confirmed: readonly ConfirmedPrice[]): void {
    if (confirmed.length === 0) return;
    this.#pending.push(...confirmed);
    this.#writeLater();
  }

  #writeLater(): void {
    this.#timer ??= setTimeout(() => void this.flush(), EVERY_MS).unref();
  }

  /** Writes everything added so far. Never rejects. */
  flush(): Promise<void> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#writing = this.#writing.then(() => this.#write());
    return this.#writing;
  }

  async #write(): Promise<void> {
    const { db, log } = this.#context;
    const confirmed = [...this.#pending, ...takePending(this.#pendingQuotes)];
    this.#pending = [];
    this.#pendingQuotes = [];
    this.#forgetUnread();
    if (confirmed.length === 0) return;
    try {
      this.forget(await confirmPrices(db, confirmed, this.#blocks));
    } catch (error) {
      log.warn({ err: error, prices: confirmed.length }, 'price confirmations not stored');
    }
  }

  #forgetUnread(): void {
    const nowMs = performance.now();
    if (nowMs - this.#forgottenAtMs < KNOWN_FOR_MS) return;
    this.#forgottenAtMs = nowMs;
    for (const [tokenId, known] of this.#known) {
      if (!known.isUsed) this.#known.delete(tokenId);
      known.isUsed = false;
    }
  }
}

/** The confirmations of these quotes; those that another quote replaced have none. */
function takePending(quotes: readonly KnownQuote[]): ConfirmedPrice[] {
  return quotes.flatMap((known) => {
    if (!known.isPending) return [];
    known.isPending = false;
    return [{ tokenId: known.tokenId, asOfMs: known.seenAtMs, storedAsOf: new Date(known.storedMs) }];
  });
}

function isSameQuote(one: KnownQuote, other: PriceRecord): boolean {
  return one.price === other.price && one.bid === other.bid && one.ask === other.ask;
}
