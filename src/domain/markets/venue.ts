/**
 * The features of a venue. `GET /v1/venues` shows them, and the poller's schedules follow them. `history`: the trades of one market
 * can be read back to its start. `wallets` can be watched. `tokens` have prices by mint, without markets.
 */
type VenueCapabilities = Readonly<
  Record<'markets' | 'prices' | 'books' | 'trades' | 'history' | 'wallets' | 'tokens', boolean>
>;

/** Constant facts about a venue. */
export interface VenueProfile {
  readonly title: string;
  /** The currency of its prices, in which alerts compare. MANA is play money. */
  readonly currency: string;
  readonly capabilities: VenueCapabilities;
  /** Digits after the point of the size of an order. Absent for a venue without books. */
  readonly sizeDigits?: number;
}

const MARKET_DATA = {
  markets: true,
  prices: true,
  books: true,
  trades: true,
  history: true,
  wallets: false,
  tokens: false,
} as const;

const NO_MARKETS = {
  markets: false,
  prices: false,
  books: false,
  trades: false,
  history: false,
} as const;

/** The venues that have an adapter. */
export const VENUES = {
  polymarket: { title: 'Polymarket', currency: 'USD', capabilities: { ...MARKET_DATA, wallets: true }, sizeDigits: 2 },
  kalshi: { title: 'Kalshi', currency: 'USD', capabilities: MARKET_DATA, sizeDigits: 2 },
  manifold: { title: 'Manifold', currency: 'MANA', capabilities: { ...MARKET_DATA, books: false } },
  limitless: { title: 'Limitless', currency: 'USD', capabilities: MARKET_DATA, sizeDigits: 6 },
  solana: { title: 'Solana', currency: 'USD', capabilities: { ...NO_MARKETS, wallets: true, tokens: true } },
} as const satisfies Record<string, VenueProfile>;

export type VenueName = keyof typeof VENUES;
export const VENUE_NAMES = Object.keys(VENUES) as VenueName[];
