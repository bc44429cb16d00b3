import { z } from 'zod';
import { withoutAddresses } from '../../src/domain/values/failure-reasons.ts';
import { readVenueFacts, type VenueFacts } from '../../src/store/catalog/venue-reads.ts';
import type { VenueFreshness } from '../../src/store/prices/freshness.ts';
import { readVenueCompleteness, type VenueCompleteness } from '../../src/store/series/completeness.ts';
import { type VenueBody, venue, venueExample } from '../contract/venue.ts';
import { epochSeconds } from '../http/respond.ts';
import { marketRoute, type Route } from '../http/route.ts';
import { presentCompleteness } from '../reads/completeness.ts';
import { presentFeed, readVenueFeeds } from '../reads/feed-states.ts';
import { areHealthy, isIdlePoll, isScheduledPoll } from '../reads/poll-health.ts';
import type { ReadDeps } from '../reads/read-deps.ts';
import type { EnabledVenue } from '../reads/venue-catalog.ts';

/** The kinds of poll, each with the capability of its name. */
const POLLED = ['markets', 'prices', 'books', 'trades', 'tokens'] as const;

/** GET /v1/venues: the enabled venues, their capabilities and their freshness. */
export function venueRoutes(deps: ReadDeps): Route[] {
  const names = deps.venues.map((profile) => profile.venue);
  return [
    marketRoute(
      {
        path: '/v1/venues',
        operationId: 'listVenues',
        summary: 'List the enabled venues',
        description: 'Capabilities, the health of the polls, and the age of the prices of each venue.',
        answer: { description: 'The venues.', data: z.array(venue), example: [venueExample] },
      },
      () => ({
        key: ['venues'],
        load: async () => {
          const [facts, completeness, feeds] = await Promise.all([
            readVenueFacts(deps.db, names),
            readVenueCompleteness(deps.db, names),
            readVenueFeeds(deps),
          ]);
          const nowMs = deps.now();
          const data = deps.venues.map((profile) => {
            const { venue } = profile;
            const feed = feeds.states.get(venue);
            return {
              ...presentVenue(profile, facts.get(venue), completeness.get(venue), nowMs),
              feed: feed && presentFeed(feed, feeds.recent.get(venue) ?? 0),
            };
          });
          return { data, freshness: 'latest' };
        },
      }),
    ),
  ];
}

/**
 * `lag_seconds` is the age of the stalest kind of scheduled poll that has anything to request. `failing` lists the failing polls with their
 * errors, without addresses.
 */
function presentVenue(
  profile: EnabledVenue,
  facts: VenueFacts | undefined,
  completeness: VenueCompleteness | undefined,
  nowMs: number,
): VenueBody {
  const { venue, title, currency, capabilities, pollMs } = profile;
  const polls = facts?.polls ?? [];
  const scheduled = polls.filter(({ kind }) => isScheduledPoll(kind, pollMs));
  const timeOf = ({ lastSuccessAt }: { lastSuccessAt: Date | null }) =>
    lastSuccessAt === null ? [] : [lastSuccessAt.getTime()];
  const successes = scheduled.flatMap(timeOf);
  const awaited = scheduled.filter((poll) => !isIdlePoll(poll)).flatMap(timeOf);
  const succeeded = new Set(scheduled.filter(({ lastSuccessAt }) => lastSuccessAt !== null).map(({ kind }) => kind));
  const never = POLLED.filter((kind) => capabilities[kind] && !succeeded.has(kind));
  const expected = POLLED.filter((kind) => capabilities[kind] && isScheduledPoll(kind, pollMs));
  const known = new Set<string>([...expected, ...scheduled.map(({ kind }) => kind)]);
  const isHealthy = areHealthy([...known], scheduled, pollMs, nowMs);
  const failing = polls.flatMap(({ kind, consecutiveFailures, lastError }) =>
    lastError === null ? [] : [{ kind, failures: consecutiveFailures, reason: withoutAddresses(lastError) }],
  );
  return {
    venue,
    title,
    currency,
    capabilities,
    healthy: isHealthy,
    failing: failing.length > 0 ? failing : undefined,
    never_succeeded: never.length > 0 ? never : undefined,
    last_success_at: successes.length > 0 ? epochSeconds(new Date(Math.max(...successes))) : undefined,
    lag_seconds: awaited.length > 0 ? Math.max(0, Math.floor((nowMs - Math.min(...awaited)) / 1000)) : undefined,
    markets: facts?.markets ?? 0,
    completeness: presentCompleteness(completeness, nowMs, pollMs.trades),
    price_age: facts?.freshness && presentPriceAge(facts.freshness),
  };
}

function presentPriceAge(freshness: VenueFreshness): VenueBody['price_age'] {
  const { p50Ms, p99Ms, maxMs, markets, unpriced, measuredAt } = freshness;
  const seconds = (ms: bigint | null) => (ms === null ? undefined : Number(ms) / 1000);
  return {
    p50_seconds: seconds(p50Ms),
    p99_seconds: seconds(p99Ms),
    max_seconds: seconds(maxMs),
    markets,
    unpriced,
    measured_at: epochSeconds(measuredAt),
  };
}
