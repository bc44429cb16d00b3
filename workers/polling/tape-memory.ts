import { oncePerVenue } from '../../src/store/db/batcher.ts';
import { positionText } from '../../src/store/db/leases.ts';
import type { TapeKnowledge, TapePage } from '../../src/venues/port.ts';

/** Ids of a generation, and its length. Two are kept, so at most 300,000 ids of a venue, which take about 30 MB. */
const MAX_IDS = 150_000;
/** Above the reach of an overlap: what it repeats is known, except at rates that fill generations faster. */
const GENERATION_MS = 180_000;

/**
 * What a process knows of the tape of a venue: the position that it stored last, and the ids of the trades that it stored lately. It may
 * know too little, and Postgres then finds the repeated trades. It never knows a trade that is not stored: a page counts after its commit,
 * and everything is forgotten when the stored position is another one, because another process took over or the database was restored.
 */
export class TapeMemory {
  #ids = new Set<string>();
  #formerIds = new Set<string>();
  #bornMs = Number.NEGATIVE_INFINITY;
  #position: unknown = null;
  #isContinued = false;
  #isLosing = false;

  /** Begins a tick at the stored position. */
  begin(position: unknown): void {
    if (position === null || positionText(position) !== positionText(this.#position)) {
      this.#isContinued = false;
      this.#ids.clear();
      this.#formerIds.clear();
    }
    if (this.#isLosing) this.#isContinued = false;
  }

  /** A poll failed: late trades are looked for at the next walk. */
  fail(): void {
    this.#isContinued = false;
  }

  /** The trade feed of the venue loses trades, or does not any more: late trades are looked for in each tick, or when they are due. */
  note(isLosing: boolean): void {
    this.#isLosing = isLosing;
  }

  /** A page was committed. `isWhole`: Postgres refused none of its trades. */
  committed({ position, records }: TapePage, isWhole: boolean, nowMs: number): void {
    this.#position = position;
    this.#isContinued = true;
    if (!isWhole) return;
    for (const { tradeId } of records) {
      if (this.has(tradeId)) continue;
      if (this.#ids.size >= MAX_IDS || nowMs - this.#bornMs >= GENERATION_MS || nowMs < this.#bornMs) {
        this.#formerIds = this.#ids;
        this.#ids = new Set();
        this.#bornMs = nowMs;
      }
      this.#ids.add(tradeId);
    }
  }

  /** Whether a trade is known to be stored. */
  has(tradeId: string): boolean {
    return this.#ids.has(tradeId) || this.#formerIds.has(tradeId);
  }

  /** The number of ids. */
  get size(): number {
    return this.#ids.size + this.#formerIds.size;
  }

  /** The fields for the next read of the tape. */
  get knowledge(): TapeKnowledge {
    return { isStored: (tradeId) => this.has(tradeId), isContinued: this.#isContinued };
  }
}

/** The memory of the tape of a venue, one per process. */
export const tapeMemoryOf = oncePerVenue(() => new TapeMemory());
