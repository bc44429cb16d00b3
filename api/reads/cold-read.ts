import { LRUCache } from 'lru-cache';
import type { MarketTokens } from '../../src/store/catalog/market-reads.ts';
import type { LatestBook } from '../../src/store/series/book-reads.ts';
import type { BookRead } from '../../src/store/series/market-series.ts';
import type { ColdAllowance } from '../access/cold-allowance.ts';
import { epochSeconds } from '../http/respond.ts';
import type { MarketReadDeps } from './read-deps.ts';

/** Longer than the poll interval of a hot book. After this a read requests an unpolled book again. */
const STALE_AFTER_MS = 60_000;
/** Frequent reads of a market without a book cause one venue request per interval. */
const NO_BOOK_MS = 5_000;
const MAX_REMEMBERED = 10_000;
/**
 * Concurrent book fetches. Cold reads have priority over the polls of the venue, so a reader of the whole catalog must not use up the
 * request rate. Beyond this bound the answer is the stored book, and the read makes the market hot.
 */
const MAX_IN_FLIGHT = 32;

/** Whether a market trades, or will. */
export function mayTrade({ status }: Pick<MarketTokens, 'status'>): boolean {
  return status === 'created' || status === 'open' || status === 'halted';
}

/** Whether a fetch can return a book: the venue has one, and the market is open or halted. */
function mayHaveBook(market: Pick<MarketTokens, 'hasBook' | 'status'>): boolean {
  return market.hasBook && (market.status === 'open' || market.status === 'halted');
}

/** Fetches books that are not polled. */
interface ColdBooks {
  /**
   * The read of a latest book. If the book is absent or unseen for a minute and `cold` allows it, a job fetches it, for at most
   * `cold.waitMs`, and `again` reads it. Then the stored book is the answer, even when it is stale. A read that waits for the job of
   * another read costs no cold read.
   */
  refreshed(
    read: BookRead,
    again: () => Promise<BookRead | null>,
    cold: Pick<ColdAllowance, 'take' | 'waitMs'>,
  ): Promise<BookRead>;
}

interface ColdBookDeps extends Pick<MarketReadDeps, 'arrivals' | 'now'> {
  producer: Pick<MarketReadDeps['producer'], 'wake'>;
}

/** Keeps the fetches in flight and the recent fetches without a book in memory: a read with a short wait says nothing about a longer one. */
export function createColdBooks(deps: ColdBookDeps): ColdBooks {
  const inFlight = new Map<string, Promise<boolean>>();
  const withoutBook = new LRUCache<string, true>({
    max: MAX_REMEMBERED,
    ttl: NO_BOOK_MS,
    ttlResolution: 0,
    perf: { now: deps.now },
  });

  /** Concurrent requests for one market share one job. */
  function fetched({ pk, venue }: MarketTokens, key: string, waitMs: number): Promise<boolean> {
    const joined = inFlight.get(key);
    if (joined) return joined;
    // Listen before the wake-up, which could cause an announcement at once.
    const arrival = deps.arrivals.waitFor(`book:${pk}`, waitMs).finally(() => inFlight.delete(key));
    inFlight.set(key, arrival);
    deps.producer.wake('fetch-book', { venue, marketPk: String(pk) });
    return arrival;
  }

  return {
    async refreshed(read, again, cold) {
      const { market } = read;
      const key = `${market.pk} ${cold.waitMs}`;
      if (!isCold(read.book) || !mayHaveBook(market) || withoutBook.has(key)) return read;
      if (!inFlight.has(key) && (inFlight.size >= MAX_IN_FLIGHT || !cold.take())) return read;
      await fetched(market, key, cold.waitMs);
      // Reads also without an announcement, because a lost connection misses it.
      const after = (await again()) ?? read;
      if (isCold(after.book)) withoutBook.set(key, true);
      return after;
    },
  };
}

/**
 * How long an answer with this book stays true while nobody sees the book: until it becomes stale. 0 for a book that a read may refresh.
 */
export function stableBookMs(
  book: Pick<LatestBook, 'unseenMs'>,
  market: Pick<MarketTokens, 'hasBook' | 'status'>,
): number {
  if (!mayHaveBook(market)) return Number.POSITIVE_INFINITY;
  return Math.max(0, STALE_AFTER_MS - book.unseenMs);
}

/** Whether the book is the present one: a poll saw it within the last minute, and the market trades. */
export function isLive(book: Pick<LatestBook, 'unseenMs'>, { status }: Pick<MarketTokens, 'status'>): boolean {
  return !isCold(book) && (status === 'open' || status === 'halted');
}

/** Whether a latest book is the present one, and otherwise when it was seen. */
export function presentSighting(
  book: Pick<LatestBook, 'receivedAt' | 'unseenMs'>,
  { status }: Pick<MarketTokens, 'status'>,
) {
  const live = isLive(book, { status });
  return { market_status: status, live, observed_at: live ? undefined : epochSeconds(book.receivedAt) };
}

function isCold(book: Pick<LatestBook, 'unseenMs'> | null): boolean {
  return book === null || book.unseenMs > STALE_AFTER_MS;
}
