import type { Logger } from '../../src/observe/logger.ts';
import type { Queryable } from '../../src/store/db/tx.ts';
import { type CheckBlock, placeOf, readChangedChecks } from '../../src/store/prices/checks.ts';
import type { JournalView } from './journal-view.ts';

/** Confirmations of quotes appear in answers this long after their commit, and the time until the journal confirms them. */
const READ_EVERY_MS = 300;
/** The same after a time without an answer that shows a quote: the first one may show a confirmation so much later. */
const IDLE_READ_EVERY_MS = 2_000;
const IDLE_AFTER_MS = 10_000;

interface QuoteChecksOptions {
  db: Queryable;
  journal: JournalView;
  log: Logger;
  /** Milliseconds of a monotonic clock. */
  now?: () => number;
}

/**
 * When the venue last confirmed each unchanged quote. Sweeps confirm most quotes several times per minute, so confirmations are not in the
 * journal; this process reads changed blocks of them.
 *
 * A confirmation may belong to a quote that is not in the journal yet, and must not confirm the former quote. So a read takes effect when
 * the journal is confirmed at a later moment than the read: then every quote that the read could mean is in memory.
 */
export class QuoteChecks {
  readonly #options: QuoteChecksOptions;
  readonly #now: () => number;
  readonly #versions = new Map<bigint, string>();
  readonly #checked = new Map<bigint, Int32Array>();
  #pending: CheckBlock[][] = [];
  #readAtMs = Number.NEGATIVE_INFINITY;
  #askedAtMs = Number.NEGATIVE_INFINITY;
  #isReading = false;
  #hasFailed = false;
  /** Counts losses of the journal: a read that began before one is discarded. */
  #generation = 0;

  constructor(options: QuoteChecksOptions) {
    this.#options = options;
    this.#now = options.now ?? (() => performance.now());
    options.journal.onReset(() => this.#forget());
    options.journal.onConfirmed((checkedAt) => {
      this.#apply(checkedAt);
      void this.#read();
    });
  }

  /** Epoch seconds; 0 without a known confirmation. */
  of(tokenId: bigint): number {
    this.#askedAtMs = this.#now();
    const { block, place } = placeOf(tokenId);
    return this.#checked.get(block)?.[place] ?? 0;
  }

  get bytes(): number {
    return this.#checked.size * 1_200;
  }

  #forget(): void {
    this.#generation += 1;
    this.#versions.clear();
    this.#checked.clear();
    this.#pending = [];
  }

  #apply(checkedAt: Date): void {
    const later = this.#pending.findIndex(([first]) => first !== undefined && first.readAt > checkedAt);
    const ripe = this.#pending.splice(0, later < 0 ? this.#pending.length : later);
    for (const { block, checked } of ripe.flat()) this.#checked.set(block, Int32Array.from(checked));
  }

  async #read(): Promise<void> {
    const { db, log } = this.#options;
    const nowMs = this.#now();
    const everyMs = nowMs - this.#askedAtMs < IDLE_AFTER_MS ? READ_EVERY_MS : IDLE_READ_EVERY_MS;
    if (this.#isReading || nowMs - this.#readAtMs < everyMs) return;
    this.#isReading = true;
    this.#readAtMs = nowMs;
    const generation = this.#generation;
    try {
      const blocks = await readChangedChecks(db, this.#versions);
      if (generation !== this.#generation) return;
      for (const { block, version } of blocks) this.#versions.set(block, version);
      // The rows of one statement have slightly different clocks; the last one is after the snapshot of all.
      const readAt = new Date(Math.max(...blocks.map((each) => each.readAt.getTime())));
      if (blocks.length > 0) this.#pending.push(blocks.map((each) => ({ ...each, readAt })));
      this.#hasFailed = false;
    } catch (error) {
      log[this.#hasFailed ? 'debug' : 'warn']({ err: error }, 'confirmations of quotes not read; will retry');
      this.#hasFailed = true;
    } finally {
      this.#isReading = false;
    }
  }
}
