import type { Channel } from '../../../src/domain/live/change.ts';
import type { OrderSide } from '../../../src/domain/markets/executable.ts';
import type { Decimal } from '../../../src/domain/values/decimal.ts';
import {
  isKnownCategory,
  type NamedMarket,
  type NamedOutcome,
  readNamedMarkets,
  readNamedOutcomes,
} from '../../../src/store/catalog/market-categories.ts';
import type { Queryable } from '../../../src/store/db/tx.ts';
import { ApiError, type ErrorDetail, invalidRequest } from '../../errors.ts';
import type { Filter } from '../filter.ts';
import { listed } from './listed.ts';
import { ordersOf } from './requested-orders.ts';

/** The checked fields of a request for a stream. */
interface FilterRequest {
  channels?: readonly Channel[] | undefined;
  market_ids?: readonly string[] | undefined;
  outcome_ids?: readonly string[] | undefined;
  category?: string | undefined;
  snapshot?: boolean | undefined;
  /** Of the channel `executable`. */
  sizes?: readonly Decimal[] | undefined;
  side?: OrderSide | undefined;
}

/**
 * The filter of a request.
 * @throws ApiError `market_not_found` or `invalid_request` that names unknown ids, an unknown category, and ids that the rest of the filter
 *   excludes: a stream of them would look like a quiet market
 */
export async function filterOf(
  db: Queryable,
  scope: { name: string; venues: readonly string[] },
  request: FilterRequest,
): Promise<Filter> {
  const { channels = ['prices'], market_ids, outcome_ids, category, snapshot } = request;
  if (snapshot && (market_ids === undefined || !channels.includes('prices'))) {
    throw invalidRequest([{ path: 'snapshot', message: 'needs market_ids and the channel prices' }]);
  }
  const markets = market_ids && (await readNamedMarkets(db, scope.venues, market_ids));
  if (markets) {
    const known = new Set(markets.map(({ marketId }) => marketId));
    const unknown = listed(market_ids.filter((id) => !known.has(id)));
    if (unknown !== undefined) throw new ApiError('market_not_found', `no such market: ${unknown}`);
  }
  const outcomes = outcome_ids && (await readNamedOutcomes(db, scope.venues, outcome_ids));
  if (outcomes) {
    const known = new Set(outcomes.map(({ outcomeId }) => outcomeId));
    const unknown = listed(outcome_ids.filter((id) => !known.has(id)));
    if (unknown !== undefined) throw invalidRequest([{ path: 'outcome_ids', message: `no such outcome: ${unknown}` }]);
  }
  if (category !== undefined && !(await isKnownCategory(db, scope.venues, category))) {
    throw invalidRequest([{ path: 'category', message: 'no market of the venue has this category' }]);
  }
  const excluded = contradictions({ channels, markets, outcomes, category });
  if (excluded.length > 0) throw invalidRequest(excluded);
  const orders = await ordersOf(db, scope, { ...request, outcomes });
  // A stream of values alone gets no changes, only gaps of its markets.
  const ofOrders = channels.every((channel) => channel === 'executable')
    ? orders?.outcomes.map(({ marketId }) => marketId)
    : undefined;
  const chosen = market_ids ?? ofOrders;
  return {
    channels,
    venue: scope.name,
    venues: scope.venues,
    ...(chosen !== undefined && { marketIds: new Set(chosen) }),
    ...(outcome_ids !== undefined && { outcomeIds: new Set(outcome_ids) }),
    ...(category !== undefined && { category }),
    ...(orders && { orders }),
  };
}

interface NamedFilter {
  channels: readonly Channel[];
  markets: readonly NamedMarket[] | undefined;
  outcomes: readonly NamedOutcome[] | undefined;
  category: string | undefined;
}

/** The ids of a filter for which it can send nothing, because another part of it excludes them. */
function contradictions({ channels, markets, outcomes, category }: NamedFilter): ErrorDetail[] {
  const isInCategory = (market: NamedMarket) => category === undefined || market.category === category;
  const chosen = markets && new Set(markets.map(({ marketId }) => marketId));
  const details: ErrorDetail[] = [];
  const exclude = (path: string, what: string, asked: readonly string[], kept: readonly string[]) => {
    const excluded = listed([...new Set(asked)].filter((id) => !kept.includes(id)));
    if (excluded !== undefined) details.push({ path, message: `${what}: ${excluded}` });
  };
  if (markets) {
    const ids = markets.map(({ marketId }) => marketId);
    exclude(
      'market_ids',
      'not in the category',
      ids,
      markets.filter(isInCategory).map(({ marketId }) => marketId),
    );
    // Changes of a market itself name no outcome.
    const ofOutcomes = outcomes?.map(({ marketId }) => marketId);
    if (ofOutcomes && !channels.some((channel) => channel === 'markets' || channel === 'resolutions'))
      exclude('market_ids', 'without an outcome of outcome_ids', ids, ofOutcomes);
  }
  if (outcomes) {
    const ids = outcomes.map(({ outcomeId }) => outcomeId);
    const idsOf = (kept: readonly NamedOutcome[]) => kept.map(({ outcomeId }) => outcomeId);
    exclude('outcome_ids', 'not in the category', ids, idsOf(outcomes.filter(isInCategory)));
    exclude(
      'outcome_ids',
      'no outcome of market_ids',
      ids,
      idsOf(outcomes.filter(({ marketId }) => chosen?.has(marketId) ?? true)),
    );
  }
  return details;
}
