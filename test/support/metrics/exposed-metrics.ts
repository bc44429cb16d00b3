import { createMetrics } from '../../../src/observe/metrics.ts';

export interface ExposedMetric {
  name: string;
  type: string;
  labels: readonly string[];
}

/** Metrics of prom-client itself, whose names cannot be chosen. */
const FOREIGN = /^(process|nodejs)_/;

/** Our metrics with their own labels, without the common labels. */
export function exposedMetrics(): ExposedMetric[] {
  const { registry } = createMetrics('test');
  return registry.getMetricsAsArray().flatMap((metric) => {
    const { name, labelNames } = metric as unknown as { name: string; labelNames: string[] };
    if (FOREIGN.test(name)) return [];
    const type = metric.constructor.name.toLowerCase();
    return [{ name, type, labels: labelNames.filter((label) => label !== 'le') }];
  });
}
