import { describeLive } from './live.ts';
import { describeLiveHistory } from './live-history.ts';
import { describeRecorded } from './recorded.ts';
import type { VenueUnderTest } from './venue-under-test.ts';

/**
 * What every adapter must pass (DESIGN section 5). A venue joins by describing itself as a `VenueUnderTest` in a test file
 * of its own; nothing in here knows any venue.
 */
export function describeVenueAdapter(venue: VenueUnderTest): void {
  describeRecorded(venue);
  for (const live of venue.live) {
    describeLive(venue.name, live);
    describeLiveHistory(venue.name, live);
  }
}
