import type { MarketTokens } from '../../src/store/catalog/market-reads.ts';
import type { JournalStamp } from '../../src/store/journal/read-journal.ts';
import { ApiError, invalidRequest } from '../errors.ts';
import type { Validity } from '../reads/answer-cache.ts';
import { FILL_KINDS, type NamedKind, type Subject } from '../reads/journal-view.ts';
import type { MarketReadDeps, ReadDeps } from '../reads/read-deps.ts';

/** Path segments that mean every enabled venue (docs/api.md). */
const EVERY_VENUE = ['all', 'venue'];

export interface VenueScope {
  /** The venue's name, or `all`. */
  name: string;
  venues: readonly string[];
}

/** The enabled venues with markets, in their order. */
export function marketVenues(deps: Pick<ReadDeps, 'venues'>): string[] {
  return deps.venues.filter(({ capabilities }) => capabilities.markets).map(({ venue }) => venue);
}

/** Returns a function from a path segment to venues with markets. The function throws `venue_not_found`. */
export function venueScopes(deps: Pick<ReadDeps, 'venues'>): (segment: string) => VenueScope {
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
 * The read of a market. Records it unless it is a point-in-time read: a backtest needs no fresher polls.
 * @throws ApiError `market_not_found` without a market
 */
export function foundMarket<Read extends { market: { pk: bigint } }>(
  deps: Pick<MarketReadDeps, 'reads'>,
  read: Read | null,
  options: { isPast?: boolean } = {},
): Read {
  if (!read) throw marketNotFound();
  if (!options.isPast) deps.reads.note(read.market.pk);
  return read;
}

/** The market with this id in each venue of a scope: another venue can hide it. */
export function subjectsOf({ venues }: VenueScope, marketId: string): Subject[] {
  return venues.map((venue) => ({ venue, marketId }));
}

/** Series answers also show the market's outcomes and the coverage of its trades; `history` names late trades and candles. */
const SERIES_KINDS = {
  trade: new Set(['trade', 'history', 'market', 'coverage']),
  book: new Set(['book', 'book-seen', 'market', 'gap']),
  executable: FILL_KINDS,
  candle: new Set(['candle', 'history', 'market', 'coverage']),
} as const satisfies Record<string, ReadonlySet<NamedKind>>;

/** The validity of an answer about a series; undefined for one that changes without the journal (`forMs` 0). */
export function seriesValidity(
  scope: VenueScope,
  marketId: string,
  kind: keyof typeof SERIES_KINDS,
  { stamp, forMs }: { stamp: JournalStamp; forMs: number },
): Validity | undefined {
  if (forMs === 0) return undefined;
  return { stamp, subjects: subjectsOf(scope, marketId), kinds: SERIES_KINDS[kind], forMs };
}

/** The market of a scope of one venue, for the memory; undefined when several venues may have the id. */
export function onlySubject({ venues }: VenueScope, marketId: string): Subject | undefined {
  const [venue, ...others] = venues;
  return venue === undefined || others.length > 0 ? undefined : { venue, marketId };
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
