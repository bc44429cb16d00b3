import { setTimeout as delay } from 'node:timers/promises';
import type { RequestRecord } from '../../sim/server/request-log.ts';
import {
  cpuOfChildren,
  cpuSeconds,
  cpuSecondsWithChildren,
  pssBytes,
  pssBytesWithChildren,
} from '../support/process-usage.ts';
import type { Observer } from './cluster.ts';
import {
  type DatabaseRates,
  ratesBetween,
  readCounters,
  readStatements,
  resetStatements,
  type StatementCost,
  sessionNames,
} from './database.ts';
import { readWal, type WalParts } from './wal.ts';
import { readWork, workRates } from './work.ts';

/** A running program, its database and its exchange. */
export interface Observed {
  readonly observer: Observer;
  readonly pids: ReadonlyMap<string, number>;
  readonly metrics: ReadonlyMap<string, string>;
  readonly simulatorUrl: string;
}

/** The costs of a while, per second. */
export interface Window {
  readonly seconds: number;
  /** CPU seconds by process; `postgres` is the server with all its sessions, ended ones too. NaN where it is not measured. */
  readonly cpu: Readonly<Record<string, number>>;
  /** CPU seconds of the sessions of Postgres by their application, and of its own processes; an ended one counts for `postgres` only. */
  readonly sessions: Readonly<Record<string, number>>;
  /** Proportional set size at the end, bytes. */
  readonly pss: Readonly<Record<string, number>>;
  readonly database: DatabaseRates;
  readonly statements?: readonly StatementCost[];
  readonly wal: WalParts | string;
  readonly work: Readonly<Record<string, number>>;
  /** Requests to the venues by route. */
  readonly requests: Readonly<Record<string, number>>;
}

const LOOK_EVERY_MS = 5_000;

interface CpuReading {
  readonly processes: Readonly<Record<string, number>>;
  readonly sessions: ReadonlyMap<number, number>;
}

async function readCpu({ pids, observer: { postmaster } }: Observed): Promise<CpuReading> {
  const processes = [...pids].map(async ([name, pid]) => [name, await cpuSeconds(pid)] as const);
  return {
    processes: Object.fromEntries([
      ...(await Promise.all(processes)),
      ['postgres', await cpuSecondsWithChildren(postmaster)],
    ]),
    sessions: await cpuOfChildren(postmaster),
  };
}

export async function measureWindow(observed: Observed, seconds: number): Promise<Window> {
  const { observer, pids, metrics, simulatorUrl } = observed;
  const { postmaster } = observer;
  const countRequests = await startRequestCount(simulatorUrl);
  const names = await sessionNames(observer);
  await resetStatements(observer);
  const [work, before] = [await readWork(metrics.values()), await readCounters(observer)];
  const cpu = await readCpu(observed);
  const begunMs = performance.now();
  for (let leftMs = seconds * 1_000; leftMs > 0; leftMs = begunMs + seconds * 1_000 - performance.now()) {
    await delay(Math.min(leftMs, LOOK_EVERY_MS));
    await countRequests();
  }
  const cpuAfter = await readCpu(observed);
  const took = (performance.now() - begunMs) / 1_000;
  const after = await readCounters(observer);
  const statements = await readStatements(observer);
  const pss = [...pids].map(async ([name, pid]) => [name, await pssBytes(pid)] as const);
  const rates = (a: Readonly<Record<string, number>>, b: Readonly<Record<string, number>>) =>
    Object.fromEntries(Object.entries(b).map(([name, value]) => [name, (value - (a[name] ?? 0)) / took]));
  return {
    seconds: took,
    cpu: rates(cpu.processes, cpuAfter.processes),
    sessions: bySession(names, cpu.sessions, cpuAfter.sessions, took),
    pss: Object.fromEntries([...(await Promise.all(pss)), ['postgres', await pssBytesWithChildren(postmaster)]]),
    database: ratesBetween(before, after),
    ...(statements && { statements }),
    wal: await readWal(observer, before.lsn, after.lsn),
    work: workRates(work, await readWork(metrics.values()), took),
    requests: await countRequests(took),
  };
}

function bySession(
  names: ReadonlyMap<number, string>,
  before: ReadonlyMap<number, number>,
  after: ReadonlyMap<number, number>,
  seconds: number,
): Record<string, number> {
  const shares: Record<string, number> = {};
  for (const [pid, cpu] of after) {
    const name = names.get(pid) ?? 'newer sessions';
    shares[name] = (shares[name] ?? 0) + (cpu - (before.get(pid) ?? 0)) / seconds;
  }
  return shares;
}

/** Counts the requests by route, from now to the last call; the simulator keeps 2,000 of them. With `seconds`, the counts are rates. */
async function startRequestCount(simulatorUrl: string) {
  const counts = new Map<string, number>();
  let fromMs = Date.now();
  return async (seconds = 1): Promise<Record<string, number>> => {
    const untilMs = Date.now();
    const answer = await fetch(`${simulatorUrl}/_sim/requests`);
    for (const request of (await answer.json()) as RequestRecord[]) {
      if (request.startedAtMs < fromMs || request.startedAtMs >= untilMs) continue;
      const route = routeOf(request);
      counts.set(route, (counts.get(route) ?? 0) + 1);
    }
    fromMs = untilMs;
    return Object.fromEntries([...counts].sort().map(([route, count]) => [route, count / seconds]));
  };
}

const WORDS = new Set(['active', 'keyset', 'orderbooks', 'trades', 'search']);

/** The route of a request: its path without ids. */
export function routeOf({ host, method, path }: Pick<RequestRecord, 'host' | 'method' | 'path'>): string {
  const route = path.replace(/(?<=\/(?:markets?|events)\/)[^/]+/, (word) => (WORDS.has(word) ? word : ':id'));
  return `${method} ${host} ${route}`;
}
