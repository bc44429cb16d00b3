import { VENUES, type VenueName } from '../../src/domain/markets/venue.ts';
import { PUBLIC_ONLY } from '../../src/domain/webhooks/address-policy.ts';
import { enabledVenues } from '../reads/venue-catalog.ts';
import { asyncApiText, openApiText } from '../routes/documents.ts';
import type { RoutesDeps } from './api-deps.ts';
import { routeTable } from './app.ts';

const POLL_MS = { markets: 0, prices: 0, books: 0, trades: 0 };

/**
 * The OpenAPI document of a service with all venues and default configuration. Clients are generated from it. No route runs, so the
 * table gets only the dependencies of the document.
 */
export function referenceDocument(): string {
  const deps = describedDeps();
  return openApiText(deps, routeTable(deps));
}

/** The AsyncAPI document of the same service. */
export function referenceAsyncDocument(): string {
  return asyncApiText(describedDeps());
}

function describedDeps(): RoutesDeps {
  const described: Pick<RoutesDeps, 'venues' | 'decimalFormat' | 'addressRules' | 'now'> = {
    venues: enabledVenues(Object.keys(VENUES) as VenueName[], POLL_MS),
    decimalFormat: 'number',
    addressRules: PUBLIC_ONLY,
    now: () => 0,
  };
  return described as RoutesDeps;
}
