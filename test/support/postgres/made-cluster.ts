import { execFile } from 'node:child_process';
import { appendFile, chmod, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import {
  type ClusterHome,
  ensureCluster,
  findClusterHome,
  loadOrCreateConnection,
  openClusterHome,
  writeConnection,
} from '../../../src/embedded/cluster-home.ts';
import { type NativePostgres, nativeFolder, reachableNative } from '../../../src/embedded/native-postgres.ts';
import { chooseServerUser } from '../../../src/embedded/run-as.ts';
import { createLogger } from '../../../src/observe/logger.ts';
import { steadyPort } from '../processes/steady-port.ts';

const SHARED_DIR = '/var/lib/oddswire';

const log = createLogger({ process: 'test-cluster', level: process.env['TEST_LOG_LEVEL'] ?? 'error' });

/** A temporary folder with access for the server, which runs as another user when root starts it. */
export async function openFolder(prefix: string, parent = tmpdir()): Promise<string> {
  const path = await mkdtemp(join(parent, prefix));
  await chmod(path, 0o711);
  return path;
}

/** Creates the cluster of a data folder if it is missing. Starts no process. */
export async function makeCluster(
  dataDir: string,
  durable = false,
): Promise<{ cluster: ClusterHome; native: NativePostgres; password: string }> {
  const user = await chooseServerUser(log);
  const cluster = await openClusterHome({ dataDir, user, sharedDir: SHARED_DIR, log });
  const native = await reachableNative({ native: nativeFolder(), user: cluster.user, sharedDir: SHARED_DIR, log });
  const isNew = (await findClusterHome(dataDir)) === null;
  await ensureCluster(cluster, native, durable, log);
  // Shared memory as files of the cluster, which are removed with it: files in /dev/shm would stay after a kill until the next start.
  if (isNew) await appendFile(join(cluster.data, 'postgresql.conf'), 'dynamic_shared_memory_type = mmap\n');
  const { password } = await loadOrCreateConnection(cluster, log);
  return { cluster, native, password };
}

/**
 * Creates `dataDir`, which must not exist, as a copy of `madeIn` with its own port: a new cluster costs seconds of CPU.
 * If the server's user has no access to temporary folders, the caller's start creates the cluster instead.
 */
export async function copyCluster(madeIn: string, dataDir: string): Promise<void> {
  const to = join(dataDir, 'postgres');
  if ((await findClusterHome(madeIn))?.path !== join(madeIn, 'postgres')) return;
  // With owners and modes, because the server's user is not root.
  await promisify(execFile)('cp', ['-a', madeIn, dataDir]);
  const { password } = await loadOrCreateConnection({ path: to }, log);
  await writeConnection({ path: to }, { port: await steadyPort(), password });
}

/** Removes a data folder, and its cluster if that is elsewhere. */
export async function removeCluster(dataDir: string): Promise<void> {
  const home = await findClusterHome(dataDir);
  if (home) await rm(home.path, { recursive: true, force: true });
  await rm(dataDir, { recursive: true, force: true });
}
