import type { Logger } from '../../src/observe/logger.ts';
import type { Database } from '../../src/store/db/tx.ts';
import { type ConfirmedPrice, confirmPrices } from '../../src/store/prices/checks.ts';
import type { EqualPrice, TokenPrice } from '../../src/store/prices/prices.ts';

/** A write touches most blocks of a venue, whether it confirms a hundred prices or ten thousand. */
const EVERY_MS = 5_000;

/** A quote that no sweep reads for as long as this, or twice as long, is forgotten: its market has ended. */
const KNOWN_FOR_MS = 600_000;

interface KnownQuote {
  text: string;
  storedAsOf: Date;
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
  #pending = new Map<bigint, ConfirmedPrice>();
  #timer: NodeJS.Timeout | undefined;
  #writing: Promise<void> = Promise.resolve();
  #known = new Map<bigint, KnownQuote>();
  /** The quotes of the time before. */
  #knownBefore = new Map<bigint, KnownQuote>();
  #knownSinceMs = performance.now();

  constructor(context: { readonly db: Database; readonly log: Logger }) {
    this.#context = context;
  }

  /** Confirms the prices whose quotes are known, and returns the others. */
  confirmKnown<P extends TokenPrice>(prices: readonly P[]): P[] {
    return prices.filter((price) => {
      const known = this.#known.get(price.tokenId) ?? this.#knownBefore.get(price.tokenId);
      // A price that is not later than the stored one leads to no confirmation, whose write would find another stored quote.
      const { asOfMs, seenAtMs = asOfMs } = price;
      if (known?.text !== textOf(price) || asOfMs < known.storedAsOf.getTime()) return true;
      if (seenAtMs <= known.storedAsOf.getTime()) return true;
      this.#confirm(price, known);
      return false;
    });
  }

  /** Confirms prices that the database found equal to the stored ones, and knows their quotes from now on. */
  confirm(equal: readonly EqualPrice[]): void {
    for (const { price, storedAsOf } of equal) this.#confirm(price, { text: textOf(price), storedAsOf });
  }

  /** The next prices of these outcomes are compared with the database. */
  forget(tokenIds: readonly bigint[]): void {
    for (const tokenId of tokenIds) {
      this.#known.delete(tokenId);
      this.#knownBefore.delete(tokenId);
    }
  }

  #confirm({ tokenId, asOfMs, seenAtMs = asOfMs }: TokenPrice, known: KnownQuote): void {
    this.#known.set(tokenId, known);
    const { storedAsOf } = known;
    if (seenAtMs > storedAsOf.getTime()) this.add([{ tokenId, asOfMs: seenAtMs, storedAsOf }]);
  }

  /** Adds the confirmations of a committed page, in any order of pages. */
  add(confirmed: readonly ConfirmedPrice[]): void {
    for (const one of confirmed) {
      const known = this.#pending.get(one.tokenId);
      if (known === undefined || known.asOfMs <= one.asOfMs) this.#pending.set(one.tokenId, one);
    }
    if (confirmed.length > 0) this.#timer ??= setTimeout(() => void this.flush(), EVERY_MS).unref();
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
    const confirmed = [...this.#pending.values()];
    this.#pending = new Map();
    this.#forgetUnread();
    if (confirmed.length === 0) return;
    try {
      this.forget(await confirmPrices(db, confirmed));
    } catch (error) {
      log.warn({ err: error, prices: confirmed.length }, 'price confirmations not stored');
    }
  }

  #forgetUnread(): void {
    const nowMs = performance.now();
    if (nowMs - this.#knownSinceMs < KNOWN_FOR_MS) return;
    this.#knownSinceMs = nowMs;
    this.#knownBefore = this.#known;
    this.#known = new Map();
  }
}

function textOf({ price, bid, ask }: TokenPrice): string {
  return `${price} ${bid ?? ''} ${ask ?? ''}`;
}
