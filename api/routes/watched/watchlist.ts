import { z } from 'zod';
import {
  findWatched,
  listWatched,
  MAX_WATCHED,
  unwatchMarket,
  type WatchedMarket,
  watchMarket,
} from '../../../src/store/accounts/watchlist.ts';
import type { RouteGroup } from '../../context.ts';
import { unwatched, type WatchedMarketBody, watchedMarket, watchedMarketExample } from '../../contract/market.ts';
import { ApiError } from '../../errors.ts';
import { epochSeconds } from '../../http/respond.ts';
import { accountRoute, type Route } from '../../http/route.ts';
import { presentMarket } from '../../reads/market-search.ts';
import type { ReadDeps } from '../../reads/read-deps.ts';
import { accountList, listQuery } from '../account-list.ts';
import { marketNotFound, venueScopes } from '../market-scope.ts';

const tag = 'watchlist';
const group: RouteGroup = { header: 'X-API-Key', scope: 'markets:read' };
const path = '/v1/watchlist/:venue/:market_id';

/** /v1/watchlist: the markets that people of the account look at. */
export function watchlistRoutes(deps: ReadDeps): Route[] {
  const scopeOf = venueScopes(deps);
  return [
    accountRoute(
      {
        method: 'get',
        path: '/v1/watchlist',
        operationId: 'listWatchlist',
        summary: 'List the watchlist of the account, newest first',
        description: 'The answer has `meta.next_cursor` when the caller pages or more items follow.',
        tag,
        group,
        query: listQuery,
        answer: {
          description: 'Markets.',
          data: z.array(watchedMarket),
          example: [watchedMarketExample],
          isPaged: true,
        },
        errors: ['invalid_cursor'],
      },
      (request) =>
        accountList(request, deps, ['watchlist'], async (limit, after) => {
          const { markets, next } = await listWatched(deps.db, request.caller.accountId, limit, after);
          return { items: markets.map(presentWatched), next };
        }),
    ),
    accountRoute(
      {
        method: 'put',
        path,
        operationId: 'watchMarket',
        recordedAs: 'watchlist.add',
        summary: 'Put a market on the watchlist',
        description: `A market that is on the list stays where it is. An account has at most ${MAX_WATCHED} markets on it.`,
        tag,
        group,
        answer: { description: 'The market.', data: watchedMarket, example: watchedMarketExample },
        errors: ['quota_exceeded'],
      },
      async ({ caller: { accountId }, params: { venue, market_id: marketId }, db }) => {
        const { venues } = scopeOf(venue);
        const read: { found?: WatchedMarket | null } = {};
        await db.transaction(async (tx) => {
          const outcome = await watchMarket(tx, accountId, venues, marketId);
          if (outcome === 'full') {
            throw new ApiError(
              'quota_exceeded',
              `the watchlist of this account may have at most ${MAX_WATCHED} markets`,
            );
          }
          read.found = await findWatched(tx, accountId, venues, marketId);
          return outcome === 'added';
        });
        if (!read.found) throw marketNotFound();
        return { data: presentWatched(read.found) };
      },
    ),
    accountRoute(
      {
        method: 'delete',
        path,
        operationId: 'unwatchMarket',
        recordedAs: 'watchlist.remove',
        summary: 'Take a market from the watchlist',
        description: 'A market that is not on the list gives 404 `not_found`.',
        tag,
        group,
        answer: {
          description: 'No longer on the list.',
          data: unwatched,
          example: { venue: watchedMarketExample.venue, market_id: watchedMarketExample.market_id, deleted: true },
        },
        errors: ['not_found'],
      },
      async ({ caller: { accountId }, params: { venue, market_id: marketId }, db }) => {
        const { venues } = scopeOf(venue);
        const isRemoved = await db.transaction((tx) => unwatchMarket(tx, accountId, venues, marketId));
        if (!isRemoved) throw new ApiError('not_found', 'the market is not on the watchlist');
        return { data: { venue, market_id: marketId, deleted: true } };
      },
    ),
  ];
}

function presentWatched({ addedAt, ...market }: WatchedMarket): WatchedMarketBody {
  return { ...presentMarket(market), added_at: epochSeconds(addedAt) };
}
