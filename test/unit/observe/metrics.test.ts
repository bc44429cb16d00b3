import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { createMetrics } from '../../../src/observe/metrics.ts';
import { exposedMetrics } from '../../support/metrics/exposed-metrics.ts';
import { lint, readExposition } from '../../support/metrics/exposition.ts';

const PAGE = fileURLToPath(new URL('../../../docs/observability.md', import.meta.url));

/** Rows of the table of metrics: name, type, labels. */
function documented(): [string, string, string[]][] {
  const rows = readFileSync(PAGE, 'utf8').matchAll(/^\| `([a-z_]+)` \| (counter|gauge|histogram) \|([^|]*)\|/gm);
  return [...rows].map(([, name = '', type = '', labels = '']) => [
    name,
    type,
    [...labels.matchAll(/`([a-z_]+)`/g)].map(([, label = '']) => label).sort(),
  ]);
}

it('the page on observability lists exactly the metrics, with their types and labels', () => {
  const exposed = exposedMetrics().map(({ name, type, labels }) => [name, type, [...labels].sort()]);
  expect(documented().sort()).toEqual(exposed.sort());
});

it('every metric is named and described by the conventions of Prometheus', async () => {
  const families = readExposition(await createMetrics('test').text());
  const ours = exposedMetrics().map(({ name }) => families.get(name));
  expect(ours.flatMap((family) => (family ? lint(family) : ['missing']))).toEqual([]);
});

it('each of several processes in one has figures of its own', async () => {
  const [first, second] = [createMetrics('first'), createMetrics('second')];
  first.alertsFired.inc();
  expect(await second.text()).toContain('alerts_fired_total{process="second"} 0');
});
