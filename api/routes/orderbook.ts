import { decimalField } from '../../src/domain/values/api-json.ts';
import { decimal, subtractDecimals } from '../../src/domain/values/decimal.ts';
import type { MarketTokens } from '../../src/store/catalog/market-reads.ts';
import { readBookAt, type StoredBook, type StoredLevel } from '../../src/store/series/book-reads.ts';
import { readMarketBook } from '../../src/store/series/market-series.ts';
import {
  type BookBody,
  book,
  bookExample,
  bookMeta,
  bookMetaExample,
  bookQuery,
  type LevelBody,
} from '../contract/book.ts';
import { ApiError } from '../errors.ts';
import { checkAsOf } from '../http/input.ts';
import { epochSeconds } from '../http/respond.ts';
import { marketRoute, type Route } from '../http/route.ts';
import { createColdBooks, isLive, stableBookMs } from '../reads/cold-read.ts';
import { presentFeedGaps, readPastGaps } from '../reads/feed-states.ts';
import { freshnessAt } from '../reads/point-in-time.ts';
import type { MarketReadDeps } from '../reads/read-deps.ts';
import { chooseOutcome, foundMarket, type MarketOutcome, seriesValidity, venueScopes } from './market-scope.ts';

/** GET /v1/{venue}/markets/{market_id}/orderbook: the latest book of one outcome, or the book known at `as_of`. */
export function orderbookRoutes(deps: MarketReadDeps): Route[] {
  const scopeOf = venueScopes(deps);
  const coldBooks = createColdBooks(deps);
  const withBooks = new Set<string>(
    deps.venues.flatMap(({ venue, capabilities }) => (capabilities.books ? [venue] : [])),
  );
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
        errors: ['orderbook_not_available', 'orderbook_not_supported', 'no_data_yet'],
      },
      ({ params, query: { depth, outcome_id, as_of } }) => {
        checkAsOf(as_of, deps.now());
        const scope = scopeOf(params.venue);
        const marketId = params.market_id;
        return {
          key: ['orderbook', scope.name, marketId, outcome_id, depth, as_of],
          load: async (cold) => {
            const target = { venues: scope.venues, marketId, outcomeId: outcome_id };
            const isPast = as_of !== undefined;
            const readOnce = () => readMarketBook(deps.db, target);
            const first = foundMarket(deps, await readOnce(), { isPast });
            const outcome = chooseOutcome(first.market, outcome_id);
            if (!withBooks.has(first.market.venue)) throw bookNotSupported(first.market);
            if (isPast) {
              const known = outcome && (await readBookAt(deps.db, outcome.tokenId, as_of));
              if (!known) throw new ApiError('no_data_yet', 'no orderbook of this outcome was known at this moment');
              const { feed_gaps, hasOpen } = await readPastGaps(deps.db, first.market, {
                start: as_of,
                end: as_of + 1,
              });
              return {
                data: presentBook(first.market, outcome, known, depth),
                meta: { feed_gaps },
                freshness: hasOpen ? 'latest' : freshnessAt(as_of, deps.now()),
              };
            }
            const read = outcome ? await coldBooks.refreshed(first, readOnce, cold) : first;
            const { book: latest, market, gaps, stamp } = read;
            if (!outcome || !latest) throw cold.isExhausted ? cold.rejection() : bookNotAvailable(market);
            const live = isLive(latest, market);
            const observed_at = live ? undefined : epochSeconds(latest.receivedAt);
            return {
              data: presentBook(market, outcome, latest, depth),
              meta: { market_status: market.status, live, observed_at, feed_gaps: presentFeedGaps(gaps) },
              freshness: 'latest',
              validity: seriesValidity(scope, marketId, 'book', { stamp, forMs: stableBookMs(latest, market) }),
            };
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

/** `Retry-After` only while the market can still trade. */
function bookNotAvailable(market: MarketTokens): ApiError {
  const mayTrade = ['created', 'open', 'halted'].includes(market.status);
  if (mayTrade && !market.hasBook) {
    return new ApiError('orderbook_not_supported', `${market.venue} has no orderbook for this market`);
  }
  return new ApiError('orderbook_not_available', 'no orderbook of this outcome is stored', {
    headers: mayTrade ? { 'Retry-After': '5' } : {},
  });
}

function bookNotSupported({ venue }: MarketTokens): ApiError {
  return new ApiError('orderbook_not_supported', `${venue} has no orderbooks`);
}
