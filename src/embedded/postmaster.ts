import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { open, readFile, readlink, realpath, rename, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { EmbeddedPostgresError } from '../runtime/errors.ts';
import type { ClusterHome } from './cluster-home.ts';
import { memoryBytes } from './machine.ts';
import { runAs, SERVER_ENVIRONMENT } from './run-as.ts';

const POLL_MS = 20;
const LOG_LIMIT_BYTES = 10 * 1024 * 1024;
/** After a crash, the backends of the old postmaster need a moment to end. */
const OLD_BACKENDS_MS = 10_000;

type ClusterData = Pick<ClusterHome, 'data'>;

/** The contents of `postmaster.pid`. `status` is `starting`, `ready`, `stopping` or another word of Postgres. */
export interface Postmaster {
  readonly pid: number;
  readonly port: number;
  readonly status: string;
}

/** The live postmaster of this cluster. The pid file of a crashed server does not count, even with a reused pid. */
export async function livePostmaster(cluster: ClusterData): Promise<Postmaster | null> {
  const found = await readPidFile(cluster);
  if (found === null || !(await isRunning(found.pid))) return null;
  if (await servesData(found.pid, cluster)) return found;
  // Postgres itself accepts a reused pid of another program, as in a restarted container.
  await rm(pidFile(cluster), { force: true });
  return null;
}

/**
 * Starts the server on 127.0.0.1 and waits until it accepts connections. It runs in a session of its own, so a terminal's
 * Ctrl-C and the end of this process do not stop it.
 * @throws EmbeddedPostgresError with the end of its log
 */
export async function startPostmaster(options: {
  cluster: ClusterHome;
  program: string;
  port: number;
  durable: boolean;
}): Promise<Postmaster> {
  const { cluster, program, port, durable } = options;
  const logPath = join(cluster.path, 'postgres.log');
  const giveUpAt = Date.now() + OLD_BACKENDS_MS;
  for (;;) {
    await limitLog(logPath);
    const log = await open(logPath, 'a', 0o600);
    const logStart = (await log.stat()).size;
    const child = spawn(program, ['-D', cluster.data, '-p', String(port), ...settings(durable)], {
      cwd: '/',
      detached: true,
      env: SERVER_ENVIRONMENT,
      stdio: ['ignore', log.fd, log.fd],
      ...cluster.user.ids,
    });
    try {
      await once(child, 'spawn');
    } finally {
      await log.close();
    }
    child.unref();
    const ready = await untilReady(cluster, child.pid ?? 0, () => child.exitCode !== null || child.signalCode !== null);
    if (ready !== null) return ready;
    const reason = (await readFile(logPath)).subarray(logStart).toString('utf8').trim();
    const waitsForOldBackends = /is still in use|already exists/.test(reason);
    if (!waitsForOldBackends || Date.now() > giveUpAt) {
      throw new EmbeddedPostgresError(
        `the embedded database did not start: ${reason.slice(-600) || 'no reason given'}`,
      );
    }
    await delay(10 * POLL_MS);
  }
}

/** Waits until a postmaster of another process is ready; null when it ends instead. */
export async function untilReady(
  cluster: ClusterHome,
  pid: number,
  hasEnded: () => boolean = () => false,
): Promise<Postmaster | null> {
  for (;;) {
    // In this order: a server that became ready and then ended must not count as ready.
    const found = await readPidFile(cluster);
    if (hasEnded() || !(await isRunning(pid))) return null;
    if (found?.pid === pid && found.status === 'ready') return found;
    if (found?.pid === pid && found.status === 'stopping') return null;
    await delay(POLL_MS);
  }
}

/** Asks a process to end and waits; false when it still runs after `limitMs`. */
export async function signalAndWait(pid: number, signal: NodeJS.Signals, limitMs: number): Promise<boolean> {
  try {
    process.kill(pid, signal);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ESRCH') return true;
    throw error;
  }
  return untilGone(pid, limitMs);
}

/** Whether the process ended within `limitMs`. */
export async function untilGone(pid: number, limitMs: number): Promise<boolean> {
  const deadline = Date.now() + limitMs;
  while (await isRunning(pid)) {
    if (Date.now() > deadline) return false;
    await delay(POLL_MS);
  }
  return true;
}

/** A sixteenth of the machine: the processes and the cache of the system need the rest. */
function sharedMegabytes(): number {
  return Math.min(256, Math.max(64, Math.floor(memoryBytes() / 2 ** 20 / 16)));
}

function settings(durable: boolean): string[] {
  const values: Record<string, string> = {
    listen_addresses: '127.0.0.1',
    // A socket's path must be short and reachable; loopback always works.
    unix_socket_directories: '',
    // Without durability it is a cluster of tests, which run several systems at once.
    max_connections: durable ? '200' : '400',
    shared_buffers: `${durable ? sharedMegabytes() : 128}MB`,
    // Worth its CPU only on a disk.
    wal_compression: durable ? 'on' : 'off',
    max_wal_size: '2GB',
    checkpoint_timeout: '15min',
    random_page_cost: '1.1',
    jit: 'off',
    timezone: 'UTC',
    log_timezone: 'UTC',
    // `log` passes the server's own messages, but neither faulty statements of clients nor their values.
    log_min_messages: 'log',
    log_min_error_statement: 'panic',
    log_checkpoints: 'off',
    // Without fsync a commit is cheap, but still survives a kill of the server, which tests do.
    ...(!durable && {
      fsync: 'off',
      full_page_writes: 'off',
      wal_level: 'minimal',
      max_wal_senders: '0',
    }),
  };
  return Object.entries(values).flatMap(([name, value]) => ['-c', `${name}=${value}`]);
}

function pidFile(cluster: ClusterData): string {
  return join(cluster.data, 'postmaster.pid');
}

/** Lines: pid, data folder, start time, port, socket folder, listen address, shared memory key, status. */
async function readPidFile(cluster: ClusterData): Promise<Postmaster | null> {
  let text: string;
  try {
    text = await readFile(pidFile(cluster), 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw error;
  }
  const lines = text.split('\n');
  const pid = Number(lines[0]);
  if (!Number.isInteger(pid) || pid <= 0) return null;
  return { pid, port: Number(lines[3] ?? 0), status: (lines[7] ?? 'starting').trim() };
}

async function isRunning(pid: number): Promise<boolean> {
  try {
    process.kill(pid, 0);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ESRCH') return false;
  }
  // A zombie process still answers signals.
  const status = await procText(pid, 'stat');
  return status === null || !/^\d+ \(.*\) Z/s.test(status);
}

/** The working directory of a postmaster is its data folder; without /proc, its command line is checked instead. */
async function servesData(pid: number, cluster: ClusterData): Promise<boolean> {
  try {
    return (await readlink(`/proc/${pid}/cwd`)) === (await realpath(cluster.data));
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    // No access: the process belongs to a user other than the server's.
    if (code === 'EACCES' || code === 'EPERM') return false;
    const hasProc = (await procText(process.pid, 'stat')) !== null;
    if (hasProc) return false;
  }
  const { stdout } = await runAs({ name: 'self' }, 'ps', ['-o', 'command=', '-p', String(pid)]);
  return stdout.includes(cluster.data);
}

/** A file of /proc, null on systems without /proc. */
async function procText(pid: number, name: string): Promise<string | null> {
  try {
    return await readFile(`/proc/${pid}/${name}`, 'utf8');
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT' || code === 'ESRCH') return null;
    throw error;
  }
}

async function limitLog(path: string): Promise<void> {
  try {
    if ((await stat(path)).size > LOG_LIMIT_BYTES) await rename(path, `${path}.1`);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
  }
}
