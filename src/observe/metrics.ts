import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import { VERSION } from '../config/version.ts';
import { DURATION_BUCKETS } from './buckets.ts';
import { Collectors } from './collectors.ts';
import { ingestMetrics } from './ingest-metrics.ts';
import { streamMetrics, workMetrics } from './work-metrics.ts';

/**
 * The metrics of one process, on a registry of its own so that one test may have several. Every process has all of them; a process
 * that does not own a stage omits its samples, or sets 0. docs/observability.md lists them, checked by a test.
 */
export type Metrics = ReturnType<typeof createMetrics>;

interface MetricsOptions {
  /**
   * Whether to publish the metrics of Node, the default. They measure the event loop and the garbage collection from now until the end of
   * the process, so a process should have them once.
   */
  ofNode?: boolean;
}

/** How often Node measures the delay of the event loop. Its default, 10 ms, wakes an idle process a hundred times a second. */
const LOOP_SAMPLE_MS = 100;

export function createMetrics(processName: string, { ofNode = true }: MetricsOptions = {}) {
  const registry = new Registry();
  registry.setDefaultLabels({ process: processName });
  if (ofNode) collectDefaultMetrics({ register: registry, eventLoopMonitoringPrecision: LOOP_SAMPLE_MS });
  const process = processMetrics(registry);
  const collectors = new Collectors((collector) => process.collectFailures.inc({ collector }));
  return {
    registry,
    collectors,
    ...process,
    ...ingestMetrics(registry),
    ...feedGauges(registry),
    ...workMetrics(registry),
    ...streamMetrics(registry),
    ...journalMetrics(registry),
    ...readMetrics(registry),
    ...feedCounters(registry),
    /** The text of /metrics, after an update of the gauges. A failing source never fails the text. */
    async text(): Promise<string> {
      await collectors.collect();
      return registry.metrics();
    },
  };
}

/** The venues' feeds, as all processes together see them. A feed that is off has no samples. */
function feedGauges(registry: Registry) {
  const of = (name: string, help: string) => new Gauge({ name, help, labelNames: ['venue'], registers: [registry] });
  return {
    feedUp: of('feed_up', '1 while data of the feed of the venue arrives, else 0'),
    feedSubscribed: of('feed_subscribed_outcomes', 'Outcomes whose changes the feed of the venue sends'),
    feedMessagesPerSecond: of('feed_messages_per_second', 'Messages of the feed of the venue per second'),
    feedLag: of('feed_lag_seconds', "Time between the venue's time of a message and its arrival"),
    feedOpenGaps: of('feed_gaps_open', 'Gaps of the feed of the venue that have not ended'),
  };
}

/** The journal and its publisher. */
function journalMetrics(registry: Registry) {
  const registers = [registry];
  return {
    journalChanges: new Counter({
      name: 'journal_changes_total',
      help: 'Changes that this process published',
      labelNames: ['kind'],
      registers,
    }),
    journalClaim: new Histogram({
      name: 'journal_claim_duration_seconds',
      help: 'One claim of the publisher: marks, facts, rows of the journal, commit',
      buckets: DURATION_BUCKETS,
      registers,
    }),
    journalCheckedAge: new Gauge({
      name: 'journal_checked_age_seconds',
      help: 'Time since the journal last held every committed change; streams withhold heartbeats above 1',
      registers,
    }),
    journalSeq: new Gauge({ name: 'journal_seq', help: 'The last number of the journal', registers }),
    journalBytes: new Gauge({ name: 'journal_bytes', help: 'Size of the journal with its indexes', registers }),
  };
}

