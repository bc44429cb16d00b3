/** What `GET /v1/venues` tells of an adapter beside its freshness. The API never imports the adapters themselves. */
export interface VenueProfile {
  venue: string;
  title: string;
  /** What its prices are in. */
  currency: string;
  capabilities: Readonly<Record<'markets' | 'prices' | 'books' | 'trades', boolean>>;
  /** Cadence of each poll, milliseconds: what its freshness is measured by. */
  pollMs: Readonly<Record<'markets' | 'prices' | 'books' | 'trades', number>>;
}

const PROFILES: Readonly<Record<string, Omit<VenueProfile, 'venue' | 'pollMs'>>> = {
  polymarket: {
    title: 'Polymarket',
    currency: 'USD',
    capabilities: { markets: true, prices: true, books: true, trades: true },
  },
};

/** The profiles of the enabled adapters, in their order. A name the table does not know is shown by its name. */
export function venueProfiles(venues: readonly string[], pollMs: VenueProfile['pollMs']): VenueProfile[] {
  const unknown = { currency: 'USD', capabilities: { markets: true, prices: true, books: true, trades: true } };
  return venues.map((venue) => ({ venue, pollMs, ...(PROFILES[venue] ?? { title: venue, ...unknown }) }));
}
