import type { Channel } from '../../../src/domain/live/change.ts';
import { ORDER_SIDES, type OrderSide } from '../../../src/domain/markets/market.ts';
import { VENUES, type VenueName, type VenueProfile } from '../../../src/domain/markets/venue.ts';
import { type Decimal, scaleOf } from '../../../src/domain/values/decimal.ts';
import {
  isKnownCategory,
  type NamedMarket,
  type NamedOutcome,
  readNamedMarkets,
  readNamedOutcomes,
  readOutcomesOf,
} from '../../../src/store/catalog/market-categories.ts';
import type { Queryable } from '../../../src/store/db/tx.ts';
import { ApiError, type ErrorDetail, invalidRequest } from '../../errors.ts';
import { mayTrade } from '../../reads/cold-read.ts';
import type { WatchedOrders } from '../executable/value.ts';
import type { Filter } from '../filter.ts';

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

const MAX_OUTCOMES = 100;

interface OrdersRequest {
  channels?: readonly Channel[] | undefined;
  market_ids?: readonly string[] | undefined;
  /** Those that the request names. */
  outcomes?: readonly NamedOutcome[] | undefined;
  sizes?: readonly Decimal[] | undefined;
  side?: OrderSide | undefined;
}

/**
 * The orders of a request with the channel `executable`; undefined without it.
 * @throws ApiError `invalid_request` that names each field that is missing, or excludes every value
 */
async function ordersOf(
  db: Queryable,
  { venues }: { venues: readonly string[] },
  request: OrdersRequest,
): Promise<WatchedOrders | undefined> {
  const { channels = [], market_ids, sizes, side } = request;
  if (!channels.includes('executable')) {
    const alone = Object.entries({ sizes, side }).flatMap(([path, value]) => (value === undefined ? [] : [path]));
    if (alone.length === 0) return undefined;
    throw invalidRequest(alone.map((path) => ({ path, message: 'needs the channel executable' })));
  }
  const missing: ErrorDetail[] = [];
  if (sizes === undefined) missing.push({ path: 'sizes', message: 'is required with the channel executable' });
  if (market_ids === undefined && request.outcomes === undefined)
    missing.push({ path: 'market_ids', message: 'or outcome_ids is required with the channel executable' });
  if (sizes === undefined || missing.length > 0) throw invalidRequest(missing);
  const outcomes = request.outcomes ?? (await readOutcomesOf(db, venues, market_ids ?? [], MAX_OUTCOMES + 1));
  const path = request.outcomes === undefined ? 'market_ids' : 'outcome_ids';
  const faults = faultsOf(outcomes, sizes, path);
  if (faults.length > 0) throw invalidRequest(faults);
  return { outcomes, sizes: [...new Set(sizes)], sides: side === undefined ? ORDER_SIDES : [side] };
}

function faultsOf(outcomes: readonly NamedOutcome[], sizes: readonly Decimal[], path: string): ErrorDetail[] {
  if (outcomes.length > MAX_OUTCOMES)
    return [{ path, message: `the channel executable takes at most ${MAX_OUTCOMES} outcomes` }];
  const withoutBook = outcomes.filter(
    (outcome) => digitsOf(outcome) === undefined || (mayTrade(outcome) && !outcome.hasBook),
  );
  const ids = withoutBook.map(({ marketId, outcomeId }) => (path === 'market_ids' ? marketId : outcomeId));
  const names = listed([...new Set(ids)]);
  if (names !== undefined) return [{ path, message: `without an orderbook: ${names}` }];
  const digits = Math.min(...outcomes.map((outcome) => digitsOf(outcome) ?? 0));
  const isTooFine = sizes.some((size) => scaleOf(size) > digits);
  return isTooFine ? [{ path: 'sizes', message: `must have at most ${digits} digits after the point` }] : [];
}

function digitsOf({ venue }: NamedOutcome): number | undefined {
  const profile: VenueProfile = VENUES[venue as VenueName];
  return profile.sizeDigits;
}

/** The first names of a list; undefined when it is empty. */
function listed(names: readonly string[]): string | undefined {
  if (names.length === 0) return undefined;
  return `${names.slice(0, 5).join(', ')}${names.length > 5 ? ', …' : ''}`;
}
