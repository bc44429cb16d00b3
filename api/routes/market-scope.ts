import { findMarketTokens, type MarketTokens } from '../../src/store/catalog/market-reads.ts';
import type { ApiDeps } from '../deps.ts';
import { ApiError, invalidRequest } from '../errors.ts';

/** Path segments that mean every enabled venue (docs/api.md). */
const EVERY_VENUE = ['all', 'venue'];

interface VenueScope {
  /** The venue's name, or `all`. */
  name: string;
  venues: readonly string[];
}

/** The enabled venues with markets, in their order. */
export function marketVenues(deps: Pick<ApiDeps, 'venues'>): string[] {
  return deps.venues.filter(({ capabilities }) => capabilities.markets).map(({ venue }) => venue);
}

/** Returns a function from a path segment to venues with markets. The function throws `venue_not_found`. */
export function venueScopes(deps: Pick<ApiDeps, 'venues'>): (segment: string) => VenueScope {
  const venues = marketVenues(deps);
  const all: VenueScope = { name: 'all', venues };
  const scopes = new Map<string, VenueScope>(venues.map((name) => [name, { name, venues: [name] }]));
  for (const name of EVERY_VENUE) scopes.set(name, all);
  return (segment) => {
    const scope = scopes.get(segment);
    if (!scope)
      throw new ApiError('venue_not_found', `no such venue; enabled venues: ${[...venues, 'all'].join(', ')}`);
    return scope;
  };
}

export function marketNotFound(): ApiError {
  return new ApiError('market_not_found', 'no such market');
}

/**
 * A market with the keys of its outcomes. Records the read unless it is a point-in-time read: a backtest needs no fresher polls.
 * @throws ApiError `market_not_found`
 */
export async function marketWithTokens(
  deps: Pick<ApiDeps, 'db' | 'reads'>,
  { venues }: VenueScope,
  marketId: string,
  options: { isPast?: boolean } = {},
): Promise<MarketTokens> {
  const market = await findMarketTokens(deps.db, venues, marketId);
  if (!market) throw marketNotFound();
  if (!options.isPast) deps.reads.note(market.pk);
  return market;
}

export type MarketOutcome = MarketTokens['outcomes'][number];

/**
 * The requested outcome, or by default the first outcome of the market. Undefined when the market has no outcomes.
 * @throws ApiError `invalid_request` when the outcome does not belong to the market.
 */
export function chooseOutcome(market: MarketTokens, outcomeId: string | undefined): MarketOutcome | undefined {
  if (outcomeId === undefined) return market.outcomes[0];
  const found = market.outcomes.find((outcome) => outcome.outcomeId === outcomeId);
  if (!found) throw invalidRequest([{ path: 'outcome_id', message: 'is not an outcome of this market' }]);
  return found;
}
