import type { WorkerDeps } from '../process/deps.ts';

/** The dependencies of the streamer. */
export type StreamerDeps = Pick<
  WorkerDeps,
  'config' | 'db' | 'partitions' | 'producer' | 'metrics' | 'log' | 'stopping' | 'now'
>;
