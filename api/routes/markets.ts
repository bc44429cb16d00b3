import { z } from 'zod';
import { type ApiJson, optionalDecimal } from '../../src/domain/api-json.ts';
import { MARKET_STATUSES, type MarketStatus } from '../../src/domain/market.ts';
import {
  findMarket,
  listMarkets,
  type MarketPlace,
  readMarketPrices,
  type StoredMarket,
} from '../../src/store/market-reads.ts';
import type { ApiDeps, ApiRouter } from '../deps.ts';
import { ApiError } from '../errors.ts';
import { param, readQuery } from '../input.ts';
import { authenticate } from '../middleware/authenticate.ts';
import { epochSeconds, sendMarketData } from '../respond.ts';
import { marketNotFound, pathParam, venueScope } from './market-scope.ts';
import { presentPrices } from './prices.ts';

/** Names other APIs use for our states. */
const STATUS_ALIASES: Readonly<Record<string, MarketStatus>> = {
  unopened: 'created',
  active: 'open',
  paused: 'halted',
};
const STATUS_NAMES = [...MARKET_STATUSES, ...Object.keys(STATUS_ALIASES)];
const MAX_SEARCH_LENGTH = 200;

const listQuery = z.object({
  q: z.string().max(MAX_SEARCH_LENGTH, `must have at most ${MAX_SEARCH_LENGTH} characters`).optional(),
  status: z.enum(STATUS_NAMES, `must be one of ${STATUS_NAMES.join(', ')}`).optional(),
  category: z.string().min(1, 'must not be empty').max(200, 'must have at most 200 characters').optional(),
  limit: param.limit,
  cursor: param.cursor,
});

/** GET /v1/{venue}/markets, /markets/{market_id} and /markets/{market_id}/prices. */
export function marketRoutes(router: ApiRouter, deps: ApiDeps): void {
  const enter = authenticate(deps, { header: 'Authorization', scope: 'markets:read' });

  router.get('/v1/:venue/markets', enter, async (ctx) => {
    const { name, venues } = venueScope(ctx, deps);
    const { cursor, limit, ...given } = readQuery(ctx, listQuery);
    const status = given.status === undefined ? undefined : toStatus(given.status);
    const text = given.q?.trim() || undefined;
    const scope = JSON.stringify(['markets', name, status ?? null, given.category ?? null, text ?? null]);
    const after = cursor === undefined ? undefined : toPlace(deps.cursors.decode(scope, cursor));
    const { markets, next } = await listMarkets(deps.db, {
      venues,
      limit,
      ...(status !== undefined && { status }),
      ...(given.category !== undefined && { category: given.category }),
      ...(text !== undefined && { text }),
      ...(after !== undefined && { after }),
    });
    const next_cursor = next === undefined ? null : deps.cursors.encode(scope, toPosition(next));
    sendMarketData(ctx, deps, { data: markets.map(presentMarket), meta: { next_cursor }, freshness: 'latest' });
  });

  router.get('/v1/:venue/markets/:market_id', enter, async (ctx) => {
    const { venues } = venueScope(ctx, deps);
    const market = await findMarket(deps.db, venues, pathParam(ctx, 'market_id'));
    if (!market) throw marketNotFound();
    sendMarketData(ctx, deps, { data: presentMarket(market), freshness: 'latest' });
  });

  router.get('/v1/:venue/markets/:market_id/prices', enter, async (ctx) => {
    const { venues } = venueScope(ctx, deps);
    const prices = await readMarketPrices(deps.db, venues, pathParam(ctx, 'market_id'));
    if (!prices) throw marketNotFound();
    const data = presentPrices(prices.marketId, prices.outcomes);
    if (data === undefined) throw new ApiError('no_data_yet', 'no price of this market has been seen yet');
    sendMarketData(ctx, deps, { data, freshness: 'latest' });
  });
}

function toStatus(name: string): MarketStatus | undefined {
  return STATUS_ALIASES[name] ?? MARKET_STATUSES.find((status) => status === name);
}

function toPosition(place: MarketPlace): string[] {
  return place.rank === undefined ? [place.pk] : [place.pk, place.rank];
}

function toPlace([pk = '', rank]: readonly string[]): MarketPlace {
  return { pk, ...(rank !== undefined && { rank }) };
}

/** Spec section 2.3, DESIGN section 4 "Market". */
function presentMarket(market: StoredMarket): ApiJson {
  return {
    market_id: market.marketId,
    venue: market.venue,
    event_id: market.eventId ?? undefined,
    title: market.title,
    description: market.description,
    category: market.category ?? undefined,
    tags: market.tags,
    status: market.status,
    outcomes: market.outcomes.map(({ outcomeId, label }) => ({ outcome_id: outcomeId, label })),
    created_at: epochSeconds(market.createdAt),
    open_at: epochSeconds(market.openAt),
    close_at: epochSeconds(market.closeAt),
    resolved_at: epochSeconds(market.resolvedAt),
    winning_outcome_id: market.winningOutcomeId ?? undefined,
    resolution_criteria: market.resolutionCriteria ?? undefined,
    url: market.url ?? undefined,
    volume: optionalDecimal(market.volume),
    volume_24h: optionalDecimal(market.volume24h),
    liquidity: optionalDecimal(market.liquidity),
    updated_at: epochSeconds(market.updatedAt),
  };
}
