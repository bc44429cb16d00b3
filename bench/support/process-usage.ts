import { readdir, readFile } from 'node:fs/promises';
import { type Database, sql } from '../../src/store/db/tx.ts';

/** Linux counts CPU time in hundredths of a second. */
const TICKS_PER_SECOND = 100;

/** Of /proc/<pid>/stat. */
interface Stat {
  readonly parent: number;
  readonly seconds: number;
  /** Of ended children. */
  readonly endedSeconds: number;
}

/** Fields after the name in brackets, which may contain spaces and brackets: 1 is the parent, 11 to 14 are times. */
export function readStat(text: string): Stat {
  const fields = text
    .slice(text.lastIndexOf(')') + 2)
    .split(' ')
    .map(Number);
  const [user = 0, system = 0, endedUser = 0, endedSystem = 0] = fields.slice(11, 15);
  return {
    parent: fields[1] ?? 0,
    seconds: (user + system) / TICKS_PER_SECOND,
    endedSeconds: (endedUser + endedSystem) / TICKS_PER_SECOND,
  };
}

async function statOf(pid: number): Promise<Stat | undefined> {
  return readFile(`/proc/${pid}/stat`, 'utf8').then(readStat, () => undefined);
}

/** CPU seconds of a process since its start. NaN without such a process on this machine, and on systems without /proc. */
export async function cpuSeconds(pid: number): Promise<number> {
  return (await statOf(pid))?.seconds ?? Number.NaN;
}

/** CPU seconds of each running child of a process. */
export async function cpuOfChildren(pid: number): Promise<Map<number, number>> {
  const names = await readdir('/proc').catch(() => []);
  const pids = names.filter((name) => /^\d+$/.test(name)).map(Number);
  const all = await Promise.all(pids.map(async (each) => [each, await statOf(each)] as const));
  return new Map(all.flatMap(([child, stat]) => (stat?.parent === pid ? [[child, stat.seconds] as const] : [])));
}

/** CPU seconds of a process and its children, ended ones too; NaN as above. */
export async function cpuSecondsWithChildren(pid: number): Promise<number> {
  const own = await statOf(pid);
  if (own === undefined) return Number.NaN;
  // A process that ended meanwhile counts as an ended child.
  const running = [...(await cpuOfChildren(pid)).values()];
  return own.seconds + own.endedSeconds + running.reduce((sum, seconds) => sum + seconds, 0);
}

/** The proportional set size in /proc/<pid>/smaps_rollup, bytes. */
export function readPss(text: string): number {
  return Number(/^Pss:\s+(\d+) kB/m.exec(text)?.[1] ?? Number.NaN) * 1_024;
}

/** Bytes of a process: memory that processes share counts for each of them in equal parts. NaN as above. */
export async function pssBytes(pid: number): Promise<number> {
  return readFile(`/proc/${pid}/smaps_rollup`, 'utf8').then(readPss, () => Number.NaN);
}

/** The same of a process and its running children. */
export async function pssBytesWithChildren(pid: number): Promise<number> {
  const children = [...(await cpuOfChildren(pid)).keys()];
  const sizes = await Promise.all(children.map(async (child) => (await pssBytes(child)) || 0));
  return (await pssBytes(pid)) + sizes.reduce((sum, size) => sum + size, 0);
}

const PID_FILE = sql('bench_postmaster', `SELECT split_part(pg_read_file('postmaster.pid'), chr(10), 1)::int AS pid`);

/** The main process of the run's Postgres, on this machine. */
export async function postgresPid(db: Database): Promise<number> {
  const [row] = await db.query<{ pid: number }>(PID_FILE);
  if (row === undefined) throw new Error('Postgres has no pid file');
  return row.pid;
}
