import { z } from 'zod';
import { readVenueFacts, type VenueFacts } from '../../src/store/catalog/venue-reads.ts';
import { type VenueBody, venue, venueExample } from '../contract/venue.ts';
import type { ApiDeps } from '../deps.ts';
import { epochSeconds } from '../http/respond.ts';
import { marketRoute, type Route } from '../http/route.ts';
import { isPollHealthy, isScheduledPoll } from '../reads/poll-health.ts';
import type { EnabledVenue } from '../reads/venue-catalog.ts';

/** GET /v1/venues: the enabled venues, their capabilities and their freshness. */
export function venueRoutes(deps: ApiDeps): Route[] {
  const names = deps.venues.map((profile) => profile.venue);
  return [
    marketRoute(
      {
        path: '/v1/venues',
        operationId: 'listVenues',
        summary: 'List the enabled venues',
        answer: { description: 'The venues.', data: z.array(venue), example: [venueExample] },
      },
      () => ({
        key: ['venues'],
        load: async () => {
          const facts = await readVenueFacts(deps.db, names);
          const nowMs = deps.now();
          const data = deps.venues.map((profile) => presentVenue(profile, facts.get(profile.venue), nowMs));
          return { data, freshness: 'latest' };
        },
      }),
    ),
  ];
}

/** `lag_seconds` is the age of the stalest kind of scheduled poll. `failing` lists the failing polls with their errors. */
function presentVenue(profile: EnabledVenue, facts: VenueFacts | undefined, nowMs: number): VenueBody {
  const { venue, title, currency, capabilities, pollMs } = profile;
  const polls = facts?.polls ?? [];
  const scheduled = polls.filter(({ kind }) => isScheduledPoll(kind, pollMs));
  const successes = scheduled.flatMap(({ lastSuccessAt }) => (lastSuccessAt === null ? [] : [lastSuccessAt.getTime()]));
  const isHealthy = scheduled.length > 0 && scheduled.every((poll) => isPollHealthy(poll, pollMs, nowMs));
  const hasSucceeded = successes.length > 0;
  const failing = polls.flatMap(({ kind, consecutiveFailures, lastError }) =>
    lastError === null ? [] : [{ kind, failures: consecutiveFailures, reason: lastError }],
  );
  return {
    venue,
    title,
    currency,
    capabilities,
    healthy: isHealthy,
    failing: failing.length > 0 ? failing : undefined,
    last_success_at: hasSucceeded ? epochSeconds(new Date(Math.max(...successes))) : undefined,
    lag_seconds: hasSucceeded ? Math.max(0, Math.floor((nowMs - Math.min(...successes)) / 1000)) : undefined,
    markets: facts?.markets ?? 0,
  };
}
