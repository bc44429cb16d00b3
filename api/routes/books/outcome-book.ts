import type { z } from 'zod';
import type { FeeStatement } from '../../../src/domain/markets/fee.ts';
import type { MarketTokens } from '../../../src/store/catalog/market-reads.ts';
import type { JournalStamp } from '../../../src/store/journal/stamp.ts';
import { readBookAt, type StoredBook } from '../../../src/store/series/book-reads.ts';
import { readMarketBook } from '../../../src/store/series/market-series.ts';
import type { ColdAllowance } from '../../access/cold-allowance.ts';
import type { bookMeta } from '../../contract/book.ts';
import { ApiError } from '../../errors.ts';
import type { Freshness } from '../../reads/answer-cache.ts';
import { createColdBooks, mayTrade, presentSighting, stableBookMs } from '../../reads/cold-read.ts';
import { presentFeedGaps, readPastGaps } from '../../reads/feed-states.ts';
import { venueWithoutBooks } from '../../reads/placed-executable.ts';
import { freshnessAt } from '../../reads/point-in-time.ts';
import type { MarketReadDeps } from '../../reads/read-deps.ts';
import { chooseOutcome, foundMarket, type MarketOutcome, type VenueScope } from '../market-scope.ts';

interface BookTarget {
  scope: VenueScope;
  marketId: string;
  /** Absent: the first outcome of the market. */
  outcomeId: string | undefined;
  /** Epoch seconds. Absent: the latest book. */
  asOf: number | undefined;
  /** Refuses the market of the read, by an error, before a fetch of its book. */
  check?(market: MarketTokens): void;
}

/** The book of one outcome for an answer. */
interface OutcomeBook {
  market: MarketTokens;
  outcome: MarketOutcome;
  book: StoredBook;
  meta: z.output<typeof bookMeta>;
  freshness: Freshness;
  /** Of a latest book; absent for one of the past. */
  latest?: {
    fee: FeeStatement | null;
    stamp: JournalStamp;
    /** How long the book stays true without a change of its facts, milliseconds. */
    forMs: number;
  };
}

/**
 * Reads the latest book of an outcome, which oddswire fetches first if it does not poll it, or the one known at a moment.
 * The function throws the errors of `BOOK_ERRORS`, and those of an unknown market or outcome.
 */
export function outcomeBooks(
  deps: MarketReadDeps,
): (
  target: BookTarget,
  cold: Pick<ColdAllowance, 'take' | 'waitMs' | 'isExhausted' | 'rejection'>,
) => Promise<OutcomeBook> {
  const coldBooks = createColdBooks(deps);
  const withBooks = new Set<string>(
    deps.venues.flatMap(({ venue, capabilities }) => (capabilities.books ? [venue] : [])),
  );
  return async ({ scope, marketId, outcomeId, asOf, check }, cold) => {
    const isPast = asOf !== undefined;
    const readOnce = () => readMarketBook(deps.db, { venues: scope.venues, marketId, outcomeId });
    const first = foundMarket(deps, await readOnce(), { isPast });
    const outcome = chooseOutcome(first.market, outcomeId);
    if (!withBooks.has(first.market.venue)) throw venueWithoutBooks(first.market.venue);
    check?.(first.market);
    if (isPast) {
      const known =
        outcome &&
        ((await readBookAt(deps.db, outcome.tokenId, asOf)) ??
          (await deps.history.bookAt(first.market, outcome.outcomeId, asOf)));
      if (!known) throw new ApiError('no_data_yet', 'no orderbook of this outcome was known at this moment');
      const range = { start: asOf, end: asOf + 1 };
      const { feed_gaps, hasOpen } = await readPastGaps(deps.db, first.market, range);
      const freshness = hasOpen ? 'latest' : freshnessAt(asOf, deps.now());
      return { market: first.market, outcome, book: known, meta: { feed_gaps }, freshness };
    }
    const read = outcome ? await coldBooks.refreshed(first, readOnce, cold) : first;
    const { book, market, gaps, stamp, fee } = read;
    if (!outcome || !book) throw cold.isExhausted ? cold.rejection() : bookNotAvailable(market);
    return {
      market,
      outcome,
      book,
      meta: { ...presentSighting(book, market), feed_gaps: presentFeedGaps(gaps) },
      freshness: 'latest',
      latest: { fee, stamp, forMs: stableBookMs(book, market) },
    };
  };
}

/** The codes of a read of a book. */
export const BOOK_ERRORS = [
  'orderbook_not_available',
  'orderbook_not_supported',
  'no_data_yet',
  'archive_unavailable',
] as const;

/** `Retry-After` only while the market can still trade. */
export function bookNotAvailable(market: Pick<MarketTokens, 'venue' | 'status' | 'hasBook'>): ApiError {
  const canTrade = mayTrade(market);
  if (canTrade && !market.hasBook) {
    return new ApiError('orderbook_not_supported', `${market.venue} has no orderbook for this market`);
  }
  return new ApiError('orderbook_not_available', 'no orderbook of this outcome is stored', {
    headers: canTrade ? { 'Retry-After': '5' } : {},
  });
}
