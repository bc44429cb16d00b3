import { findMarketTokens, type MarketTokens } from '../../src/store/market-reads.ts';
import type { ApiContext, ApiDeps } from '../deps.ts';
import { ApiError, invalidRequest } from '../errors.ts';

/** Path segments that mean every enabled venue (DESIGN section 4, "Venue segment"). */
const EVERY_VENUE = ['all', 'venue'];

export interface VenueScope {
  /** The venue's name, or `all`. */
  name: string;
  venues: readonly string[];
}

/** The venues that the path segment means; one without markets is none here. Throws `venue_not_found`. */
export function venueScope(ctx: ApiContext, deps: Pick<ApiDeps, 'venues'>): VenueScope {
  const segment = pathParam(ctx, 'venue');
  const venues: string[] = deps.venues.filter(({ capabilities }) => capabilities.markets).map(({ venue }) => venue);
  if (EVERY_VENUE.includes(segment)) return { name: 'all', venues };
  if (venues.includes(segment)) return { name: segment, venues: [segment] };
  throw new ApiError('venue_not_found', `no such venue; there are: ${[...venues, 'all'].join(', ')}`);
}

/** A parameter of the matched path. */
export function pathParam(ctx: ApiContext, name: string): string {
  const value = ctx.params[name];
  if (value === undefined) throw new TypeError(`the route has no parameter ${name}`);
  return value;
}

export function marketNotFound(): ApiError {
  return new ApiError('market_not_found', 'no such market');
}

/** The market of the path with the keys of its outcomes; the read is noted. Throws `venue_not_found` or `market_not_found`. */
export async function marketOfPath(
  ctx: ApiContext,
  deps: Pick<ApiDeps, 'venues' | 'db' | 'reads'>,
): Promise<MarketTokens> {
  const { venues } = venueScope(ctx, deps);
  const market = await findMarketTokens(deps.db, venues, pathParam(ctx, 'market_id'));
  if (!market) throw marketNotFound();
  // Who reads the past, as a backtest does, has no use for fresher polls.
  if (ctx.query.as_of === undefined) deps.reads.note(market.pk);
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
