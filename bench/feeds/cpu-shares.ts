import type { Database } from '../../src/store/db/tx.ts';
import type { Fleet } from '../../test/support/processes/fleet.ts';
import { cpuSeconds, cpuSecondsWithChildren, postgresPid } from '../support/process-usage.ts';

/** Seconds of CPU per second, by process: those of oddswire, Postgres with its backends, and this process. */
export type CpuShares = ReadonlyMap<string, number>;

/** Measures the processes of a fleet from now until the returned function is called. */
export async function startCpuShares(fleet: Fleet, db: Database): Promise<() => Promise<CpuShares>> {
  const postmaster = await postgresPid(db);
  async function read(): Promise<Map<string, number>> {
    const members = fleet.members.map(async ({ process: { name, pid = 0 } }) => [name, await cpuSeconds(pid)] as const);
    return new Map([
      ...(await Promise.all(members)),
      ['postgres', await cpuSecondsWithChildren(postmaster)],
      ['exchange, receiver and client', await cpuSeconds(process.pid)],
    ]);
  }
  const [startedMs, before] = [performance.now(), await read()];
  return async () => {
    const seconds = (performance.now() - startedMs) / 1_000;
    return new Map([...(await read())].map(([name, after]) => [name, (after - (before.get(name) ?? 0)) / seconds]));
  };
}
