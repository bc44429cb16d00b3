import { readdir, readFile, readlink } from 'node:fs/promises';
import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { readExposition, type Sample } from '../../test/support/metrics/exposition.ts';

/** Figures by name, as `ruleOf` knows them. */
export type Figures = Record<string, number>;

/** A process to sample: its pid, the address of its /metrics, and its socket for collections (`collect-garbage.mjs`). */
export interface Observed {
  readonly name: string;
  readonly pid: number;
  readonly metricsUrl: string;
  readonly socket: string;
}

/** A measurement of the event loop is the time between two timers of this length: `LOOP_SAMPLE_MS` of `src/observe/metrics.ts`. */
const EVENT_LOOP_SAMPLE_MS = 100;

/** The resources of one process, and its gauges of queues, stages and deliveries. `isCollected`: collect garbage first. */
export async function sampleProcess(observed: Observed, isCollected: boolean): Promise<Figures> {
  const { name, pid, metricsUrl, socket } = observed;
  const liveHeap = isCollected ? Number(await text(connect(socket))) : undefined;
  const [metrics, status, files] = await Promise.all([scrape(metricsUrl), procStatus(pid), openFiles(pid)]);
  const first = (metric: string) => metrics.find((sample) => sample.name === metric)?.value ?? Number.NaN;
  return {
    [`${name}: resident`]: status.residentBytes,
    [`${name}: heap used`]: first('nodejs_heap_size_used_bytes'),
    ...(liveHeap !== undefined && { [`${name}: live heap`]: liveHeap }),
    // A window with a forced collection does not show the normal latency of the process.
    ...(!isCollected && {
      [`${name}: event loop p90`]: first('nodejs_eventloop_lag_p90_seconds') * 1000 - EVENT_LOOP_SAMPLE_MS,
    }),
    [`${name}: descriptors`]: files.length,
    [`${name}: sockets`]: files.filter((target) => target.startsWith('socket:')).length,
    [`${name}: threads`]: status.threads,
    [`${name}: handles`]: first('nodejs_active_handles_total'),
    ...workOf(metrics),
  };
}

function workOf(metrics: readonly Sample[]): Figures {
  const figures: Figures = {};
  for (const { name, labels, value } of metrics) {
    if (name === 'queue_jobs') figures[`queue ${labels['queue']}: ${labels['state']}`] = value;
    if (name === 'stage_marks_waiting') figures[`marks waiting for ${labels['stage']}`] = value;
    if (name === 'stage_marks_parked') figures[`marks parked by ${labels['stage']}`] = value;
  }
  return figures;
}

async function scrape(url: string): Promise<Sample[]> {
  const answer = await fetch(`${url}/metrics`);
  return [...readExposition(await answer.text()).values()].flatMap(({ samples }) => samples);
}

async function openFiles(pid: number): Promise<string[]> {
  const names = await readdir(`/proc/${pid}/fd`);
  // A descriptor that was closed meanwhile does not count.
  return (await Promise.all(names.map((name) => readlink(`/proc/${pid}/fd/${name}`).catch(() => '')))).filter(Boolean);
}

interface ProcStatus {
  residentBytes: number;
  /** The private part, without file mappings: for a Postgres backend without the shared buffers. */
  ownBytes: number;
  threads: number;
}

/** From Linux' /proc. Rejects without such a process. */
export async function procStatus(pid: number): Promise<ProcStatus> {
  const text = await readFile(`/proc/${pid}/status`, 'utf8');
  const field = (name: string) => Number(new RegExp(`^${name}:\\s+(\\d+)`, 'm').exec(text)?.[1] ?? Number.NaN);
  return {
    residentBytes: field('VmRSS') * 1024,
    ownBytes: field('RssAnon') * 1024,
    threads: field('Threads'),
  };
}
