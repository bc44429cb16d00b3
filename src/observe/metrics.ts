import { collectDefaultMetrics, Registry } from 'prom-client';
import { Collectors } from './collectors.ts';
import { feedCounters } from './feed-counters.ts';
import { feedGauges } from './feed-gauges.ts';
import { ingestMetrics } from './ingest-metrics.ts';
import { journalMetrics } from './journal-metrics.ts';
import { processMetrics } from './process-metrics.ts';
import { readMetrics } from './read-metrics.ts';
import { streamMetrics } from './stream-metrics.ts';
import { workMetrics } from './work-metrics.ts';

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

export function createMetrics(processName: string, { ofNode = true }: MetricsOptions = {}) {
  const registry = new Registry();
  registry.setDefaultLabels({ process: processName });
  if (ofNode) collectDefaultMetrics({ register: registry });
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
