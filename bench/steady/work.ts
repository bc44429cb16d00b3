import { readExposition, type Sample } from '../../test/support/metrics/exposition.ts';

/** Counters of the service's own metrics by process: those of the jobs, and of the records from the venues. */
export type WorkCounters = ReadonlyMap<string, number>;

/** The samples to keep, with the labels that name a line. */
const KEPT: Readonly<Record<string, readonly string[]>> = {
  job_duration_seconds_count: ['job_name', 'outcome'],
  job_duration_seconds_sum: ['job_name'],
  stage_marks_claimed_total: ['stage'],
  ingest_received_total: ['venue', 'kind'],
  ingest_duplicates_total: ['venue', 'kind'],
  ingest_rows_total: ['venue', 'kind'],
  feed_messages_total: ['venue'],
  journal_changes_total: ['kind'],
  webhook_attempts_total: [],
};

/** Reads the metrics of all processes. */
export async function readWork(addresses: Iterable<string>): Promise<WorkCounters> {
  const counters = new Map<string, number>();
  for (const address of addresses) {
    const text = await (await fetch(address)).text();
    for (const { samples } of readExposition(text).values()) for (const sample of samples) add(counters, sample);
  }
  return counters;
}

function add(counters: Map<string, number>, { name, labels, value }: Sample): void {
  const shown = KEPT[name];
  if (shown === undefined) return;
  const key = [name, ...shown.map((label) => labels[label] ?? '')].join(' ');
  counters.set(key, (counters.get(key) ?? 0) + value);
}

/** Per second, by metric and its labels; only the ones that grew. */
export function workRates(before: WorkCounters, after: WorkCounters, seconds: number): Record<string, number> {
  const rates = [...after].map(([key, value]): [string, number] => [key, (value - (before.get(key) ?? 0)) / seconds]);
  return Object.fromEntries(rates.filter(([, rate]) => rate > 0).sort(([, a], [, b]) => b - a));
}

/** The rates of one metric, by its labels. */
export function ratesOf(rates: Readonly<Record<string, number>>, metric: string): [string, number][] {
  return Object.entries(rates).flatMap(([key, rate]): [string, number][] =>
    key.startsWith(`${metric} `) ? [[key.slice(metric.length + 1), rate]] : [],
  );
}
