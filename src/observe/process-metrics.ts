import { Counter, Gauge, Histogram, type Registry } from 'prom-client';
import { VERSION } from '../config/version.ts';
import { DURATION_BUCKETS } from './buckets.ts';

/** Metrics of the process itself and of its dependencies. */
export function processMetrics(registry: Registry) {
  const registers = [registry];
  const buildInfo = new Gauge({
    name: 'oddswire_build_info',
    help: 'Always 1; the labels say what runs',
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
    cacheLookups: new Counter({
      name: 'answer_cache_lookups_total',
      help: 'Market reads by where their answer came from: kept (hit), a load under way (shared), a load of their own (miss)',
      labelNames: ['result'],
      registers,
    }),
    dependencyUp: new Gauge({
      name: 'dependency_up',
      help: 'Whether what this process cannot work without answers: 1 or 0',
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
      help: 'Callers that wait for a connection',
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
      help: 'From asking for a connection to having it; for a transaction its BEGIN is included',
      buckets: DURATION_BUCKETS,
      registers,
    }),
    wedged: new Gauge({
      name: 'worker_wedged',
      help: '1 when the work of this process stands still although everything it needs answers; see /health/live',
      registers,
    }),
    collectFailures: new Counter({
      name: 'metrics_collect_failures_total',
      help: 'Gauges that could not be read for a scrape, by what was read',
      labelNames: ['collector'],
      registers,
    }),
  };
}
