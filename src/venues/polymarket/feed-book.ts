import type { BookRecord, PriceLevel } from '../../domain/markets/market.ts';
import { compareDecimals, type Decimal, parseDecimal } from '../../domain/values/decimal.ts';
import { findContext, type HashContext, type WireBook, type WireLevel } from './feed-hash.ts';

/** Levels by canonical price, each in the venue's own digits. */
type Side = Map<Decimal, WireLevel>;

/** A hash that the book did not reproduce yet. */
interface Mismatch {
  hash: string;
  /** Arrival of the first mismatch since the last match, epoch milliseconds. */
  readonly sinceMs: number;
}

/** A snapshot without a hash, or with one that no known context explains, is `unverified`. */
export type Verdict = 'match' | 'mismatch' | 'unverified';

/** The book of one token: a snapshot, and the deltas since then. */
export class FeedBook {
  readonly #market: string;
  readonly #tokenId: string;
  readonly #bids: Side = new Map();
  readonly #asks: Side = new Map();
  #timestamp: string;
  #context: HashContext | undefined;
  #mismatch: Mismatch | undefined;

  constructor(market: string, tokenId: string, snapshot: Omit<WireBook, 'market' | 'assetId'>) {
    this.#market = market;
    this.#tokenId = tokenId;
    this.#timestamp = snapshot.timestamp;
    for (const level of snapshot.bids) this.#put(this.#bids, level);
    for (const level of snapshot.asks) this.#put(this.#asks, level);
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
    const bid = extreme(this.#bids, 1);
    const ask = extreme(this.#asks, -1);
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
    this.#put(side === 'BUY' ? this.#bids : this.#asks, level);
  }

  setTickSize(tickSize: string): void {
    if (this.#context) this.#context = { ...this.#context, tickSize };
  }

  /** Finds the context under which the snapshot has its hash. Without one, the book cannot be verified. */
  identify(hash: string, candidates: Parameters<typeof findContext>[2]): boolean {
    this.#context = findContext(this.#wire(), hash, candidates);
    return this.#context !== undefined;
  }

  /** A snapshot that does not have its hash under the context of its token: it counts as a mismatch. */
  expect(hash: string, context: HashContext, nowMs: number): void {
    this.#context = context;
    this.#mismatch = { hash, sinceMs: nowMs };
  }

  /** Compares the book with the hash of its last change. A mismatch is remembered until a later hash matches. */
  verify(hash: string, lastTradePrices: readonly string[], nowMs: number): Verdict {
    const known = this.#context;
    if (known === undefined) return 'unverified';
    const found = findContext(this.#wire(), hash, {
      known,
      lastTradePrices: [known.lastTradePrice, ...lastTradePrices],
    });
    if (found === undefined) {
      this.#mismatch = { hash, sinceMs: this.#mismatch?.sinceMs ?? nowMs };
      return 'mismatch';
    }
    this.#context = found;
    this.#mismatch = undefined;
    return 'match';
  }

  /** Repeats a failed comparison, after the price of the market's last trade became known. */
  verifyAgain(lastTradePrices: readonly string[], nowMs: number): Verdict {
    return this.#mismatch === undefined ? 'unverified' : this.verify(this.#mismatch.hash, lastTradePrices, nowMs);
  }

  toRecord(nowMs: number): BookRecord {
    const asOfMs = this.timestampMs;
    return {
      outcomeId: this.#tokenId,
      asOfMs,
      ...(asOfMs !== nowMs && { seenAtMs: nowMs }),
      bids: records(this.#bids, -1),
      asks: records(this.#asks, 1),
    };
  }

  #put(side: Side, level: WireLevel): void {
    const price = parseDecimal(level.price);
    if (price === null) return;
    if (parseDecimal(level.size) === '0') side.delete(price);
    else side.set(price, level);
  }

  #wire(): WireBook {
    return {
      market: this.#market,
      assetId: this.#tokenId,
      timestamp: this.#timestamp,
      bids: sorted(this.#bids, 1).map(([, level]) => level),
      asks: sorted(this.#asks, -1).map(([, level]) => level),
    };
  }
}

/** `direction` 1 sorts rising, -1 falling. */
function sorted(side: Side, direction: 1 | -1): [Decimal, WireLevel][] {
  return [...side].sort(([a], [b]) => direction * (Number(a) - Number(b) || compareDecimals(a, b)));
}

function records(side: Side, direction: 1 | -1): PriceLevel[] {
  return sorted(side, direction).flatMap(([price, level]) => {
    const size = parseDecimal(level.size);
    return size === null ? [] : [{ price, size }];
  });
}

/** The highest price for 1, the lowest for -1. */
function extreme(side: Side, direction: 1 | -1): Decimal | undefined {
  let best: Decimal | undefined;
  for (const price of side.keys()) {
    if (best === undefined || compareDecimals(price, best) === direction) best = price;
  }
  return best;
}
