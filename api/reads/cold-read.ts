import { LRUCache } from 'lru-cache';
import type { MarketTokens } from '../../src/store/catalog/market-reads.ts';
import { type LatestBook, readBook } from '../../src/store/series/book-reads.ts';
import type { ColdAllowance } from '../access/cold-allowance.ts';
import type { ApiDeps } from '../deps.ts';

/** Longer than the interval of a hot book; an unpolled book is requested again after this. */
const STALE_AFTER_MS = 60_000;
/** Frequent reads of a market without a book cost the venue one call per this interval. */
const NOTHING_CAME_MS = 5_000;
const MAX_REMEMBERED = 10_000;
/**
 * Markets waited for at once. Cold reads go before the venue's polls, so a reader of the whole catalog must not take all
 * its turns: beyond this the answer is the stored book, and the read makes the market hot.
 */
export const MAX_UNDER_WAY = 32;

/** Whether a book may be had that is not there yet: the venue keeps one, and it is traded on. */
function mayHaveBook(market: Pick<MarketTokens, 'hasBook' | 'status'>): boolean {
  return market.hasBook && (market.status === 'open' || market.status === 'halted');
}

/** Reads of latest books that are fetched when they are not polled. */
interface ColdBooks {
  /**
   * The latest book of one of the market's outcomes. One that is absent or was not seen for a minute is fetched by a job
   * first, for `deps.coldWaitMs` at most, where `cold` allows it; then the stored book is the answer, even when it is stale. Null
   * when no book is known. A read that waits for another read's request costs no cold read.
   */
  read(market: MarketTokens, tokenId: bigint, cold: Pick<ColdAllowance, 'take'>): Promise<LatestBook | null>;
}

interface ColdBookDeps extends Pick<ApiDeps, 'db' | 'arrivals' | 'coldWaitMs' | 'now'> {
  producer: Pick<ApiDeps['producer'], 'wake'>;
}

/** Keeps in memory which markets are waited for, and of which nothing came. */
export function createColdBooks(deps: ColdBookDeps): ColdBooks {
  const underWay = new Map<bigint, Promise<boolean>>();
  const nothingCame = new LRUCache<bigint, true>({
    max: MAX_REMEMBERED,
    ttl: NOTHING_CAME_MS,
    ttlResolution: 0,
    perf: { now: deps.now },
  });

  /** Requests for one market wait together, for one job. */
  function fetched(market: MarketTokens): Promise<boolean> {
    const { pk, venue } = market;
    const joined = underWay.get(pk);
    if (joined) return joined;
    // Listen before the call: an immediate announcement would be missed otherwise.
    const arrival = deps.arrivals.waitFor(`book:${pk}`, deps.coldWaitMs).finally(() => underWay.delete(pk));
    underWay.set(pk, arrival);
    deps.producer.wake('fetch-book', { venue, marketPk: String(pk) });
    return arrival;
  }

  return {
    async read(market, tokenId, cold) {
      const before = await readBook(deps.db, tokenId);
      if (!isCold(before) || !mayHaveBook(market) || nothingCame.has(market.pk)) return before;
      if (!underWay.has(market.pk) && (underWay.size >= MAX_UNDER_WAY || !cold.take())) return before;
      await fetched(market);
      // Also when nothing was heard: a connection lost meanwhile hears nothing.
      const after = await readBook(deps.db, tokenId);
      if (isCold(after)) nothingCame.set(market.pk, true);
      return after;
    },
  };
}

function isCold(book: LatestBook | null): boolean {
  return book === null || book.unseenMs > STALE_AFTER_MS;
}
