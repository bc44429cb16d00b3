import type { ApiJson } from '../../src/domain/api-json.ts';
import { readVenueFacts, type VenueFacts } from '../../src/store/venue-reads.ts';
import type { ApiDeps, ApiRouter } from '../deps.ts';
import { authenticate } from '../middleware/authenticate.ts';
import { epochSeconds, sendMarketData } from '../respond.ts';
import type { EnabledVenue } from '../venue-catalog.ts';

/** Failures in a row that a healthy venue may show: a single bad answer is no illness. */
const TOLERATED_FAILURES = 2;
/** A kind of poll is stale after this many of its own intervals, and never before a minute. */
const STALE_AFTER_INTERVALS = 5;
const STALE_AT_LEAST_MS = 60_000;

/** GET /v1/venues: the adapters that run, what they can do and how fresh they are. */
export function venueRoutes(router: ApiRouter, deps: ApiDeps): void {
  const enter = authenticate(deps, { header: 'Authorization', scope: 'markets:read' });
  router.get('/v1/venues', enter, async (ctx) => {
    await sendMarketData(ctx, deps, {
      key: ['venues'],
      load: async () => {
        const facts = await readVenueFacts(
          deps.db,
          deps.venues.map(({ venue }) => venue),
        );
        const nowMs = deps.now();
        const data = deps.venues.map((profile) => presentVenue(profile, facts.get(profile.venue), nowMs));
        return { data, freshness: 'latest' };
      },
    });
  });
}

/** `lag_seconds` is the age of the stalest kind of scheduled poll; `failing` says what does not work, and why. */
function presentVenue(profile: EnabledVenue, facts: VenueFacts | undefined, nowMs: number): ApiJson {
  const { venue, title, currency, capabilities, pollMs } = profile;
  const polls = facts?.polls ?? [];
  // What is done on demand (walks back through trades) has no cadence to be measured by.
  const scheduled = polls.filter(({ kind }) => kind in pollMs);
  const successes = scheduled.flatMap(({ lastSuccessAt }) => (lastSuccessAt === null ? [] : [lastSuccessAt.getTime()]));
  const isHealthy =
    scheduled.length > 0 &&
    scheduled.every(({ kind, lastSuccessAt, consecutiveFailures }) => {
      if (lastSuccessAt === null || consecutiveFailures > TOLERATED_FAILURES) return false;
      const intervalMs = kind in pollMs ? pollMs[kind as keyof typeof pollMs] : 0;
      const staleAfterMs = Math.max(STALE_AT_LEAST_MS, STALE_AFTER_INTERVALS * intervalMs);
      return nowMs - lastSuccessAt.getTime() <= staleAfterMs;
    });
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
