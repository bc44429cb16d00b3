import { VENUES, type VenueName, type VenueProfile } from '../src/domain/venue.ts';

/** An enabled venue: its profile and how often each kind is polled, which is what its freshness is measured by. */
export interface EnabledVenue extends VenueProfile {
  venue: VenueName;
  /** Cadence of each poll, milliseconds. */
  pollMs: Readonly<Record<'markets' | 'prices' | 'books' | 'trades', number>>;
}

/** The enabled venues, in their order. */
export function enabledVenues(venues: readonly VenueName[], pollMs: EnabledVenue['pollMs']): EnabledVenue[] {
  return venues.map((venue) => ({ venue, pollMs, ...VENUES[venue] }));
}
