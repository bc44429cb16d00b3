import { boundedCache } from '../../domain/values/caches.ts';
import { ORIGIN, type Queryable, sql } from '../db/tx.ts';

const DATABASE_NOW = sql(
  'database_now',
  `SELECT ${ORIGIN} AS origin, (extract(epoch FROM clock_timestamp()) * 1000)::float8 AS now_ms`,
);

/** The extremes of the prices of an outcome, with the price before them. */
export interface KnownPrices {
  /** They contain every observation since this time, epoch milliseconds, */
  fromMs: number;
  /** except later ones, which were received at this time or after it. */
  untilMs: number;
  low: number;
  high: number;
}

const MAX_OUTCOMES = 100_000;
/** A known range may begin before its window by this part of it. Beyond, it would name too many rules. */
const EXCESS = 0.25;
/** The database clock may be this late compared with that of the process. Beyond, it was set back. */
const TOLERANCE_MS = 1_000;

/** The known prices of outcomes, in one database. */
export class KnownWindows {
  readonly #known = boundedCache<KnownPrices>(MAX_OUTCOMES);

  /** The prices of a window of `seconds` since `startMs`. */
  find(tokenId: bigint, startMs: number, seconds: number): KnownPrices | undefined {
    const known = this.#known.get(String(tokenId));
    if (!known || known.fromMs > startMs || startMs - known.fromMs > seconds * 1_000 * EXCESS) return undefined;
    return known;
  }

  /** Adds an outcome. The caller changes its known prices in place. */
  keep(tokenId: bigint, known: KnownPrices): void {
    this.#known.set(String(tokenId), known);
  }
}

/**
 * Remembers the extremes of windows in one process, so that an evaluation reads the observations since the last one, and not a day of them.
 * Observations of an outcome are numbered and stamped under a lock that their writer holds until its commit (see `lockOutcomes`): each one
 * that becomes visible later has a time at or after all visible ones. So it does not matter which process evaluated others meanwhile.
 */
export class WindowMemory {
  #windows = new KnownWindows();
  #origin = '';
  /** The most that the database clock was surely ahead of that of the process. */
  #offsetMs = 0;

  /** The known windows of this database. None are known after its replacement, and after its clock was set back. */
  async windowsOf(db: Queryable): Promise<KnownWindows> {
    const askedMs = performance.now();
    const [row] = await db.query<{ origin: string; nowMs: number }>(DATABASE_NOW);
    if (!row) throw new TypeError('the database has a clock');
    // Its clock was read between the question and the answer: a late answer does not look like a clock that was set back.
    const leastMs = row.nowMs - performance.now();
    if (row.origin !== this.#origin || row.nowMs - askedMs < this.#offsetMs - TOLERANCE_MS) {
      this.#windows = new KnownWindows();
      this.#origin = row.origin;
      this.#offsetMs = leastMs;
    }
    this.#offsetMs = Math.max(this.#offsetMs, leastMs);
    return this.#windows;
  }
}

/** Observations since this time may be missing in the known prices: a clock that was set back within the tolerance repeats some of them. */
export function firstUnknownMs({ untilMs }: KnownPrices): number {
  return untilMs - 2 * TOLERANCE_MS;
}
