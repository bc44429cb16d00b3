import { Counter, Gauge, Histogram, type Registry } from 'prom-client';
import { DURATION_BUCKETS } from './buckets.ts';

/** Records that come in from the venues, and their storage. */
export function ingestMetrics(registry: Registry) {
  const registers = [registry];
  return {
    ingestedRows: new Counter({
      name: 'ingest_rows_total',
      help: 'Records written by venue and kind',
      labelNames: ['venue', 'kind'],
      registers,
    }),
    rejectedRecords: new Counter({
      name: 'ingest_rejected_total',
      help: 'Records that did not pass the door, and were quarantined',
      labelNames: ['venue', 'kind', 'reason'],
      registers,
    }),
    receivedRecords: new Counter({
      name: 'ingest_received_total',
      help: 'Records received: each is stored, a duplicate, rejected or skipped',
      labelNames: ['venue', 'kind'],
      registers,
    }),
    duplicateRecords: new Counter({
      name: 'ingest_duplicates_total',
      help: 'Records that changed nothing: stored before, unchanged, or older than the stored one',
      labelNames: ['venue', 'kind'],
      registers,
    }),
    recoveredRecords: new Counter({
      name: 'ingest_recovered_total',
      help: 'Rejected records that a later read could store, and that left the quarantine',
      labelNames: ['venue', 'kind', 'reason'],
      registers,
    }),
    skippedRecords: new Counter({
      name: 'ingest_skipped_total',
      help: 'Sound records that are not stored, by the reasons of docs/venues.md',
      labelNames: ['venue', 'kind', 'reason'],
      registers,
    }),
    sinceSuccess: new Gauge({
      name: 'ingest_since_success_seconds',
      help: 'Since a poll last stored a page; before the first success since this process started',
      labelNames: ['venue', 'kind'],
      registers,
    }),
    pollInterval: new Gauge({
      name: 'ingest_poll_interval_seconds',
      help: 'The configured cadence of a poll',
      labelNames: ['venue', 'kind'],
      registers,
    }),
    failuresInARow: new Gauge({
      name: 'ingest_failures_in_a_row',
      help: 'Polls that failed since the last one that did not',
      labelNames: ['venue', 'kind'],
      registers,
    }),
    tradeDelay: new Histogram({
      name: 'ingest_trade_delay_seconds',
      help: 'Age of the newest trade of a stored page of live trades when it was received',
      labelNames: ['venue'],
      buckets: [0.5, 1, 2.5, 5, 10, 30, 60, 300, 3_600, 86_400],
      registers,
    }),
    walletsUnseen: new Gauge({
      name: 'wallet_oldest_poll_seconds',
      help: 'Since the watched wallet that waits longest was looked at, of those that can be read',
      labelNames: ['venue'],
      registers,
    }),
    marketsGone: new Counter({
      name: 'catalog_markets_gone_total',
      help: 'Markets that the venue neither lists nor knows any more',
      labelNames: ['venue'],
      registers,
    }),
    historyBackfills: new Gauge({
      name: 'history_backfills',
      help: 'Markets whose older trades are queued, being walked, or were given up',
      labelNames: ['venue', 'status'],
      registers,
    }),
    venueRequests: new Histogram({
      name: 'venue_request_duration_seconds',
      help: 'HTTP attempts at venues',
      labelNames: ['venue', 'host', 'route', 'outcome'],
      buckets: DURATION_BUCKETS,
      registers,
    }),
    venueResponseAge: new Histogram({
      name: 'venue_response_age_seconds',
      help: 'Age of answers that came from a cache of the venue, by their Age header',
      labelNames: ['venue', 'host', 'route'],
      buckets: [0, 1, 2, 5, 10, 30, 60, 120, 300, 600],
      registers,
    }),
    venueResponses: new Counter({
      name: 'venue_responses_total',
      help: 'HTTP attempts at venues by class of status: 2xx, 3xx, 4xx, 429, 5xx, other, or none',
      labelNames: ['venue', 'host', 'status'],
      registers,
    }),
    venueBreaker: new Gauge({
      name: 'venue_breaker_state',
      help: '0 closed, 1 half open, 2 open',
      labelNames: ['venue', 'host'],
      registers,
    }),
    venueRequestRate: new Gauge({
      name: 'venue_request_rate',
      help: 'Requests per second that this process may send to a host; refusals lower it, successes raise it again',
      labelNames: ['venue', 'host'],
      registers,
    }),
    venueBudgetWait: new Histogram({
      name: 'venue_budget_wait_seconds',
      help: 'How long requests waited for their turn in the rate budget of a host',
      labelNames: ['venue', 'host'],
      buckets: DURATION_BUCKETS,
      registers,
    }),
    venueBudgetRefusals: new Counter({
      name: 'venue_budget_refusals_total',
      help: 'Requests that were not made because their turn would have come too late',
      labelNames: ['venue', 'host'],
      registers,
    }),
    venueUnknownValues: new Counter({
      name: 'venue_unknown_values_total',
      help: 'Venue states we do not know, mapped to the nearest safe one',
      labelNames: ['venue', 'field'],
      registers,
    }),
    venueTruncations: new Counter({
      name: 'venue_truncated_walks_total',
      help: 'Walks that could not see everything they should have',
      labelNames: ['venue', 'kind'],
      registers,
    }),
    partitionReady: new Gauge({
      name: 'storage_partition_ready',
      help: 'Whether the partition for what is stored tomorrow is there: 1 or 0',
      labelNames: ['table'],
      registers,
    }),
    databaseBytes: new Gauge({ name: 'storage_database_bytes', help: 'Size of the database on disk', registers }),
  };
}
