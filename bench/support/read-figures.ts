import type { BareServer } from './bare-server.ts';
import type { Figure } from './figure.ts';
import { whole } from './numbers.ts';
import { cpuSeconds } from './process-usage.ts';
import { type Api, type ReadLoad, type ReadRate, ROUTES, readRate } from './read-load.ts';

/** Paths whose answers the bare server copies. */
const TAUGHT = 50;
/** Both servers are measured in turns, because other work of the machine changes within seconds. */
const TURNS = 2;

type RouteName = keyof typeof ROUTES;

/** The routes whose answers are not in memory before they were read once. */
const READ_ONCE: ReadonlySet<RouteName> = new Set(['candles', 'trades', 'executable']);

export interface ReadFigures {
  api: Api;
  bare: BareServer;
  marketIds: readonly string[];
  /** The length of one measurement. */
  seconds: number;
  /** For the title. */
  label: string;
  /** The ratio to reach per route. */
  goals: Readonly<Record<RouteName, number>>;
}

interface Measured extends ReadRate {
  /** Of the server's process, microseconds per answer. */
  cpuMicros: number;
}

async function measure(pid: number, address: string, load: ReadLoad): Promise<Measured> {
  const before = await cpuSeconds(pid);
  const read = await readRate([address], load);
  return { ...read, cpuMicros: (((await cpuSeconds(pid)) - before) * 1_000_000) / read.answers };
}

function together(turns: readonly Measured[]): Measured {
  const mean = (of: (one: Measured) => number) => turns.reduce((sum, one) => sum + of(one), 0) / turns.length;
  return {
    rate: mean(({ rate }) => rate),
    cpuMicros: mean(({ cpuMicros }) => cpuMicros),
    p99Ms: Math.max(...turns.map(({ p99Ms }) => p99Ms)),
    answers: turns.reduce((sum, { answers }) => sum + answers, 0),
  };
}

function textOf({ rate, p99Ms, cpuMicros }: Measured): string {
  return `${whole(rate)} requests/s, p99 ${p99Ms} ms, ${whole(cpuMicros)} us CPU`;
}

/**
 * The rate of each route over these markets in turn, beside a bare server that sends the same bytes in the same minute. The CPU time of an
 * answer depends less on other work of the machine than the rate. First reads of several markets have a figure of their own.
 */
export async function readFigures(options: ReadFigures): Promise<Figure[]> {
  const { api, bare, marketIds, seconds, label, goals } = options;
  const figures: Figure[] = [];
  for (const [name, pathOf] of Object.entries(ROUTES) as [RouteName, (id: string) => string][]) {
    const paths = marketIds.map(pathOf);
    const taught = paths.slice(0, TAUGHT);
    const bareUrl = await bare.teach(api.address, taught);
    const length = { seconds };
    const first = READ_ONCE.has(name) ? await measure(api.pid, api.address, { paths, length: 'once' }) : undefined;
    const [ours, theirs]: [Measured[], Measured[]] = [[], []];
    for (let turn = 0; turn < TURNS; turn++) {
      ours.push(await measure(api.pid, api.address, { paths, length }));
      theirs.push(await measure(bare.pid, bareUrl, { paths: taught, length }));
    }
    const [own, limit] = [together(ours), together(theirs)];
    const baseline = `bare server ${textOf(limit)}`;
    if (first && paths.length > 1) {
      figures.push({ title: `${name}, ${label}, first reads`, measured: textOf(first), baseline });
    }
    const goal = { atLeast: goals[name] };
    figures.push({ title: `${name}, ${label}`, measured: textOf(own), baseline, ratio: own.rate / limit.rate, goal });
    figures.push({
      title: `CPU of the server for an answer: ${name}, ${label}`,
      measured: `${whole(own.cpuMicros)} us`,
      baseline: `bare server ${whole(limit.cpuMicros)} us`,
      ratio: limit.cpuMicros / own.cpuMicros,
    });
  }
  return figures;
}
