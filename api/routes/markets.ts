import { z } from 'zod';
import { MARKET_STATUSES, type MarketStatus } from '../../src/domain/markets/market.ts';
import { listMarkets } from '../../src/store/catalog/market-list.ts';
import type { StoredMarket } from '../../src/store/catalog/market-reads.ts';
import { searchMarkets } from '../../src/store/catalog/market-search.ts';
import { findMarketAt } from '../../src/store/catalog/market-versions.ts';
import type { Witness } from '../../src/store/series/completeness.ts';
import { readMarket } from '../../src/store/series/quoted-markets.ts';
import {
  type MarketBody,
  market,
  marketExample,
  marketListMeta,
  marketListQuery,
  marketQuery,
  STATUS_ALIASES,
} from '../contract/market.ts';
import { ApiError, invalidRequest } from '../errors.ts';
import { checkAsOf } from '../http/input.ts';
import type { MarketAnswer } from '../http/respond.ts';
import { marketRoute, type Route } from '../http/route.ts';
import { freshnessAt } from '../reads/answer-cache.ts';
import { presentMarketCoverage } from '../reads/completeness.ts';
import type { NamedKind } from '../reads/journal-view.ts';
import { presentMarket, toPlace, toPosition } from '../reads/market-search.ts';
import type { MarketReadDeps } from '../reads/read-deps.ts';
import { foundMarket, marketNotFound, onlySubject, subjectsOf, venueScopes } from './market-scope.ts';

/** GET /v1/{venue}/markets and /markets/{market_id}. */
export function marketRoutes(deps: MarketReadDeps): Route[] {
  const scopeOf = venueScopes(deps);
  return [
    marketRoute(
      {
        path: '/v1/:venue/markets',
        operationId: 'listMarkets',
        summary: 'List or search markets',
        description: 'In the order of `sort`; with `q` the best match first.',
        query: marketListQuery,
        answer: {
          description: 'Markets.',
          data: z.array(market),
          example: [marketExample],
          meta: marketListMeta,
          metaExample: { next_cursor: null },
        },
        errors: ['invalid_cursor'],
      },
      ({ params, query: { cursor, limit, category, event_id, sort, ...given } }) => {
        const { name, venues } = scopeOf(params.venue);
        const statuses = given.status && toStatuses(given.status);
        const text = given.q?.trim() || undefined;
        if (text !== undefined && sort !== undefined) {
          throw invalidRequest([{ path: 'sort', message: 'does not combine with q, which orders by the match' }]);
        }
        const scope = JSON.stringify(['markets', name, statuses, category, text, event_id, sort ?? 'created']);
        const filters = {
          venues,
          limit,
          ...(statuses !== undefined && { statuses }),
          ...(category !== undefined && { category }),
          ...(event_id !== undefined && { eventId: event_id }),
          ...(sort !== undefined && { sort }),
        };
        return { key: [scope, limit, cursor], load: () => readList(deps, scope, filters, text, cursor) };
      },
    ),
    marketRoute(
      {
        path: '/v1/:venue/markets/:market_id',
        operationId: 'getMarket',
        summary: 'Read a market',
        description: 'With `as_of` the version that was known at that moment.',
        query: marketQuery,
        answer: { description: 'The market.', data: market, example: marketExample },
        errors: ['no_data_yet'],
      },
      ({ params, query: { as_of } }) => {
        const scope = scopeOf(params.venue);
        const marketId = params.market_id;
        checkAsOf(as_of, deps.now());
        const subject = as_of === undefined ? onlySubject(scope, marketId) : undefined;
        return {
          key: ['market', scope.name, marketId, as_of],
          remembered: () => subject && deps.memory?.market(subject),
          load: async () => {
            if (as_of === undefined) {
              const {
                market: found,
                witness,
                stamp,
              } = foundMarket(deps, await readMarket(deps.db, scope.venues, marketId));
              if (subject) deps.memory?.want(subject);
              const validity = { stamp, subjects: subjectsOf(scope, marketId), kinds: MARKET_KINDS };
              return { data: presentCoveredMarket(found, witness), freshness: 'latest', validity };
            }
            const found = await findMarketAt(deps.db, scope.venues, marketId, as_of);
            if (!found) throw marketNotFound();
            if (found === 'not-yet') throw new ApiError('no_data_yet', 'this market was not known at this moment');
            return { data: presentMarket(found), freshness: freshnessAt(as_of, deps.now()) };
          },
        };
      },
    ),
  ];
}

/** The kinds of changes of a market's own answer, and of lists. */
const MARKET_KINDS: ReadonlySet<NamedKind> = new Set(['market', 'volumes', 'coverage']);
const LIST_KINDS: ReadonlySet<NamedKind> = new Set(['market', 'volumes']);

async function readList(
  deps: MarketReadDeps,
  scope: string,
  filters: Omit<Parameters<typeof listMarkets>[1], 'after'>,
  text: string | undefined,
  cursor: string | undefined,
): Promise<MarketAnswer<MarketBody[], z.output<typeof marketListMeta>>> {
  const after = cursor === undefined ? undefined : deps.cursors.decode(scope, cursor);
  const encode = (position: readonly string[] | undefined) =>
    position === undefined ? null : deps.cursors.encode(scope, position);
  if (text === undefined) {
    const { markets, next, stamp } = await listMarkets(deps.db, { ...filters, ...(after && { after }) });
    const subjects = filters.venues.map((venue) => ({ venue, marketId: '' }));
    return {
      data: markets.map(presentMarket),
      meta: { next_cursor: encode(next) },
      freshness: 'latest',
      validity: stamp && { stamp, subjects, kinds: LIST_KINDS },
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

/** The statuses with these names, each once and in their order. */
export function toStatuses(names: readonly string[]): MarketStatus[] {
  const meant = names.map((name) => STATUS_ALIASES[name] ?? name);
  return MARKET_STATUSES.filter((status) => meant.includes(status));
}

/** A market with the coverage of its trades. */
export function presentCoveredMarket(market: StoredMarket, witness: Witness | null): MarketBody {
  return { ...presentMarket(market), coverage: presentMarketCoverage(witness) };
}
