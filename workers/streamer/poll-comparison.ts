import type { PriceRecord } from '../../src/domain/markets/market.ts';
import { decimal } from '../../src/domain/values/decimal.ts';
import type { ProcessContext } from '../../src/runtime/process-context.ts';
import { newerQuotes, type StoredQuote } from '../../src/store/feeds/markets.ts';
import type { PartFeed } from './part-feed.ts';

/** A poll can be ahead of the feed for a moment: only a difference that lasts for two comparisons is a loss. */
const COMPARISONS = 2;

interface Difference {
  readonly quote: PriceRecord;
  readonly times: number;
}

/**
 * Compares the quotes of a feed with the stored ones. A stored quote that is newer and different came from a poll, so the feed lost a
 * change.
 */
export class PollComparison {
  readonly #deps: Pick<ProcessContext, 'db'>;
  #differing = new Map<bigint, Difference>();

  constructor(deps: Pick<ProcessContext, 'db'>) {
    this.#deps = deps;
  }

  /** Tells the parts about the markets that differ for the second time. Returns their number. */
  async compare(parts: readonly PartFeed[]): Promise<number> {
    const compared = parts.flatMap((part) => part.quotes().map((each) => ({ part, ...each })));
    const ofFeed = compared.map(({ tokenId, quote }) => ({ tokenId, asOfMs: quote.asOfMs }));
    const newer = new Map((await newerQuotes(this.#deps.db, ofFeed)).map((row) => [row.tokenId, row]));
    const differing = new Map<bigint, Difference>();
    const lost = new Map<PartFeed, Set<string>>();
    for (const { part, tokenId, marketId, quote } of compared) {
      const row = newer.get(tokenId);
      if (row === undefined || isSame(quote, row)) continue;
      const before = this.#differing.get(tokenId);
      const times = before?.quote === quote ? before.times + 1 : 1;
      if (times < COMPARISONS) {
        differing.set(tokenId, { quote, times });
        continue;
      }
      const marketIds = lost.get(part) ?? new Set();
      lost.set(part, marketIds.add(marketId));
    }
    this.#differing = differing;
    for (const [part, marketIds] of lost) part.lost([...marketIds]);
    return [...lost.values()].reduce((sum, { size }) => sum + size, 0);
  }
}

/** The best levels; the price alone where a venue has no books. Polls and feeds can know different last trades of a one-sided book. */
function isSame(quote: PriceRecord, row: StoredQuote): boolean {
  if (quote.bid === undefined && quote.ask === undefined) return row.bid !== null || isEqual(quote.price, row.price);
  if (row.bid === null && row.ask === null) return true;
  return isEqual(quote.bid, row.bid) && isEqual(quote.ask, row.ask);
}

function isEqual(one: string | undefined, other: string | null): boolean {
  return one === undefined || other === null ? one === undefined && other === null : decimal(one) === decimal(other);
}
