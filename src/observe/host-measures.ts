import type { StatsFs } from 'node:fs';
import { statfs } from 'node:fs/promises';
import { cpus, loadavg, totalmem } from 'node:os';
import { asError } from '../domain/values/errors.ts';
import { processLag } from './process-lag.ts';

/** The file systems that fill up: of the embedded Postgres and its files, and of the archive. */
type MeasuredFolder = 'data' | 'archive';

/** Figures that a process measures on its machine. Bytes unless stated; null where the system has no figure: unknown, not good. */
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
  /** Without the folders that are not on this machine. */
  disks: MeasuredDisk[];
}

/** `unknown`: the reason why there are no figures. */
type MeasuredDisk = { folder: MeasuredFolder } & ({ total: number; available: number } | { unknown: string });

/** Space changes slowly, and a network disk may answer slowly. */
const DISKS_EVERY_MS = 30_000;
/** Older figures are unknown. A lost network disk may never answer. */
const DISKS_FRESH_MS = 120_000;

type ReadSpace = (path: string) => Promise<Pick<StatsFs, 'blocks' | 'bsize' | 'bavail'>>;

/** Measures the space of one folder. One that does not answer holds up no other. */
function createDiskMeasure(folder: MeasuredFolder, path: string, readSpace: ReadSpace): () => MeasuredDisk[] {
  let last: { atMs: number; disks: MeasuredDisk[] } | undefined;
  let beganMs = Number.NEGATIVE_INFINITY;
  let isMeasuring = false;

  async function readDisk(): Promise<MeasuredDisk[]> {
    try {
      const { blocks, bsize, bavail } = await readSpace(path);
      return [{ folder, total: blocks * bsize, available: bavail * bsize }];
    } catch (error) {
      const { code, message } = asError(error) as NodeJS.ErrnoException;
      // A folder that does not exist is of another machine, or not used.
      return code === 'ENOENT' ? [] : [{ folder, unknown: `statfs failed: ${code ?? message}` }];
    }
  }

  return () => {
    const nowMs = performance.now();
    if (!isMeasuring && nowMs - beganMs >= DISKS_EVERY_MS) {
      isMeasuring = true;
      beganMs = nowMs;
      void readDisk().then((disks) => {
        last = { atMs: performance.now(), disks };
        isMeasuring = false;
      });
    }
    if (last !== undefined && nowMs - last.atMs <= DISKS_FRESH_MS) return last.disks;
    return [{ folder, unknown: nowMs - beganMs > DISKS_FRESH_MS ? 'statfs does not answer' : 'not measured yet' }];
  };
}

/** Measures the machine of this process. `folders` may exist on it. */
export function createHostMeasures(
  folders: Readonly<Partial<Record<MeasuredFolder, string | undefined>>>,
  readSpace: ReadSpace = statfs,
) {
  const disks = (['data', 'archive'] as const).flatMap((folder) => {
    const path = folders[folder];
    return path === undefined ? [] : [createDiskMeasure(folder, path, readSpace)];
  });

  return {
    /** Never waits for a disk: the space is that of the last measurement. */
    measure(): HostMeasures {
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
        disks: disks.flatMap((measureDisk) => measureDisk()),
      };
    },
  };
}
