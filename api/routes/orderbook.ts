import { z } from 'zod';
import { type ApiJson, decimalField } from '../../src/domain/api-json.ts';
import { decimal, subtractDecimals } from '../../src/domain/decimal.ts';
import type { MarketTokens } from '../../src/store/market-reads.ts';
import { readBook, type StoredLevel } from '../../src/store/series-reads.ts';
import type { ApiDeps, ApiRouter } from '../deps.ts';
import { ApiError } from '../errors.ts';
import { param, readQuery } from '../input.ts';
import { authenticate } from '../middleware/authenticate.ts';
import { epochSeconds, sendMarketData } from '../respond.ts';
import { chooseOutcome, marketOfPath } from './market-scope.ts';

const bookQuery = z.object({ depth: param.depth, outcome_id: param.outcomeId });

/** GET /v1/{venue}/markets/{market_id}/orderbook: the latest book of one outcome. */
export function orderbookRoutes(router: ApiRouter, deps: ApiDeps): void {
  const enter = authenticate(deps, { header: 'Authorization', scope: 'markets:read' });

  router.get('/v1/:venue/markets/:market_id/orderbook', enter, async (ctx) => {
    const { depth, outcome_id } = readQuery(ctx, bookQuery);
    const market = await marketOfPath(ctx, deps);
    const outcome = chooseOutcome(market, outcome_id);
    const book = outcome ? await readBook(deps.db, outcome.tokenId) : null;
    if (!outcome || !book) throw bookNotAvailable(market);
    const bestBid = book.bids[0]?.[0];
    const bestAsk = book.asks[0]?.[0];
    const isTwoSided = bestBid !== undefined && bestAsk !== undefined;
    sendMarketData(ctx, deps, {
      data: {
        market_id: market.marketId,
        outcome_id: outcome.outcomeId,
        as_of: epochSeconds(book.asOf),
        bids: book.bids.slice(0, depth).map(presentLevel),
        asks: book.asks.slice(0, depth).map(presentLevel),
        best_bid: bestBid === undefined ? undefined : decimalField(bestBid),
        best_ask: bestAsk === undefined ? undefined : decimalField(bestAsk),
        spread: isTwoSided ? decimalField(subtractDecimals(decimal(bestAsk), decimal(bestBid))) : undefined,
      },
      freshness: 'latest',
    });
  });
}

function presentLevel([price, size, count]: StoredLevel): ApiJson {
  return { price: decimalField(price), size: decimalField(size), count };
}

/** Worth asking again only where the venue keeps a book that is still traded on. */
function bookNotAvailable(market: MarketTokens): ApiError {
  const mayCome = market.hasBook && ['created', 'open', 'halted'].includes(market.status);
  return new ApiError('orderbook_not_available', 'no orderbook of this outcome is known', {
    headers: mayCome ? { 'Retry-After': '5' } : {},
  });
}
