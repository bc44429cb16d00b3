import type { Logger } from '../src/observe/logger.ts';
import type { Metrics } from '../src/observe/metrics.ts';
import type { BreakerState, VenueObserver } from '../src/venues/observer.ts';

const BREAKER_VALUE: Record<BreakerState, number> = { closed: 0, half_open: 1, open: 2 };

/** Turns what the venue client and adapters notice into metrics, and state changes into log lines. */
export function venueObserver(metrics: Metrics, log: Logger): VenueObserver {
  return {
    onRequest({ venue, host, route, outcome, durationMs }) {
      metrics.venueRequests.observe({ venue, host, route, outcome }, durationMs / 1000);
    },
    onBreaker({ venue, host, state }) {
      metrics.venueBreaker.set({ venue, host }, BREAKER_VALUE[state]);
      log.warn({ venue, host, state }, 'venue circuit breaker');
    },
    onUnknown({ venue, field, value }) {
      metrics.venueUnknownValues.inc({ venue, field });
      log.debug({ venue, field, value }, 'unknown venue value');
    },
    onTruncated({ venue, kind, detail }) {
      metrics.venueTruncations.inc({ venue, kind });
      log.warn({ venue, kind, detail }, 'venue walk truncated');
    },
  };
}
