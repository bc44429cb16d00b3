import { VENUES, type VenueName, type VenueProfile } from '../../src/domain/markets/venue.ts';

/** An enabled venue: its profile and the cadence of its polls, which defines its freshness. */
export interface EnabledVenue extends VenueProfile {
  venue: VenueName;
  /** Cadence of each poll, milliseconds. */
  pollMs: Readonly<Record<'markets' | 'prices' | 'books' | 'trades' | 'tokens', number>>;
}

/** The enabled venues, in their order. `walletsOff` lists venues without configured wallets. */
export function enabledVenues(
  venues: readonly VenueName[],
  pollMs: Omit<EnabledVenue['pollMs'], 'tokens'>,
  walletsOff: readonly VenueName[] = [],
): EnabledVenue[] {
  return venues.map((venue) => {
    const { capabilities, ...profile } = VENUES[venue];
    const wallets = capabilities.wallets && !walletsOff.includes(venue);
    return {
      venue,
      pollMs: { ...pollMs, tokens: pollMs.prices },
      ...profile,
      capabilities: { ...capabilities, wallets },
    };
  });
}
