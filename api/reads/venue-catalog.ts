import { VENUES, type VenueName, type VenueProfile } from '../../src/domain/markets/venue.ts';

/** An enabled venue: its profile and the cadence of its polls, which defines its freshness. */
export interface EnabledVenue extends VenueProfile {
  venue: VenueName;
  /** Cadence of each poll, milliseconds. */
  pollMs: Readonly<Record<'markets' | 'prices' | 'books' | 'trades' | 'tokens', number>>;
  /** Why the configuration turns its feed off; absent for a feed that is on. */
  feedOff?: string;
}

/** Where configuration turns parts of venues off. */
interface OffParts {
  /** Venues without configured wallets. */
  readonly wallets?: readonly VenueName[];
  /** The reason for a venue without a configured feed. */
  readonly feed?: (venue: VenueName) => string | undefined;
}

/** The enabled venues, in their order. */
export function enabledVenues(
  venues: readonly VenueName[],
  pollMs: Omit<EnabledVenue['pollMs'], 'tokens'>,
  off: OffParts = {},
): EnabledVenue[] {
  return venues.map((venue) => {
    const { capabilities, ...profile } = VENUES[venue];
    const wallets = capabilities.wallets && !off.wallets?.includes(venue);
    const feedOff = off.feed?.(venue);
    return {
      venue,
      pollMs: { ...pollMs, tokens: pollMs.prices },
      ...profile,
      capabilities: { ...capabilities, wallets },
      ...(feedOff !== undefined && { feedOff }),
    };
  });
}

/** The reasons of the feeds that the configuration turns off, by venue. */
export function feedsOff(venues: readonly EnabledVenue[]): Map<string, string> {
  return new Map(venues.flatMap(({ venue, feedOff }) => (feedOff === undefined ? [] : [[venue, feedOff]])));
}
