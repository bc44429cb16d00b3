import { z } from 'zod';
import { type ApiJson, decimalField } from '../../src/domain/api-json.ts';
import { decimal, subtractDecimals } from '../../src/domain/decimal.ts';
import { readBookAt, type StoredBook, type StoredLevel } from '../../src/store/book-reads.ts';
import type { MarketTokens } from '../../src/store/market-reads.ts';
import { createColdBooks } from '../cold-read.ts';
import type { ApiDeps, ApiRouter } from '../deps.ts';
import { ApiError } from '../errors.ts';
import { checkAsOf, param, readQuery } from '../input.ts';
import { authenticate } from '../middleware/authenticate.ts';
import { freshnessAt } from '../point-in-time.ts';
import { epochSeconds, sendMarketData } from '../respond.ts';
import { chooseOutcome, type MarketOutcome, marketOfPath, pathParam, venueScope } from './market-scope.ts';

const bookQuery = z.object({ depth: param.depth, outcome_id: param.outcomeId, as_of: param.asOf });

/** GET /v1/{venue}/markets/{market_id}/orderbook: the book of one outcome, the latest or as it was known at `as_of`. */
export function orderbookRoutes(router: ApiRouter, deps: ApiDeps): void {
  const enter = authenticate(deps, { header: 'Authorization', scope: 'markets:read' });
  const coldBooks = createColdBooks(deps);

  router.get('/v1/:venue/markets/:market_id/orderbook', enter, async (ctx) => {
    const { depth, outcome_id, as_of } = readQuery(ctx, bookQuery);
    checkAsOf(as_of, deps.now());
    await sendMarketData(ctx, deps, {
      key: ['orderbook', venueScope(ctx, deps).name, pathParam(ctx, 'market_id'), outcome_id, depth, as_of],
      load: async () => {
        const market = await marketOfPath(ctx, deps);
        const outcome = chooseOutcome(market, outcome_id);
        if (as_of !== undefined) {
          const book = outcome && (await readBookAt(deps.db, outcome.tokenId, as_of));
          if (!book) throw new ApiError('no_data_yet', 'no orderbook of this outcome had been seen by then');
          return { data: presentBook(market, outcome, book, depth), freshness: freshnessAt(as_of, deps.now()) };
        }
        const book = outcome && (await coldBooks.read(market, outcome.tokenId));
        if (!book) throw bookNotAvailable(market);
        return { data: presentBook(market, outcome, book, depth), freshness: 'latest' };
      },
    });
  });
}

/** An orderbook snapshot (spec section 2.6), `depth` levels a side; `as_of` is the book's own time. */
function presentBook(market: MarketTokens, outcome: MarketOutcome, book: StoredBook, depth: number): ApiJson {
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

function presentLevel([price, size, count]: StoredLevel): ApiJson {
  return { price: decimalField(price), size: decimalField(size), count };
}

/** Worth asking again only where the venue keeps a book that is traded on, or will be. */
function bookNotAvailable(market: MarketTokens): ApiError {
  const mayCome = market.hasBook && ['created', 'open', 'halted'].includes(market.status);
  return new ApiError('orderbook_not_available', 'no orderbook of this outcome is known', {
    headers: mayCome ? { 'Retry-After': '5' } : {},
  });
}
