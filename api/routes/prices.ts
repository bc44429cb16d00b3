import { z } from 'zod';
import { type ApiJson, numberField, optionalDecimal } from '../../src/domain/api-json.ts';
import { compareDecimals, decimal, ONE, ZERO } from '../../src/domain/decimal.ts';
import { type MarketPrices, readPrices } from '../../src/store/price-reads.ts';
import type { ApiDeps, ApiRouter } from '../deps.ts';
import { ApiError } from '../errors.ts';
import { checkAsOf, param, readQuery } from '../input.ts';
import { authenticate } from '../middleware/authenticate.ts';
import { freshnessAt } from '../point-in-time.ts';
import { epochSeconds, sendMarketData } from '../respond.ts';
import { marketNotFound, pathParam, venueScope } from './market-scope.ts';

const MAX_BATCH = 100;
const MAX_ID_LENGTH = 256;
const BATCH_RULE = `must be a comma list of 1 to ${MAX_BATCH} market ids of 1 to ${MAX_ID_LENGTH} characters`;

const pricesQuery = z.object({ as_of: param.asOf });
const batchQuery = z.object({
  market_ids: z
    .string(BATCH_RULE)
    .transform((list) => [...new Set(list.split(','))])
    .refine((ids) => ids.length <= MAX_BATCH && ids.every((id) => id !== '' && id.length <= MAX_ID_LENGTH), BATCH_RULE),
  as_of: param.asOf,
});

/** GET /v1/{venue}/markets/{market_id}/prices and, for up to 100 markets at once, /v1/{venue}/prices. */
export function priceRoutes(router: ApiRouter, deps: ApiDeps): void {
  const enter = authenticate(deps, { header: 'Authorization', scope: 'markets:read' });

  router.get('/v1/:venue/markets/:market_id/prices', enter, async (ctx) => {
    const { name, venues } = venueScope(ctx, deps);
    const marketId = pathParam(ctx, 'market_id');
    const { as_of } = readQuery(ctx, pricesQuery);
    checkAsOf(as_of, deps.now());
    await sendMarketData(ctx, deps, {
      key: ['prices', name, marketId, as_of],
      load: async () => {
        const [prices] = await readPrices(deps.db, venues, [marketId], as_of);
        if (!prices) throw marketNotFound();
        if (as_of === undefined) deps.reads.note(prices.pk);
        const data = presentPrices(prices);
        if (data === undefined) throw new ApiError('no_data_yet', 'no price of this market had been seen yet');
        return { data, freshness: freshnessAt(as_of, deps.now()) };
      },
    });
  });

  router.get('/v1/:venue/prices', enter, async (ctx) => {
    const { name, venues } = venueScope(ctx, deps);
    const { market_ids, as_of } = readQuery(ctx, batchQuery);
    checkAsOf(as_of, deps.now());
    await sendMarketData(ctx, deps, {
      key: ['batch-prices', name, as_of, ...market_ids],
      load: async () => {
        const known = await readPrices(deps.db, venues, market_ids, as_of);
        if (as_of === undefined) for (const { pk } of known) deps.reads.note(pk);
        const presented = new Map(known.map((prices) => [prices.marketId, presentPrices(prices)]));
        return {
          data: market_ids.flatMap((id) => presented.get(id) ?? []),
          meta: { missing: market_ids.filter((id) => presented.get(id) === undefined) },
          freshness: freshnessAt(as_of, deps.now()),
        };
      },
    });
  });
}

/**
 * A price snapshot (spec section 2.4): one item per outcome, `as_of` the newest of them. Undefined when no outcome has a
 * price yet.
 */
function presentPrices({ marketId, outcomes }: MarketPrices): ApiJson | undefined {
  const times = outcomes.flatMap(({ asOf }) => (asOf === null ? [] : [asOf.getTime()]));
  if (times.length === 0) return undefined;
  return {
    market_id: marketId,
    as_of: epochSeconds(new Date(Math.max(...times))),
    outcomes: outcomes.map(({ outcomeId, price, bid, ask }) => ({
      outcome_id: outcomeId,
      price: optionalDecimal(price),
      probability: price === null ? undefined : probability(price),
      best_bid: optionalDecimal(bid),
      best_ask: optionalDecimal(ask),
    })),
  };
}

/** What a share pays 1 on costs is its probability; a price outside 0..1 is none. */
function probability(price: string) {
  const value = decimal(price);
  return compareDecimals(value, ZERO) >= 0 && compareDecimals(value, ONE) <= 0 ? numberField(price) : undefined;
}
