import { OddswireError } from '../domain/errors.ts';
import type { VenueObserver } from './observer.ts';
import { createPolymarketAdapter } from './polymarket/adapter.ts';
import type { PolymarketUrls } from './polymarket/client.ts';
import type { VenueAdapter } from './port.ts';

/** Where the venues' hosts are, by venue; each adapter reads its own entry. */
export interface VenueUrls {
  readonly polymarket: Readonly<PolymarketUrls>;
}

interface Making {
  urls: VenueUrls;
  observer?: VenueObserver;
}

/** One line a venue: this is all that the rest of oddswire needs to know of it. */
const ADAPTERS: Readonly<Record<string, (making: Making) => VenueAdapter>> = {
  polymarket: ({ urls, observer }) => createPolymarketAdapter({ urls: urls.polymarket, ...(observer && { observer }) }),
};

/**
 * The adapters of these venues by name. They hold sockets: `close()` each.
 * @throws OddswireError `unknown_venue` that lists the known ones.
 */
export function createAdapters(options: {
  venues: readonly string[];
  urls: VenueUrls;
  observer?: VenueObserver;
}): Map<string, VenueAdapter> {
  const unknown = options.venues.filter((venue) => !Object.hasOwn(ADAPTERS, venue));
  if (unknown.length > 0) {
    const known = Object.keys(ADAPTERS).join(', ');
    throw new OddswireError('unknown_venue', `unknown venue ${unknown.join(', ')}; known: ${known}`);
  }
  const adapters = new Map<string, VenueAdapter>();
  for (const venue of options.venues) {
    const adapter = ADAPTERS[venue]?.(options);
    if (adapter) adapters.set(venue, adapter);
  }
  return adapters;
}
