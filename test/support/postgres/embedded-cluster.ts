import { spawnSync } from 'node:child_process';
import { chmod, rmdir } from 'node:fs/promises';
import pg from 'pg';
import { ROLE } from '../../../src/embedded/cluster-home.ts';
import { livePostmaster, signalAndWait, startPostmaster } from '../../../src/embedded/postmaster.ts';
import { guard } from '../processes/guard.ts';
import { steadyPort } from '../processes/steady-port.ts';
import { copyCluster, makeCluster, openFolder, removeCluster } from './made-cluster.ts';

const STOP_LIMIT_MS = 20_000;

/** `fast` ends sessions and writes a checkpoint, `immediate` leaves recovery to the next start. */
export type ShutdownMode = 'fast' | 'immediate';
const SHUTDOWN_SIGNALS = { fast: 'SIGINT', immediate: 'SIGQUIT' } as const;

/** A throwaway Postgres server that can stop and return on the same address with the same data. */
export interface TestCluster {
  /** Superuser, database `postgres`: each test file creates its database from here. */
  readonly adminUrl: string;
  /** Whether its postmaster runs, ready or not. */
  isRunning(): Promise<boolean>;
  /** Ends the server; the data stay. Safe when it does not run. */
  shutDown(mode: ShutdownMode): Promise<void>;
  /** kill -9 of all its processes. */
  kill(): Promise<void>;
  /** kill -9 of one session's process, as the out-of-memory killer does: the server ends all sessions and recovers. */
  killSession(): Promise<void>;
  /** Resolves when the server accepts connections again. @throws EmbeddedPostgresError with its own message when it cannot start */
  start(): Promise<void>;
  /** Ends the server and removes its files. */
  stop(): Promise<void>;
}

export interface TestClusterOptions {
  /** Whether it syncs to disk, like a production server. Default false. */
  durable?: boolean;
  /** An empty folder of the caller for the server's files, removed at the end. Default: a temporary one. */
  dataDir?: string;
  /** A data folder whose cluster is copied, for speed. */
  copyOf?: string;
}

/** Starts a separate Postgres server. A kill of this process also ends the server and removes its files. */
export async function startTestCluster(options: TestClusterOptions = {}): Promise<TestCluster> {
  const { durable = false, copyOf } = options;
  const dataDir = options.dataDir ?? (await openFolder('oddswire-test-'));
  // The server of a root user runs as another user, which needs access to the folder.
  await chmod(dataDir, 0o711);
  if (copyOf !== undefined) {
    await rmdir(dataDir);
    await copyCluster(copyOf, dataDir);
  }
  const { cluster, native, password } = await makeCluster(dataDir, durable);
  const port = await steadyPort();
  const start = async () => {
    await startPostmaster({ cluster, program: native.postgres, port, durable });
  };
  await start();
  const watch = guard(
    'pid=$(head -n 1 "$1/postmaster.pid") && kill -QUIT "$pid" && while kill -0 "$pid"; do sleep 0.1; done; rm -rf "$1" "$2"',
    cluster.data,
    dataDir,
  );

  const pid = async () => (await livePostmaster(cluster))?.pid;

  async function shutDown(mode: ShutdownMode): Promise<void> {
    const running = await pid();
    if (running === undefined || (await signalAndWait(running, SHUTDOWN_SIGNALS[mode], STOP_LIMIT_MS))) return;
    throw new Error(`the server (pid ${running}) is still there after ${STOP_LIMIT_MS} ms`);
  }

  async function kill(): Promise<void> {
    const running = await pid();
    if (running === undefined) return;
    // Stopped first, so that it cannot start another process before the kill.
    process.kill(running, 'SIGSTOP');
    for (const one of [running, ...childrenOf(running).map((child) => child.pid)]) {
      await signalAndWait(one, 'SIGKILL', STOP_LIMIT_MS);
    }
  }

  async function killSession(): Promise<void> {
    const running = await pid();
    const session = running && childrenOf(running).find(({ command }) => /^postgres: .* 127\.0\.0\.1\(/.test(command));
    if (!session) throw new Error('the server has no session');
    await signalAndWait(session.pid, 'SIGKILL', STOP_LIMIT_MS);
  }

  const adminUrl = `postgres://${ROLE}:${encodeURIComponent(password)}@127.0.0.1:${port}/postgres`;
  await makeLoginsCheap(adminUrl, password);
  return {
    adminUrl,
    isRunning: async () => (await pid()) !== undefined,
    shutDown,
    kill,
    killSession,
    start,
    async stop() {
      await shutDown('immediate');
      await watch.dismiss();
      await removeCluster(dataDir);
    },
  };
}

/** Stores the password with one round of its hash: the default of 4,096 rounds takes half of the client's time to connect. */
async function makeLoginsCheap(adminUrl: string, password: string): Promise<void> {
  const client = new pg.Client({ connectionString: adminUrl });
  await client.connect();
  try {
    await client.query(`SET scram_iterations = 1; ALTER ROLE ${ROLE} PASSWORD ${client.escapeLiteral(password)}`);
  } finally {
    await client.end();
  }
}

function childrenOf(pid: number): { pid: number; command: string }[] {
  const { stdout } = spawnSync('ps', ['-A', '-o', 'pid=,ppid=,command='], { encoding: 'utf8' });
  return stdout.split('\n').flatMap((line) => {
    const [, child, parent, command = ''] = /^\s*(\d+)\s+(\d+)\s+(.*)$/.exec(line) ?? [];
    return Number(parent) === pid ? [{ pid: Number(child), command }] : [];
  });
}
