import { z } from 'zod';
import { type MarketPrices, readPrices } from '../../src/store/series/price-reads.ts';
import { batchPricesMeta, batchPricesQuery, prices, pricesExample, pricesQuery } from '../contract/price.ts';
import { ApiError } from '../errors.ts';
import type { AnswerDeps } from '../http/deps.ts';
import { checkAsOf } from '../http/input.ts';
import { prepare } from '../http/respond.ts';
import { marketRoute, type Route } from '../http/route.ts';
import { freshnessAt } from '../reads/answer-cache.ts';
import { presentPrices } from '../reads/present-prices.ts';
import type { MarketReadDeps } from '../reads/read-deps.ts';
import { marketNotFound, onlySubject, venueScopes } from './market-scope.ts';

/** GET /v1/{venue}/markets/{market_id}/prices and, for up to 100 markets at once, /v1/{venue}/prices. */
export function priceRoutes(deps: MarketReadDeps & Pick<AnswerDeps, 'decimalFormat'>): Route[] {
  const scopeOf = venueScopes(deps);
  const pricesOf = async (venues: readonly string[], marketIds: readonly string[], asOf: number | undefined) => {
    const known = await readPrices(deps.db, venues, marketIds, asOf);
    return asOf === undefined ? known : deps.history.withPastPrices(known, asOf);
  };
  return [
    marketRoute(
      {
        path: '/v1/:venue/markets/:market_id/prices',
        operationId: 'getPrices',
        summary: 'Read the prices of a market',
        description: 'The latest price of each outcome, or the prices that were known at `as_of`.',
        query: pricesQuery,
        answer: { description: 'The prices.', data: prices, example: pricesExample },
        errors: ['no_data_yet', 'archive_unavailable'],
      },
      ({ params, query: { as_of } }) => {
        const scope = scopeOf(params.venue);
        const { name, venues } = scope;
        const marketId = params.market_id;
        checkAsOf(as_of, deps.now());
        const subject = as_of === undefined ? onlySubject(scope, marketId) : undefined;
        return {
          key: ['prices', name, marketId, as_of],
          remembered: () => subject && deps.memory?.prices(subject),
          load: async () => {
            const [known] = await pricesOf(venues, [marketId], as_of);
            if (!known) throw marketNotFound();
            if (as_of === undefined) deps.reads.note(known.pk);
            if (subject) deps.memory?.want(subject);
            const data = presentPrices(known);
            if (data === undefined) throw new ApiError('no_data_yet', 'this market has no known price at this moment');
            return { data, freshness: freshnessAt(as_of, deps.now()) };
          },
        };
      },
    ),
    marketRoute(
      {
        path: '/v1/:venue/prices',
        operationId: 'getManyPrices',
        summary: 'Read the prices of up to 100 markets',
        description: 'Markets without a price are listed in `meta.missing`.',
        query: batchPricesQuery,
        answer: {
          description: 'The prices, in the order of `market_ids`.',
          data: z.array(prices),
          example: [pricesExample],
          meta: batchPricesMeta,
          metaExample: { missing: [] },
        },
        errors: ['archive_unavailable'],
      },
      ({ params, query: { market_ids, as_of } }) => {
        const { name, venues } = scopeOf(params.venue);
        checkAsOf(as_of, deps.now());
        return {
          key: ['batch-prices', name, as_of, ...market_ids],
          remembered: () => {
            const [venue = '', ...others] = venues;
            const known = as_of === undefined && others.length === 0 && deps.memory?.pricesOf(venue, market_ids);
            if (!known) return undefined;
            const answer = prepare({ ...presentMany(known, market_ids), freshness: 'latest' }, deps);
            return { answer, pks: known.map(({ pk }) => pk) };
          },
          load: async () => {
            const known = await pricesOf(venues, market_ids, as_of);
            if (as_of === undefined) for (const { pk } of known) deps.reads.note(pk);
            return { ...presentMany(known, market_ids), freshness: freshnessAt(as_of, deps.now()) };
          },
        };
      },
    ),
  ];
}

/** The prices of these markets in the order of the ids, and the ids without a price. */
function presentMany(known: readonly MarketPrices[], marketIds: readonly string[]) {
  const presented = new Map(known.map((one) => [one.marketId, presentPrices(one)]));
  return {
    data: marketIds.flatMap((id) => presented.get(id) ?? []),
    meta: { missing: marketIds.filter((id) => presented.get(id) === undefined) },
  };
}
