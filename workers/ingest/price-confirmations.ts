import { type ConfirmedPrice, confirmPrices } from '../../src/store/prices/checks.ts';
import type { IngestDeps } from './store-page.ts';

/** A write touches most blocks of a venue, whether it confirms a hundred prices or ten thousand. */
const EVERY_MS = 5_000;

/**
 * The confirmations of the pages of one tick, written every 5 s and at its end. They need no lease: the store compares each with its quote.
 * A process that dies, or a write that fails, loses them, and these prices look older than they are until the next sweep.
 */
export class PriceConfirmations {
  readonly #context: Pick<IngestDeps, 'db' | 'log'>;
  readonly #now: () => number;
  #pending = new Map<bigint, ConfirmedPrice>();
  #lastMs: number;
  #writing: Promise<void> = Promise.resolve();

  constructor(context: Pick<IngestDeps, 'db' | 'log'>, now: () => number = () => performance.now()) {
    this.#context = context;
    this.#now = now;
    this.#lastMs = now();
  }

  /** Adds the confirmations of a committed page, in any order of pages. */
  add(confirmed: readonly ConfirmedPrice[]): void {
    for (const one of confirmed) {
      const known = this.#pending.get(one.tokenId);
      if (known === undefined || known.asOfMs <= one.asOfMs) this.#pending.set(one.tokenId, one);
    }
    if (this.#now() - this.#lastMs < EVERY_MS) return;
    this.#lastMs = this.#now();
    void this.flush();
  }

  /** Writes everything added so far. Never rejects. */
  flush(): Promise<void> {
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
