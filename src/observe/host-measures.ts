import { statfs } from 'node:fs/promises';
import { cpus, loadavg, totalmem } from 'node:os';
import { processLag } from './process-lag.ts';

/** The file systems that fill up: of the embedded Postgres and its files, and of the archive. */
type MeasuredFolder = 'data' | 'archive';

/** What a process measures on its machine. Bytes unless stated; null where the system does not tell it: unknown, not good. */
export interface HostMeasures {
  /** Processes that run or wait for a processor, per core of the machine: the mean of the last five minutes. */
  loadPerCore: number | null;
  /** The longest time by which a timer of the process was late in the last ten seconds, milliseconds. */
  loopDelayMs: number;
  memory: {
    /** Of this process. */
    used: number;
    /** Of the machine, or of the container where that is less. */
    limit: number;
    /** The part of the limit that is free, or that the system can free. */
    available: number | null;
  };
  disks: { folder: MeasuredFolder; total: number; available: number }[];
}

/** Space changes slowly, and a network disk may answer slowly. */
const DISKS_EVERY_MS = 30_000;

/** Measures the machine of this process. `folders` are those that may exist on it. */
export function createHostMeasures(folders: Readonly<Partial<Record<MeasuredFolder, string | undefined>>>) {
  let disks: HostMeasures['disks'] = [];
  let measuredMs = Number.NEGATIVE_INFINITY;
  let isMeasuring = false;

  async function measureDisks(): Promise<void> {
    const found: HostMeasures['disks'] = [];
    for (const folder of ['data', 'archive'] as const) {
      const path = folders[folder];
      if (path === undefined) continue;
      // A folder that does not exist is of another machine, or not used.
      const disk = await statfs(path).catch(() => undefined);
      if (disk !== undefined) {
        found.push({ folder, total: disk.blocks * disk.bsize, available: disk.bavail * disk.bsize });
      }
    }
    disks = found;
  }

  return {
    /** Never waits for a disk: the space is that of the last measurement. */
    measure(): HostMeasures {
      if (!isMeasuring && performance.now() - measuredMs >= DISKS_EVERY_MS) {
        isMeasuring = true;
        measuredMs = performance.now();
        void measureDisks().finally(() => {
          isMeasuring = false;
        });
      }
      const [, fiveMinutes] = loadavg();
      const constrained = process.constrainedMemory();
      const limit = constrained > 0 ? Math.min(constrained, totalmem()) : totalmem();
      const available = process.availableMemory();
      return {
        // Windows has no load average: zeros.
        loadPerCore: process.platform === 'win32' || fiveMinutes === undefined ? null : fiveMinutes / cpus().length,
        loopDelayMs: Math.round(processLag().longestMs()),
        memory: {
          used: process.memoryUsage.rss(),
          limit,
          available: available > 0 ? Math.min(available, limit) : null,
        },
        disks,
      };
    },
  };
}
