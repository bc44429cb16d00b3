import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';

/** Seconds, from a millisecond to a minute. */
const DURATION_BUCKETS = [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 15, 60];

/** The metrics of one process, on a registry of its own so that several may live in one test. */
export interface Metrics {
  readonly registry: Registry;
  readonly httpRequests: Histogram<'route' | 'method' | 'status'>;
  readonly jobs: Histogram<'job' | 'outcome'>;
  readonly wakeFailures: Counter<'job'>;
  readonly marksWaiting: Gauge<'stage'>;
  readonly marksParked: Gauge<'stage'>;
  readonly ingestedRows: Counter<'venue' | 'kind'>;
  readonly rejectedRecords: Counter<'venue' | 'kind' | 'reason'>;
  readonly marketsGone: Counter<'venue'>;
  readonly historyBackfills: Gauge<'venue' | 'status'>;
  readonly venueRequests: Histogram<'venue' | 'host' | 'route' | 'outcome'>;
  readonly venueBreaker: Gauge<'venue' | 'host'>;
  readonly venueUnknownValues: Counter<'venue' | 'field'>;
  readonly venueTruncations: Counter<'venue' | 'kind'>;
  readonly alertsFired: Counter;
  readonly attempts: Counter<'outcome' | 'error_code'>;
  readonly attemptDuration: Histogram<'outcome'>;
  readonly deliveryLatency: Histogram<'attempt'>;
  readonly oldestOverdueSeconds: Gauge;
}

export function createMetrics(processName: string): Metrics {
  const registry = new Registry();
  registry.setDefaultLabels({ process: processName });
  collectDefaultMetrics({ register: registry });
  const registers = [registry];
  const buckets = DURATION_BUCKETS;
  return {
    registry,
    httpRequests: new Histogram({
      name: 'http_request_duration_seconds',
      help: 'API requests by route pattern',
      labelNames: ['route', 'method', 'status'],
      buckets,
      registers,
    }),
    jobs: new Histogram({
      name: 'job_duration_seconds',
      help: 'Jobs run by this process',
      labelNames: ['job', 'outcome'],
      buckets,
      registers,
    }),
    wakeFailures: new Counter({
      name: 'wake_up_failures_total',
      help: 'Wake-ups the queue store refused; the timer makes them good',
      labelNames: ['job'],
      registers,
    }),
    marksWaiting: new Gauge({
      name: 'stage_marks_waiting',
      help: 'Marks no stage has claimed yet',
      labelNames: ['stage'],
      registers,
    }),
    marksParked: new Gauge({
      name: 'stage_marks_parked',
      help: 'Poison marks put aside: an operator should look',
      labelNames: ['stage'],
      registers,
    }),
    ingestedRows: new Counter({
      name: 'ingest_rows_total',
      help: 'Records written by venue and kind',
      labelNames: ['venue', 'kind'],
      registers,
    }),
    rejectedRecords: new Counter({
      name: 'ingest_rejected_total',
      help: 'Records that did not pass the door',
      labelNames: ['venue', 'kind', 'reason'],
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
      buckets,
      registers,
    }),
    venueBreaker: new Gauge({
      name: 'venue_breaker_state',
      help: '0 closed, 1 half open, 2 open',
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
    alertsFired: new Counter({ name: 'alerts_fired_total', help: 'Alerts that fired', registers }),
    attempts: new Counter({
      name: 'webhook_attempts_total',
      help: 'Delivery attempts',
      labelNames: ['outcome', 'error_code'],
      registers,
    }),
    attemptDuration: new Histogram({
      name: 'webhook_attempt_duration_seconds',
      help: 'Time at the receiver',
      labelNames: ['outcome'],
      buckets,
      registers,
    }),
    deliveryLatency: new Histogram({
      name: 'webhook_delivery_latency_seconds',
      help: 'From the event to its delivery; first attempts and retries apart',
      labelNames: ['attempt'],
      buckets: [...buckets, 300, 3_600, 36_000],
      registers,
    }),
    oldestOverdueSeconds: new Gauge({
      name: 'webhook_oldest_due_seconds',
      help: 'How long the oldest overdue delivery has waited',
      registers,
    }),
  };
}
