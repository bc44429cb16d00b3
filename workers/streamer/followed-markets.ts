import { followedMarkets } from '../../src/store/alerts/candidates.ts';
import type { Queryable } from '../../src/store/db/tx.ts';

/** A market counts as followed for so long after a look that found it so. */
const KNOWN_FOR_MS = 10_000;
/** It is looked up again before that time is over. */
const RENEW_BEFORE_MS = 5_000;

/** The followed ones of the markets with changed books. One statement per look answers for all venues, and only for these markets. */
export class FollowedMarkets {
  readonly #now: () => number;
  #asked = new Set<bigint>();
  readonly #until = new Map<bigint, number>();

  /** `now`: milliseconds of a monotonic clock. */
  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
  }

  /** Whether the market is known to be followed. The next look answers for one that is not, or not for much longer. */
  has(marketPk: bigint): boolean {
    const leftMs = (this.#until.get(marketPk) ?? Number.NEGATIVE_INFINITY) - this.#now();
    if (leftMs < RENEW_BEFORE_MS) this.#asked.add(marketPk);
    return leftMs > 0;
  }

  /** Looks up the markets that `has` was called for since the last look. After a failure they count as before. */
  async look(db: Queryable): Promise<void> {
    const nowMs = this.#now();
    for (const [marketPk, untilMs] of this.#until) if (untilMs <= nowMs) this.#until.delete(marketPk);
    if (this.#asked.size === 0) return;
    const asked = [...this.#asked];
    this.#asked = new Set();
    for (const marketPk of await followedMarkets(db, asked)) this.#until.set(marketPk, nowMs + KNOWN_FOR_MS);
  }
}
