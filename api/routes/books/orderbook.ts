import { decimalField } from '../../../src/domain/values/api-json.ts';
import { decimal, subtractDecimals } from '../../../src/domain/values/decimal.ts';
import type { MarketTokens } from '../../../src/store/catalog/market-reads.ts';
import type { StoredBook, StoredLevel } from '../../../src/store/series/book-reads.ts';
import {
  type BookBody,
  book,
  bookExample,
  bookMeta,
  bookMetaExample,
  bookQuery,
  type LevelBody,
} from '../../contract/book.ts';
import { checkAsOf } from '../../http/input.ts';
import { epochSeconds } from '../../http/respond.ts';
import { marketRoute, type Route } from '../../http/route.ts';
import type { MarketReadDeps } from '../../reads/read-deps.ts';
import { type MarketOutcome, seriesValidity, venueScopes } from '../market-scope.ts';
import { BOOK_ERRORS, outcomeBooks } from './outcome-book.ts';

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
