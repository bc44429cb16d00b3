import { statfs } from 'node:fs/promises';
import type { TestProject } from 'vitest/node';
import setup from './global-setup.ts';

const MEMORY = '/dev/shm';
/** The whole suite needs about a fifth of this: a few databases at a time, and the write-ahead log. */
const LEAST_ROOM = 1024 ** 3;

/**
 * `global-setup` with the cluster's files in memory if there is room: each test file creates a database of hundreds of files and
 * drops it, and ext4 visits every file deleted in the last minute to create a new one.
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
