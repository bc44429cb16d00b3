import { z } from 'zod';
import { type ApiJson, optionalDecimal } from '../../src/domain/api-json.ts';
import { InvalidCursorError } from '../../src/domain/cursor.ts';
import { MARKET_STATUSES, type MarketStatus } from '../../src/domain/market.ts';
import { findMarketAt } from '../../src/store/market-as-of.ts';
import { listMarkets } from '../../src/store/market-list.ts';
import { findMarket, type StoredMarket } from '../../src/store/market-reads.ts';
import { type SearchPlace, searchMarkets } from '../../src/store/market-search.ts';
import type { ApiDeps, ApiRouter } from '../deps.ts';
import { ApiError } from '../errors.ts';
import { checkAsOf, param, readQuery } from '../input.ts';
import { authenticate } from '../middleware/authenticate.ts';
import { freshnessAt } from '../point-in-time.ts';
import { epochSeconds, type MarketAnswer, sendMarketData } from '../respond.ts';
import { marketNotFound, pathParam, venueScope } from './market-scope.ts';

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
const marketQuery = z.object({ as_of: param.asOf });

/** GET /v1/{venue}/markets and /markets/{market_id}. */
export function marketRoutes(router: ApiRouter, deps: ApiDeps): void {
  const enter = authenticate(deps, { header: 'Authorization', scope: 'markets:read' });

  router.get('/v1/:venue/markets', enter, async (ctx) => {
    const { name, venues } = venueScope(ctx, deps);
    const { cursor, limit, category, ...given } = readQuery(ctx, listQuery);
    const status = given.status === undefined ? undefined : toStatus(given.status);
    const text = given.q?.trim() || undefined;
    const scope = ['markets', name, status ?? null, category ?? null, text ?? null];
    const filters = {
      venues,
      limit,
      ...(status !== undefined && { status }),
      ...(category !== undefined && { category }),
    };
    await sendMarketData(ctx, deps, {
      key: [...scope, limit, cursor],
      load: () => readList(deps, JSON.stringify(scope), filters, text, cursor),
    });
  });

  router.get('/v1/:venue/markets/:market_id', enter, async (ctx) => {
    const { name, venues } = venueScope(ctx, deps);
    const marketId = pathParam(ctx, 'market_id');
    const { as_of } = readQuery(ctx, marketQuery);
    checkAsOf(as_of, deps.now());
    await sendMarketData(ctx, deps, {
      key: ['market', name, marketId, as_of],
      load: async () => {
        const market = await (as_of === undefined
          ? findMarket(deps.db, venues, marketId)
          : findMarketAt(deps.db, venues, marketId, as_of));
        if (!market) throw marketNotFound();
        if (market === 'not-yet') throw new ApiError('no_data_yet', 'this market had not been seen by then');
        if (as_of === undefined) deps.reads.note(market.pk);
        return { data: presentMarket(market), freshness: freshnessAt(as_of, deps.now()) };
      },
    });
  });
}

async function readList(
  deps: ApiDeps,
  scope: string,
  filters: Omit<Parameters<typeof listMarkets>[1], 'after'>,
  text: string | undefined,
  cursor: string | undefined,
): Promise<MarketAnswer> {
  const after = cursor === undefined ? undefined : deps.cursors.decode(scope, cursor);
  const encode = (position: readonly string[] | undefined) =>
    position === undefined ? null : deps.cursors.encode(scope, position);
  if (text === undefined) {
    const [pk] = after ?? [];
    const { markets, next } = await listMarkets(deps.db, { ...filters, ...(pk !== undefined && { after: pk }) });
    return {
      data: markets.map(presentMarket),
      meta: { next_cursor: encode(next === undefined ? undefined : [next]) },
      freshness: 'latest',
    };
  }
  const place = after && toPlace(after);
  const { markets, matched, next } = await searchMarkets(deps.db, { ...filters, text, ...(place && { after: place }) });
  return {
    data: markets.map(presentMarket),
    meta: { search: matched, next_cursor: encode(next && toPosition(next)) },
    freshness: 'latest',
  };
}

function toStatus(name: string): MarketStatus | undefined {
  return STATUS_ALIASES[name] ?? MARKET_STATUSES.find((status) => status === name);
}

function toPosition(place: SearchPlace): string[] {
  const { tier, pk } = place;
  return tier === 'similar' ? [tier, pk, place.similarity, String(place.threshold)] : [tier, pk];
}

/** @throws InvalidCursorError on a place of another kind, such as an earlier version gave out. */
function toPlace([tier, pk = '', similarity = '', threshold = '']: readonly string[]): SearchPlace {
  switch (tier) {
    case 'title':
    case 'title-words':
    case 'words':
      return { tier, pk };
    case 'similar':
      return { tier, pk, similarity, threshold: Number(threshold) };
    default:
      throw new InvalidCursorError();
  }
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
