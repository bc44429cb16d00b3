import { OddswireError } from '../domain/errors.ts';
import type { VenueName } from '../domain/venue.ts';
import { createKalshiAdapter } from './kalshi/adapter.ts';
import { createManifoldAdapter } from './manifold/adapter.ts';
import type { VenueObserver } from './observer.ts';
import { createPolymarketAdapter } from './polymarket/adapter.ts';
import type { PolymarketUrls } from './polymarket/client.ts';
import type { VenueAdapter } from './port.ts';

/** Where the venues' hosts are, by venue; each adapter reads its own entry. */
export interface VenueUrls {
  readonly polymarket: Readonly<PolymarketUrls>;
  readonly kalshi: string;
  readonly manifold: string;
}

interface Making {
  urls: VenueUrls;
  observer?: VenueObserver;
}

/** One line a venue: this is all that the rest of oddswire needs to know of it. */
const ADAPTERS: Readonly<Record<VenueName, (making: Making) => VenueAdapter>> = {
  polymarket: ({ urls, observer }) => createPolymarketAdapter({ urls: urls.polymarket, ...(observer && { observer }) }),
  kalshi: ({ urls, observer }) => createKalshiAdapter({ url: urls.kalshi, ...(observer && { observer }) }),
  manifold: ({ urls, observer }) => createManifoldAdapter({ url: urls.manifold, ...(observer && { observer }) }),
};

function isKnown(venue: string): venue is VenueName {
  return Object.hasOwn(ADAPTERS, venue);
}

/**
 * The adapters of these venues by name. They hold sockets: `close()` each.
 * @throws OddswireError `unknown_venue` that lists the known ones.
 */
export function createAdapters(options: {
  venues: readonly string[];
  urls: VenueUrls;
  observer?: VenueObserver;
}): Map<string, VenueAdapter> {
  const unknown = options.venues.filter((venue) => !isKnown(venue));
  if (unknown.length > 0) {
    const known = Object.keys(ADAPTERS).join(', ');
    throw new OddswireError('unknown_venue', `unknown venue ${unknown.join(', ')}; known: ${known}`);
  }
  const adapters = new Map<string, VenueAdapter>();
  for (const venue of options.venues.filter(isKnown)) adapters.set(venue, ADAPTERS[venue](options));
  return adapters;
}
