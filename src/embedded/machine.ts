import { availableParallelism, totalmem } from 'node:os';

/** The memory that this process may use: of the machine, or of its container. */
export function memoryBytes(): number {
  const limit = process.constrainedMemory();
  return limit !== undefined && limit > 0 ? Math.min(totalmem(), limit) : totalmem();
}

const SMALL_MEMORY_BYTES = 2 * 2 ** 30;
const SMALL_CORES = 2;

/** Whether more sessions than half of the pools would only wait for a core, when the database runs on this machine too. */
export function hasFewCores(): boolean {
  return availableParallelism() <= SMALL_CORES;
}

/** Whether one process for everything suits this machine better. A machine of 2 GB reports a little less. */
export function isSmallMachine(): boolean {
  return availableParallelism() < SMALL_CORES || memoryBytes() < 0.9 * SMALL_MEMORY_BYTES;
}
