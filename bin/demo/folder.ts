import { join } from 'node:path';

/** The demo's part of a data folder: a cluster of its own, because simulated markets must not mix with real ones. */
export function demoFolder(dataDir: string): string {
  return join(dataDir, 'demo');
}

/** The archive of the demo. */
export function archiveFolder(demoDir: string): string {
  return join(demoDir, 'archive');
}