/** Reads of the API from memory. */
function readMetrics(registry: Registry) {
  const registers = [registry];
  return {
    cacheLookups: new Counter({
      name: 'answer_cache_lookups_total',
      help: 'Market reads answered by markets in memory (memory), by a kept answer (hit), by a load in flight (shared) or by a new load (miss)',
      labelNames: ['result'],
      registers,
    }),
    memoryEntries: new Gauge({
      name: 'read_memory_entries',
      help: 'Markets and answers in the memory of this process',
      labelNames: ['part'],
      registers,
    }),
    memoryBytes: new Gauge({
      name: 'read_memory_bytes',
      help: 'Approximate memory of markets and answers; API_MEMORY_MB limits the sum',
      labelNames: ['part'],
      registers,
    }),
    memoryFallback: new Gauge({
      name: 'read_memory_fallback',
      help: '1 while reads use the database, because the journal was not confirmed within a second, else 0',
      registers,
    }),
    memoryLoaded: new Gauge({
      name: 'read_memory_loaded',
      help: '1 when every open market was read into memory, or as many as it takes, else 0',
      registers,
    }),
  };
}

/** The messages of the venues' feeds, and their way into the database. */
function feedCounters(registry: Registry) {
  const registers = [registry];
  return {
    feedMessages: new Counter({
      name: 'feed_messages_total',
      help: 'Messages of feeds by how they ended: applied, rejected or skipped',
      labelNames: ['venue', 'end'],
      registers,
    }),
    feedSkips: new Counter({
      name: 'feed_skipped_total',
      help: 'Skipped messages of feeds by the reasons of docs/feeds.md',
      labelNames: ['venue', 'reason'],
      registers,
    }),
    feedLosses: new Counter({
      name: 'feed_gaps_total',
      help: 'Gaps of feeds that this process noticed, by reason',
      labelNames: ['venue', 'reason'],
      registers,
    }),
    feedGivenUp: new Counter({
      name: 'feed_given_up_total',
      help: 'Markets that were left to the polls for ten minutes, because their feed lost changes again and again',
      labelNames: ['venue'],
      registers,
    }),
    feedWrite: new Histogram({
      name: 'feed_write_seconds',
      help: 'From the arrival of a quote to its commit',
      labelNames: ['venue'],
      buckets: DURATION_BUCKETS,
      registers,
    }),
  };
}

/** Metrics of the process itself and of its dependencies. */
function processMetrics(registry: Registry) {
  const registers = [registry];
  const buildInfo = new Gauge({
    name: 'oddswire_build_info',
    help: 'Always 1; the labels are the versions of oddswire and Node',
    labelNames: ['version', 'node'],
    registers,
  });
  buildInfo.set({ version: VERSION, node: process.version }, 1);
  return {
    httpRequests: new Histogram({
      name: 'http_request_duration_seconds',
      help: 'API requests by route pattern',
      labelNames: ['route', 'method', 'status'],
      buckets: DURATION_BUCKETS,
      registers,
    }),
    dependencyUp: new Gauge({
      name: 'dependency_up',
      help: '1 when a dependency of this process answers, else 0',
      labelNames: ['dependency'],
      registers,
    }),
    poolConnections: new Gauge({
      name: 'db_pool_connections',
      help: 'Open database connections of this process',
      labelNames: ['pool', 'state'],
      registers,
    }),
    poolWaiting: new Gauge({
      name: 'db_pool_waiting',
      help: 'Callers waiting for a connection',
      labelNames: ['pool'],
      registers,
    }),
    poolLimit: new Gauge({
      name: 'db_pool_limit',
      help: 'Connections the pool may open',
      labelNames: ['pool'],
      registers,
    }),
    poolAcquire: new Histogram({
      name: 'db_pool_acquire_duration_seconds',
      help: 'Wait for a connection; for a transaction its BEGIN is included',
      buckets: DURATION_BUCKETS,
      registers,
    }),
    stalled: new Gauge({
      name: 'worker_wedged',
      help: '1 when the work of this process is stalled although its dependencies answer; see /health/live',
      registers,
    }),
    lateShare: new Gauge({
      name: 'oddswire_process_late_share',
      help: 'The part of the last ten seconds in which this process could not run although it was due, 0..1',
      registers,
    }),
    collectFailures: new Counter({
      name: 'metrics_collect_failures_total',
      help: 'Gauges that could not be read for a scrape, by source',
      labelNames: ['collector'],
      registers,
    }),
  };
}
