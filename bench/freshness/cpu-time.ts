import { readdir, readFile } from 'node:fs/promises';
import { type Database, sql } from '../../src/store/db/tx.ts';

/** Linux counts CPU time in hundredths of a second. */
const TICKS_PER_SECOND = 100;

interface Usage {
  readonly parent: number;
  readonly seconds: number;
  /** Of ended children. */
  readonly endedSeconds: number;
}

/** Fields of /proc/<pid>/stat after the name, which may contain spaces: 1 is the parent, 11 to 14 are times. */
async function usageOf(pid: number | string): Promise<Usage> {
  const text = await readFile(`/proc/${pid}/stat`, 'utf8');
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

/** CPU seconds of a process since its start. NaN without such a process on this machine, and on systems without /proc. */
export async function cpuSeconds(pid: number): Promise<number> {
  return (await usageOf(pid).catch(() => undefined))?.seconds ?? Number.NaN;
}

/** CPU seconds of a process and its children, ended ones too; NaN as above. */
export async function cpuSecondsWithChildren(pid: number): Promise<number> {
  const own = await usageOf(pid).catch(() => undefined);
  if (own === undefined) return Number.NaN;
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name));
  // A process that ended meanwhile counts as an ended child.
  const all = await Promise.all(pids.map((each) => usageOf(each).catch(() => undefined)));
  const running = all.filter((each) => each?.parent === pid);
  return own.seconds + own.endedSeconds + running.reduce((sum, each) => sum + (each?.seconds ?? 0), 0);
}

const PID_FILE = sql('bench_postmaster', `SELECT split_part(pg_read_file('postmaster.pid'), chr(10), 1)::int AS pid`);

/** The main process of the run's Postgres, on this machine. */
export async function postgresPid(db: Database): Promise<number> {
  const [row] = await db.query<{ pid: number }>(PID_FILE);
  if (row === undefined) throw new Error('Postgres has no pid file');
  return row.pid;
}
