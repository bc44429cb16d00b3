import type { Logger } from '../../src/observe/logger.ts';
import type { Metrics } from '../../src/observe/metrics.ts';
import type { BreakerState, VenueObserver } from '../../src/venues/observer.ts';

const BREAKER_VALUE: Record<BreakerState, number> = { closed: 0, half_open: 1, open: 2 };

/** Ids in one log line. */
const MAX_LOGGED = 10;

/** Turns the observations of the venue client and adapters into metrics, and state changes into log lines. */
export function venueObserver(metrics: Metrics, log: Logger): VenueObserver {
  const hosts = new Set<string>();
  const closedOff = new Set<string>();
  return {
    onRequest({ venue, host, route, outcome, statusCode, durationMs, ageMs }) {
      // A breaker starts closed and reports only changes.
      if (!hosts.has(host)) metrics.venueBreaker.set({ venue, host }, BREAKER_VALUE.closed);
      hosts.add(host);
      metrics.venueRequests.observe({ venue, host, route, outcome }, durationMs / 1000);
      if (ageMs !== undefined) metrics.venueResponseAge.observe({ venue, host, route }, ageMs / 1000);
      metrics.venueResponses.inc({ venue, host, status: statusClass(statusCode) });
    },
    onTurn({ venue, host, waitedMs, isRefused }) {
      if (isRefused) metrics.venueBudgetRefusals.inc({ venue, host });
      else metrics.venueBudgetWait.observe({ venue, host }, waitedMs / 1000);
    },
    onBreaker({ venue, host, state }) {
      hosts.add(host);
      metrics.venueBreaker.set({ venue, host }, BREAKER_VALUE[state]);
      // During an outage a breaker opens again after every test call: only the begin and the end of the outage are news.
      const isNews = state === 'open' ? !closedOff.has(host) : state === 'closed';
      if (state === 'open') closedOff.add(host);
      if (state === 'closed') closedOff.delete(host);
      log[isNews ? 'warn' : 'debug']({ venue, host, state }, 'venue circuit breaker');
    },
    onUnknown({ venue, field, value }) {
      metrics.venueUnknownValues.inc({ venue, field });
      log.debug({ venue, field, value }, 'unknown venue value');
    },
    onSkipped({ venue, kind, reason, count }) {
      metrics.skippedRecords.inc({ venue, kind, reason }, count);
    },
    onReceived({ venue, kind, count }) {
      metrics.receivedRecords.inc({ venue, kind }, count);
    },
    onMembers({ venue, route, refused, healed, quarantined }) {
      metrics.venueRefusedMembers.inc({ venue, route }, refused.length);
      metrics.venueQuarantinedMembers.set({ venue, route }, quarantined);
      const fields = { venue, route, quarantined };
      if (refused.length > 0) {
        // Only the first failure of a member is news; its retries are counted and stored with its rejected record.
        const level = refused.some(({ failures }) => failures === 1) ? 'warn' : 'debug';
        log[level](
          { ...fields, count: refused.length, refused: refused.slice(0, MAX_LOGGED) },
          'ids refused by a venue',
        );
      }
      if (healed.length > 0) {
        log.info({ ...fields, count: healed.length, healed: healed.slice(0, MAX_LOGGED) }, 'refused ids work again');
      }
    },
    onKeyRefused({ venue, host, statusCode }) {
      log.warn({ venue, host, statusCode }, 'the venue refuses our key: requests go on without it');
    },
    onTruncated({ venue, kind, detail }) {
      metrics.venueTruncations.inc({ venue, kind });
      log.warn({ venue, kind, detail }, 'venue walk truncated');
    },
  };
}

/** A label with few values, because a status line may hold any number. */
function statusClass(statusCode: number | undefined): string {
  if (statusCode === undefined) return 'none';
  if (statusCode === 429) return '429';
  return statusCode >= 200 && statusCode <= 599 ? `${Math.floor(statusCode / 100)}xx` : 'other';
}
