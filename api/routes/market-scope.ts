import { findMarketTokens, type MarketTokens } from '../../src/store/catalog/market-reads.ts';
import type { ApiDeps } from '../deps.ts';
import { ApiError, invalidRequest } from '../errors.ts';

/** Path segments that mean every enabled venue (DESIGN section 4, "Venue segment"). */
const EVERY_VENUE = ['all', 'venue'];

interface VenueScope {
  /** The venue's name, or `all`. */
  name: string;
  venues: readonly string[];
}

/** The venues that have markets, in their order. */
export function marketVenues(deps: Pick<ApiDeps, 'venues'>): string[] {
  return deps.venues.filter(({ capabilities }) => capabilities.markets).map(({ venue }) => venue);
}

/**
 * What tells the venues that a path segment means; one without markets is none here. What it gives throws `venue_not_found`.
 */
export function venueScopes(deps: Pick<ApiDeps, 'venues'>): (segment: string) => VenueScope {
  const venues = marketVenues(deps);
  const all: VenueScope = { name: 'all', venues };
  const scopes = new Map<string, VenueScope>(venues.map((name) => [name, { name, venues: [name] }]));
  for (const name of EVERY_VENUE) scopes.set(name, all);
  return (segment) => {
    const scope = scopes.get(segment);
    if (!scope) throw new ApiError('venue_not_found', `no such venue; there are: ${[...venues, 'all'].join(', ')}`);
    return scope;
  };
}

export function marketNotFound(): ApiError {
  return new ApiError('market_not_found', 'no such market');
}

/**
 * A market with the keys of its outcomes. The read is noted, unless it is of the past: who reads that, as a backtest does, has no
 * use for fresher polls. Throws `market_not_found`.
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
 * The outcome a series is of: the one asked for, else the market's first. Throws `invalid_request` when it is not one of the
 * market's; undefined when the market has none at all.
 */
export function chooseOutcome(market: MarketTokens, outcomeId: string | undefined): MarketOutcome | undefined {
  if (outcomeId === undefined) return market.outcomes[0];
  const found = market.outcomes.find((outcome) => outcome.outcomeId === outcomeId);
  if (!found) throw invalidRequest([{ path: 'outcome_id', message: 'is not an outcome of this market' }]);
  return found;
}
