import type { BookRecord } from '../../../domain/markets/market.ts';
import { compareDecimals, type Decimal } from '../../../domain/values/decimal.ts';
import { findContext, type HashContext, type WireBook, type WireLevel } from './hash.ts';
import { FeedLevels } from './levels.ts';

/** The book of a message; its levels are in any order. */
interface Snapshot {
  readonly timestamp: string;
  readonly bids: readonly WireLevel[];
  readonly asks: readonly WireLevel[];
}

/** A hash that the book did not reproduce yet. */
interface Mismatch {
  hash: string;
  /** Arrival of the first mismatch since the last match, epoch milliseconds. */
  readonly sinceMs: number;
  /** Prices of the last trade that do not explain the hash of the present book. */
  readonly tried: Set<string>;
}

/** A snapshot without a hash, or with one that no known context explains, is `unverified`. */
type Verdict = 'match' | 'mismatch' | 'unverified';

/** The book of one token: a snapshot, and the deltas since then. */
export class FeedBook {
  readonly #market: string;
  readonly #tokenId: string;
  readonly #bids = new FeedLevels(false);
  readonly #asks = new FeedLevels(true);
  #timestamp: string;
  #context: HashContext | undefined;
  #mismatch: Mismatch | undefined;

  constructor(market: string, tokenId: string, snapshot: Snapshot) {
    this.#market = market;
    this.#tokenId = tokenId;
    this.#timestamp = snapshot.timestamp;
    for (const level of snapshot.bids) this.#bids.put(level);
    for (const level of snapshot.asks) this.#asks.put(level);
  }

  get timestampMs(): number {
    return Number(this.#timestamp);
  }

  get context(): HashContext | undefined {
    return this.#context;
  }

  get mismatchSinceMs(): number | undefined {
    return this.#mismatch?.sinceMs;
  }

  get best(): { bid?: Decimal; ask?: Decimal } {
    const bid = this.#bids.highest;
    const ask = this.#asks.lowest;
    return { ...(bid !== undefined && { bid }), ...(ask !== undefined && { ask }) };
  }

  /** False in the middle of a batch, and after a lost change. */
  get isConsistent(): boolean {
    const { bid, ask } = this.best;
    const isCrossed = bid !== undefined && ask !== undefined && compareDecimals(bid, ask) > 0;
    return this.#mismatch === undefined && !isCrossed;
  }

  /** Sets the total of a level; a size of zero deletes it. */
  apply(side: 'BUY' | 'SELL', level: WireLevel, timestamp: string): void {
    this.#timestamp = timestamp;
    this.#mismatch?.tried.clear();
    (side === 'BUY' ? this.#bids : this.#asks).put(level);
  }

  setTickSize(tickSize: string): void {
    if (this.#context) this.#context = { ...this.#context, tickSize };
    this.#mismatch?.tried.clear();
  }

  /** Finds the context under which the snapshot has its hash. Without one, the book cannot be verified. */
  identify(hash: string, candidates: Parameters<typeof findContext>[2]): boolean {
    this.#context = findContext(this.#wire(), hash, candidates);
    return this.#context !== undefined;
  }

  /** A snapshot that does not have its hash under the context of its token: it counts as a mismatch. */
  expect(hash: string, context: HashContext, nowMs: number): void {
    this.#context = context;
    this.#mismatch = { hash, sinceMs: nowMs, tried: new Set() };
  }

  /** Compares the book with the hash of its last change. A mismatch is remembered until a later hash matches. */
  verify(hash: string, lastTradePrices: readonly string[], nowMs: number): Verdict {
    return this.#compare(hash, lastTradePrices, nowMs, new Set());
  }

  /** Repeats a failed comparison, after the price of the market's last trade became known. */
  verifyAgain(lastTradePrices: readonly string[], nowMs: number): Verdict {
    if (this.#mismatch === undefined) return 'unverified';
    return this.#compare(this.#mismatch.hash, lastTradePrices, nowMs, this.#mismatch.tried);
  }

  #compare(hash: string, lastTradePrices: readonly string[], nowMs: number, tried: Set<string>): Verdict {
    const known = this.#context;
    if (known === undefined) return 'unverified';
    const untried = [known.lastTradePrice, ...lastTradePrices].filter((price) => !tried.has(price));
    const found =
      untried.length === 0 ? undefined : findContext(this.#wire(), hash, { known, lastTradePrices: untried });
    if (found === undefined) {
      for (const price of untried) tried.add(price);
      this.#mismatch = { hash, sinceMs: this.#mismatch?.sinceMs ?? nowMs, tried };
      return 'mismatch';
    }
    this.#context = found;
    this.#mismatch = undefined;
    return 'match';
  }

  toRecord(nowMs: number): BookRecord {
    const asOfMs = this.timestampMs;
    return {
      outcomeId: this.#tokenId,
      asOfMs,
      ...(asOfMs !== nowMs && { seenAtMs: nowMs }),
      bids: this.#bids.toRecords(),
      asks: this.#asks.toRecords(),
    };
  }

  #wire(): WireBook {
    return {
      market: this.#market,
      assetId: this.#tokenId,
      timestamp: this.#timestamp,
      bidsText: this.#bids.toText(),
      asksText: this.#asks.toText(),
    };
  }
}
