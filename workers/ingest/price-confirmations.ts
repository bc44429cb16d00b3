import type { Logger } from '../../src/observe/logger.ts';
import type { Database } from '../../src/store/db/tx.ts';
import { type ConfirmedPrice, confirmPrices } from '../../src/store/prices/checks.ts';

/** A write touches most blocks of a venue, whether it confirms a hundred prices or ten thousand. */
const EVERY_MS = 5_000;

/**
 * The confirmations of the pages of a process, or of one tick, written every 5 s and at the end. They need no lease: the store compares each
 * with its quote. A process that dies, or a write that fails, loses them, and these prices look older than they are until the next sweep.
 */
export class PriceConfirmations {
  readonly #context: { readonly db: Database; readonly log: Logger };
  #pending = new Map<bigint, ConfirmedPrice>();
  #timer: NodeJS.Timeout | undefined;
  #writing: Promise<void> = Promise.resolve();

  constructor(context: { readonly db: Database; readonly log: Logger }) {
    this.#context = context;
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
    if (confirmed.length === 0) return;
    await confirmPrices(db, confirmed).catch((error: unknown) =>
      log.warn({ err: error, prices: confirmed.length }, 'price confirmations not stored'),
    );
  }
}
