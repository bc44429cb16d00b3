import { Counter, Gauge, Histogram, type Registry } from 'prom-client';
import { DURATION_BUCKETS } from './buckets.ts';

/** Records received from the venues, and their storage. */
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
      help: 'Rejected records, stored in the quarantine',
      labelNames: ['venue', 'kind', 'reason'],
      registers,
    }),
    receivedRecords: new Counter({
      name: 'ingest_received_total',
      help: 'Records received: each is counted again as stored, duplicate, rejected or skipped',
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
      help: 'Quarantined records that a later read could store',
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
      help: 'Time since a poll last stored a page, or since the start of this process',
      labelNames: ['venue', 'kind'],
      registers,
    }),
    pollInterval: new Gauge({
      name: 'ingest_poll_interval_seconds',
      help: 'The configured interval of a poll',
      labelNames: ['venue', 'kind'],
      registers,
    }),
    failuresInARow: new Gauge({
      name: 'ingest_failures_in_a_row',
      help: 'Failed polls since the last success; absent before the first poll',
      labelNames: ['venue', 'kind'],
      registers,
    }),
    priceAge: new Gauge({
      name: 'oddswire_price_age_seconds',
      help: 'Age of the prices of the open markets of a venue: p50, p99 and maximum',
      labelNames: ['venue', 'quantile'],
      registers,
    }),
    unpricedMarkets: new Gauge({
      name: 'oddswire_unpriced_markets',
      help: 'Open markets without any price',
      labelNames: ['venue'],
      registers,
    }),
    tradeDelay: new Histogram({
      name: 'ingest_trade_delay_seconds',
      help: 'Age of the newest trade of a stored page of live trades at its receipt',
      labelNames: ['venue'],
      buckets: [0.5, 1, 2.5, 5, 10, 30, 60, 300, 3_600, 86_400],
      registers,
    }),
    priceSweep: new Gauge({
      name: 'oddswire_price_sweep_seconds',
      help: 'Duration of the last complete sweep over the prices of all open markets',
      labelNames: ['venue'],
      registers,
    }),
    walletsUnseen: new Gauge({
      name: 'wallet_oldest_poll_seconds',
      help: 'Longest time since the last poll of a readable watched wallet; absent without one',
      labelNames: ['venue'],
      registers,
    }),
    marketsGone: new Counter({
      name: 'catalog_markets_gone_total',
      help: 'Markets that the venue no longer lists nor knows',
      labelNames: ['venue'],
      registers,
    }),
    historyBackfills: new Gauge({
      name: 'history_backfills',
      help: 'Markets with a backfill of older trades or a repair: queued, running or given up',
      labelNames: ['venue', 'status'],
      registers,
    }),
    tradeCoverage: new Gauge({
      name: 'oddswire_trade_coverage_ratio',
      help: "Share of the venue's volume that the stored trades cover, over the compared markets; absent while none is compared",
      labelNames: ['venue'],
      registers,
    }),
    tapeAge: new Gauge({
      name: 'oddswire_trades_read_age_seconds',
      help: 'Time since the trades of the venue were read without a gap up to the newest; later volumes are not compared',
      labelNames: ['venue'],
      registers,
    }),
    marketsMissingTrades: new Gauge({
      name: 'oddswire_markets_missing_trades',
      help: 'Markets whose volume proves that trades are missing',
      labelNames: ['venue'],
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
      help: 'Age of answers from a cache of the venue, by their Age header',
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
      help: 'Requests per second that all processes together may send to a host; refusals lower it, successes raise it again',
      labelNames: ['venue', 'host'],
      registers,
    }),
    venueBudgetWait: new Histogram({
      name: 'venue_budget_wait_seconds',
      help: 'Time that requests waited in the rate budget of a host',
      labelNames: ['venue', 'host'],
      buckets: DURATION_BUCKETS,
      registers,
    }),
    venueBudgetRefusals: new Counter({
      name: 'venue_budget_refusals_total',
      help: 'Requests not made because the wait in the rate budget would have been too long',
      labelNames: ['venue', 'host'],
      registers,
    }),
    venueUnknownValues: new Counter({
      name: 'venue_unknown_values_total',
      help: 'Unknown states of venues, mapped to the nearest safe state',
      labelNames: ['venue', 'field'],
      registers,
    }),
    venueTruncations: new Counter({
      name: 'venue_truncated_walks_total',
      help: 'Walks that could not read all records',
      labelNames: ['venue', 'kind'],
      registers,
    }),
    venueRefusedMembers: new Counter({
      name: 'venue_refused_members_total',
      help: 'Ids that failed alone while others of the same call succeeded, by route',
      labelNames: ['venue', 'route'],
      registers,
    }),
    venueQuarantinedMembers: new Gauge({
      name: 'venue_quarantined_members',
      help: 'Ids that this process asks for again at their retry time only, by route',
      labelNames: ['venue', 'route'],
      registers,
    }),
    partitionReady: new Gauge({
      name: 'storage_partition_ready',
      help: '1 when the partition for tomorrow exists, else 0',
      labelNames: ['table'],
      registers,
    }),
    databaseBytes: new Gauge({ name: 'storage_database_bytes', help: 'Size of the database on disk', registers }),
  };
}
