import type { z } from 'zod';
import type { FeeStatement } from '../../../src/domain/markets/fee.ts';
import { decimalField } from '../../../src/domain/values/api-json.ts';
import { decimal, subtractDecimals } from '../../../src/domain/values/decimal.ts';
import type { MarketTokens } from '../../../src/store/catalog/market-reads.ts';
import type { JournalStamp } from '../../../src/store/journal/read-journal.ts';
import { readBookAt, type StoredBook, type StoredLevel } from '../../../src/store/series/book-reads.ts';
import { readMarketBook } from '../../../src/store/series/market-series.ts';
import type { ColdAllowance } from '../../access/cold-allowance.ts';
import {
  type BookBody,
  book,
  bookExample,
  bookMeta,
  bookMetaExample,
  bookQuery,
  type LevelBody,
} from '../../contract/book.ts';
import { ApiError } from '../../errors.ts';
import { checkAsOf } from '../../http/input.ts';
import { epochSeconds } from '../../http/respond.ts';
import { marketRoute, type Route } from '../../http/route.ts';
import { type Freshness, freshnessAt } from '../../reads/answer-cache.ts';
import { createColdBooks, mayTrade, presentSighting, stableBookMs } from '../../reads/cold-read.ts';
import { venueWithoutBooks } from '../../reads/executable-answer.ts';
import { presentFeedGaps, readPastGaps } from '../../reads/feed-states.ts';
import type { MarketReadDeps } from '../../reads/read-deps.ts';
import {
  chooseOutcome,
  foundMarket,
  type MarketOutcome,
  seriesValidity,
  type VenueScope,
  venueScopes,
} from '../market-scope.ts';

/** GET /v1/{venue}/markets/{market_id}/orderbook: the latest book of one outcome, or the book known at `as_of`. */
export function orderbookRoutes(deps: MarketReadDeps): Route[] {
  const scopeOf = venueScopes(deps);
  const bookOf = outcomeBooks(deps);
  return [
    marketRoute(
      {
        path: '/v1/:venue/markets/:market_id/orderbook',
        operationId: 'getOrderbook',
        summary: 'Read an orderbook',
        description:
          'oddswire fetches a book that it does not poll first, for at most 2.5 seconds. `meta.live` is false for the last book of a market that no longer trades.',
        query: bookQuery,
        answer: {
          description: 'The book of one outcome.',
          data: book,
          example: bookExample,
          meta: bookMeta,
          metaExample: bookMetaExample,
        },
        errors: BOOK_ERRORS,
      },
      ({ params, query: { depth, outcome_id, as_of } }) => {
        checkAsOf(as_of, deps.now());
        const scope = scopeOf(params.venue);
        const marketId = params.market_id;
        return {
          key: ['orderbook', scope.name, marketId, outcome_id, depth, as_of],
          load: async (cold) => {
            const read = await bookOf({ scope, marketId, outcomeId: outcome_id, asOf: as_of }, cold);
            const { market, outcome, book, meta, freshness, latest } = read;
            const validity = latest && seriesValidity(scope, marketId, 'book', latest);
            return { data: presentBook(market, outcome, book, depth), meta, freshness, validity };
          },
        };
      },
    ),
  ];
}

/** An orderbook snapshot (specification section 2.6) with `depth` levels per side. `as_of` is the time of the book. */
function presentBook(market: MarketTokens, outcome: MarketOutcome, book: StoredBook, depth: number): BookBody {
  const bestBid = book.bids[0]?.[0];
  const bestAsk = book.asks[0]?.[0];
  const isTwoSided = bestBid !== undefined && bestAsk !== undefined;
  return {
    market_id: market.marketId,
    outcome_id: outcome.outcomeId,
    as_of: epochSeconds(book.asOf),
    bids: book.bids.slice(0, depth).map(presentLevel),
    asks: book.asks.slice(0, depth).map(presentLevel),
    best_bid: bestBid === undefined ? undefined : decimalField(bestBid),
    best_ask: bestAsk === undefined ? undefined : decimalField(bestAsk),
    spread: isTwoSided ? decimalField(subtractDecimals(decimal(bestAsk), decimal(bestBid))) : undefined,
  };
}

function presentLevel([price, size, count]: StoredLevel): LevelBody {
  return { price: decimalField(price), size: decimalField(size), count };
}

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
