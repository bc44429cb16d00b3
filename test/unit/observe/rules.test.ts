import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { createMetrics } from '../../../src/observe/metrics.ts';
import { exposedMetrics } from '../../support/metrics/exposed-metrics.ts';
import { readExpression } from '../../support/metrics/promql.ts';
import { readRules } from '../../support/metrics/rules-file.ts';

const file = (path: string) => fileURLToPath(new URL(`../../../${path}`, import.meta.url));
const RULES = readRules(file('deploy/prometheus-rules.yml'));

/** Labels that Prometheus itself adds to every series. */
const TARGET_LABELS = ['job', 'instance', 'process'];

/** The labels of every exposed series, by its name. */
function exposedSeries(): Map<string, readonly string[]> {
  const series = new Map<string, readonly string[]>([['up', []]]);
  for (const { name, type, labels } of exposedMetrics()) {
    if (type !== 'histogram') series.set(name, labels);
    else
      for (const part of ['_bucket', '_sum', '_count'])
        series.set(name + part, part === '_bucket' ? [...labels, 'le'] : labels);
  }
  for (const { name } of createMetrics('test').registry.getMetricsAsArray())
    if (/^(process|nodejs)_/.test(name)) series.set(name, []);
  return series;
}

/** Names in an expression that no process exposes. */
function problemsOf(expression: string): string[] {
  const known = exposedSeries();
  const { selectors, groupings } = readExpression(expression);
  if (selectors.length === 0) return ['contains no metric'];
  return selectors.flatMap(({ metric, labels }) => {
    const has = known.get(metric);
    if (!has) return [`${metric} is not exposed`];
    const wanted = [...labels, ...groupings].filter((label) => ![...has, ...TARGET_LABELS].includes(label));
    return wanted.map((label) => `${metric} has no label ${label}`);
  });
}

const kebab = (name: string) => name.replace(/([a-z])([A-Z])/g, '$1-$2').toLowerCase();
/** The anchor of a heading, as GitHub makes it. */
const anchor = (heading: string) =>
  heading
    .toLowerCase()
    .replace(/[^\w\- ]/g, '')
    .replaceAll(' ', '-');

describe('the reader of expressions', () => {
  it.each([
    ['up == 0', ['up'], [], []],
    ['sum by (a, b) (rate(x_total{c="d",e=~"f{}"}[5m] offset 1d)) / 2e3 > 0.5', ['x_total'], ['c', 'e'], ['a', 'b']],
    ['max(x) - on (q) group_left (r) y{z!="by (no)"} unless absent(w)', ['x', 'y', 'w'], ['z'], ['q', 'r']],
    ['predict_linear(a:b_bytes[6h], 7 * 86400) > 10e9 and time() > bool 1', ['a:b_bytes'], [], []],
  ])('%s', (text, metrics, labels, groupings) => {
    const read = readExpression(text);
    expect(read.selectors.map(({ metric }) => metric)).toEqual(metrics);
    expect(read.selectors.flatMap((selector) => selector.labels)).toEqual(labels);
    expect(read.groupings).toEqual(groupings);
  });

  it('reports names that are not exposed', () => {
    expect(problemsOf('sum by (queue) (rate(queue_jobs_total[5m]))')).toEqual(['queue_jobs_total is not exposed']);
    expect(problemsOf('max by (stage) (queue_jobs{status="x"})')).toEqual([
      'queue_jobs has no label status',
      'queue_jobs has no label stage',
    ]);
    expect(problemsOf('rate(job_duration_seconds[5m])')).toEqual(['job_duration_seconds is not exposed']);
    expect(problemsOf('1 > 0')).toEqual(['contains no metric']);
  });
});

describe('deploy/prometheus-rules.yml', () => {
  it('covers each required alarm once', () => {
    const names = RULES.map(({ alert }) => alert);
    expect(new Set(names).size).toBe(names.length);
    expect(names).toEqual(
      expect.arrayContaining([
        ...['ApiErrorRatio', 'ApiSlow', 'VenueStale', 'VenueBreakerOpen', 'DeliveriesOverdue', 'QueueNotDraining'],
        ...['MarksParked', 'PoolExhausted', 'ProcessDown', 'QuarantineBurst', 'PartitionMissing', 'WorkerWedged'],
      ]),
    );
  });

  it.each(RULES.map((rule) => [rule.alert, rule] as const))(
    '%s uses exposed metrics, and has a description and a runbook',
    (_name, rule) => {
      expect(problemsOf(rule.expr)).toEqual([]);
      expect(['critical', 'warning', 'info']).toContain(rule.severity);
      expect(rule.summary).toMatch(/^oddswire: .{10,}/);
      expect(rule.description).toMatch(/^[A-Z{].{20,}\.$/);
      expect(rule.runbook).toBe(`docs/operations.md#alert-${kebab(rule.alert)}`);
    },
  );

  it('has a runbook for each rule in docs/operations.md, and no other runbook', () => {
    const headings = [...readFileSync(file('docs/operations.md'), 'utf8').matchAll(/^#+ (.*)$/gm)];
    const runbooks = headings.map(([, heading = '']) => anchor(heading)).filter((name) => name.startsWith('alert-'));
    expect(runbooks.sort()).toEqual(RULES.map(({ alert }) => `alert-${kebab(alert)}`).sort());
  });
});

describe('deploy/grafana-dashboard.json', () => {
  interface Dashboard {
    panels: { title: string; targets: { expr: string; legendFormat: string }[] }[];
  }
  const { panels } = JSON.parse(readFileSync(file('deploy/grafana-dashboard.json'), 'utf8')) as Dashboard;

  it.each(panels.map((panel) => [panel.title, panel] as const))('%s shows exposed metrics', (_title, { targets }) => {
    for (const { expr, legendFormat } of targets) {
      expect(problemsOf(expr)).toEqual([]);
      const shown = [...legendFormat.matchAll(/\{\{(\w+)\}\}/g)].map(([, label]) => label);
      expect(readExpression(expr).groupings).toEqual(expect.arrayContaining(shown));
    }
  });
});
