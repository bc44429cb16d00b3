import { setTimeout as delay } from 'node:timers/promises';
import type { Database } from '../../src/store/db/tx.ts';
import type { Fleet } from '../../test/support/processes/fleet.ts';
import { percentile } from '../support/numbers.ts';
import type { Aging } from './aging.ts';
import { sampleDatabase } from './database-samples.ts';
import type { SoakOptions } from './options.ts';
import { type Figures, type Observed, sampleProcess } from './process-samples.ts';
import { format, type SoakSample } from './report.ts';
import type { Steady } from './steady.ts';

/** The samples taken while the load runs. */
export interface Watched {
  readonly fleet: Fleet;
  readonly db: Database;
  readonly processes: readonly Observed[];
  readonly steady: Steady;
  readonly aging: Aging;
  /** The queues' Redis; absent with queues in Postgres. */
  readonly redis?: { sample(): Promise<Figures> };
  readonly printLine: (line: string) => void;
}

/** Samples everything at intervals until the end of the time. Rejects when a process ends, or no source answers. */
export async function sampleAll(watched: Watched, options: SoakOptions): Promise<SoakSample[]> {
  const { aging, printLine } = watched;
  const startedAt = performance.now();
  const elapsed = () => (performance.now() - startedAt) / 1000;
  const samples: SoakSample[] = [];
  const rates = ratesOf(watched);
  let saidAt = 0;
  for (let round = 0; elapsed() < options.seconds; round++) {
    const seconds = elapsed();
    await aging.look(seconds);
    const isCollected = round % options.collectEvery === 0;
    const sample = { seconds, figures: await sampleOnce(watched, isCollected) };
    Object.assign(sample.figures, rates(seconds, sample.figures));
    samples.push(sample);
    if (seconds - saidAt >= options.progressSeconds) {
      saidAt = seconds;
      printLine(progress(sample, watched));
    }
    const nextAt = (round + 1) * options.sampleSeconds;
    await delay(Math.max(0, Math.min(nextAt, options.seconds) - elapsed()) * 1000);
  }
  return samples;
}

async function sampleOnce({ db, processes, redis }: Watched, isCollected: boolean): Promise<Figures> {
  const parts = await Promise.all([
    sampleDatabase(db),
    redis?.sample() ?? {},
    // Sequentially, because five collections at once would be a load of their own.
    inTurn(processes, (observed) => sampleProcess(observed, isCollected)),
  ]);
  return Object.assign({ 'runner: resident': process.memoryUsage.rss() }, ...parts.flat());
}

async function inTurn<T, R>(items: readonly T[], work: (item: T) => Promise<R>): Promise<R[]> {
  const results: R[] = [];
  for (const item of items) results.push(await work(item));
  return results;
}

/** Rates since the previous sample. */
function ratesOf({ fleet, steady }: Watched): (seconds: number, figures: Figures) => Figures {
  let before: { seconds: number; counts: Figures } | undefined;
  return (seconds, figures) => {
    const counts: Figures = {
      'rate of trades': figures['trades stored'] ?? 0,
      'rate of deliveries': fleet.receiver.requests.at(-1)?.sequence ?? 0,
      'rate of reads': steady.count('read') + steady.count('cold') + steady.count('old'),
      'rate of alerts made': steady.count('alert'),
    };
    const gone = before ? seconds - before.seconds : 0;
    const rates: Figures = {};
    for (const [name, count] of Object.entries(counts)) {
      if (before && gone > 0) rates[name] = (count - (before.counts[name] ?? 0)) / gone;
    }
    before = { seconds, counts };
    const latencies = steady.takeLatencies('read');
    if (latencies.length === 0) return rates;
    return { ...rates, 'reads p50': percentile(latencies, 0.5), 'reads p99': percentile(latencies, 0.99) };
  };
}

function progress({ seconds, figures }: SoakSample, { processes, steady }: Watched): string {
  const rate = (name: string) => `${(figures[`rate of ${name}`] ?? 0).toFixed(1)}/s ${name}`;
  const marks = Object.entries(figures).filter(([name]) => name.startsWith('marks waiting'));
  const resident = processes.map(({ name }) => `${name} ${format(figures[`${name}: resident`] ?? 0, 'bytes')}`);
  const time = `${Math.floor(seconds / 60)}:${String(Math.floor(seconds % 60)).padStart(2, '0')}`;
  return [
    time.padStart(6),
    [rate('trades'), rate('alerts made'), rate('deliveries'), rate('reads')].join(', '),
    `backlog ${marks.reduce((sum, [, value]) => sum + value, 0)} marks, ${figures['deliveries pending']} deliveries`,
    resident.join(', '),
    ...(steady.failures.length > 0 ? [`FAILED: ${steady.failures.length}`] : []),
  ].join(' | ');
}
