import { Counter, Gauge, Histogram, type Registry } from 'prom-client';
import { VERSION } from '../config/version.ts';
import { DURATION_BUCKETS } from './buckets.ts';

/** Metrics of the process itself and of its dependencies. */
export function processMetrics(registry: Registry) {
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
