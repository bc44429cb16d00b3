import { describeLive } from './live.ts';
import { describeLiveHistory } from './live-history.ts';
import { describeLivePrices } from './live-prices.ts';
import { describeRecorded } from './recordings/recorded.ts';
import type { VenueUnderTest } from './venue-under-test.ts';

/**
 * The suite of every adapter. A venue joins by describing itself as a `VenueUnderTest` in a test file of its own; the suite contains
 * nothing about particular venues.
 */
export function describeVenueAdapter(venue: VenueUnderTest): void {
  describeRecorded(venue);
  for (const live of venue.live) {
    describeLive(venue.name, live);
    describeLiveHistory(venue.name, live);
    describeLivePrices(venue.name, live);
  }
}
