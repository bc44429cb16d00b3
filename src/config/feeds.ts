import { VENUE_NAMES, type VenueName } from '../domain/markets/venue.ts';

/** The venues that have a feed. */
const FEED_VENUES = ['polymarket', 'kalshi', 'manifold', 'limitless'] as const satisfies readonly VenueName[];
export type FeedVenue = (typeof FEED_VENUES)[number];

/** The public addresses. They are used only beside the public addresses of the venue's API, so that no test reads a real venue. */
export const PUBLIC_FEED_URLS: Readonly<Record<FeedVenue, string>> = {
  polymarket: 'wss://ws-subscriptions-clob.polymarket.com/ws/market',
  kalshi: 'wss://external-api-ws.kalshi.com/trade-api/ws/v2',
  manifold: 'wss://api.manifold.markets/ws',
  limitless: 'wss://ws.limitless.exchange/socket.io/?EIO=4&transport=websocket',
};

/** The settings of the venues' feeds. */
export interface FeedsConfig {
  /** The venues whose feeds are on. */
  readonly venues: readonly VenueName[];
  /** Markets per venue. */
  readonly markets: number;
  /** The WebSocket addresses; a venue without one has no feed. */
  readonly urls: Readonly<Partial<Record<FeedVenue, string>>>;
  /** Whether KALSHI_API_KEY_ID is set; the API has the id without the key. */
  readonly hasKalshiKeyId: boolean;
  readonly kalshiKey?: { readonly id: string; readonly file: string };
}

/** The reasons why configuration turns a feed off (docs/feeds.md#which-feeds-are-on). */
export type FeedOffReason = 'not_supported' | 'disabled' | 'no_address' | 'no_key';

/** Why configuration turns the feed of this venue off; undefined for a feed that a streamer reads. */
export function feedOffReason(
  venue: string,
  { venues, urls, hasKalshiKeyId }: Pick<FeedsConfig, 'venues' | 'urls' | 'hasKalshiKeyId'>,
): FeedOffReason | undefined {
  if (!isFeedVenue(venue)) return 'not_supported';
  if (!venues.includes(venue)) return 'disabled';
  if (urls[venue] === undefined) return 'no_address';
  return venue === 'kalshi' && !hasKalshiKeyId ? 'no_key' : undefined;
}

export function isFeedVenue(venue: string): venue is FeedVenue {
  return (FEED_VENUES as readonly string[]).includes(venue);
}

/** `on`, `off`, or venues. */
export function parseFeeds(text: string): VenueName[] {
  if (text === 'on') return [...VENUE_NAMES];
  if (text === 'off') return [];
  const names = text.split(',').map((name) => name.trim());
  const isVenue = (name: string): name is VenueName => (VENUE_NAMES as readonly string[]).includes(name);
  const known = names.filter(isVenue);
  if (known.length < names.length) throw new Error(`on, off, or a list of ${FEED_VENUES.join(', ')}`);
  return [...new Set(known)];
}
