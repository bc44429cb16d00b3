import { statfs } from 'node:fs/promises';
import type { TestProject } from 'vitest/node';
import setup from './global-setup.ts';

const MEMORY = '/dev/shm';
/** The whole suite was seen to take a fifth of this: few databases at a time, and the write-ahead log. */
const LEAST_ROOM = 1024 ** 3;

/**
 * `global-setup` with the cluster's files in memory where there is room: each test file makes a database of hundreds of files and
 * drops it, and ext4 looks at every file that was deleted in the last minute to make a new one.
 */
export default async function setupInMemory(project: TestProject): Promise<() => Promise<void>> {
  return setup(project, (await roomOf(MEMORY)) >= LEAST_ROOM ? MEMORY : undefined);
}

/** The free bytes of a file system in memory, 0 without one. */
async function roomOf(path: string): Promise<number> {
  try {
    const { bavail, bsize } = await statfs(path);
    return Math.min(bavail * bsize, process.availableMemory());
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return 0;
    throw error;
  }
}
