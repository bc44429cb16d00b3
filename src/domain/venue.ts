/** What a venue offers; `GET /v1/venues` shows it and the poller schedules by it. */
export type VenueCapabilities = Readonly<Record<'markets' | 'prices' | 'books' | 'trades', boolean>>;

/** What is known of a venue without asking it. */
export interface VenueProfile {
  readonly title: string;
  /** What its prices are in: alerts compare in it. MANA is play money. */
  readonly currency: string;
  readonly capabilities: VenueCapabilities;
}

const EVERYTHING = { markets: true, prices: true, books: true, trades: true } as const;

/** The venues that have an adapter. */
export const VENUES = {
  polymarket: { title: 'Polymarket', currency: 'USD', capabilities: EVERYTHING },
  kalshi: { title: 'Kalshi', currency: 'USD', capabilities: EVERYTHING },
  manifold: { title: 'Manifold', currency: 'MANA', capabilities: { ...EVERYTHING, books: false } },
} as const satisfies Record<string, VenueProfile>;

export type VenueName = keyof typeof VENUES;
export const VENUE_NAMES = Object.keys(VENUES) as VenueName[];
