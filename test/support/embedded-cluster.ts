import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createLogger } from '../../src/observe/logger.ts';
import { startEmbeddedPostgres } from '../../src/runtime/embedded-postgres.ts';

/** A throwaway Postgres server. */
export interface TestCluster {
  /** Superuser, database `postgres`: make a database per test file from here. */
  readonly adminUrl: string;
  /** Ends the server and removes its files. */
  readonly stop: () => Promise<void>;
}

/**
 * A Postgres server in a temporary folder, without fsync. Should this process be killed, the server and the folder go
 * with it.
 */
export async function startTestCluster(): Promise<TestCluster> {
  const dataDir = await mkdtemp(join(tmpdir(), 'oddswire-test-'));
  // The server of a root user runs as another one, who must get in.
  await chmod(dataDir, 0o711);
  const log = createLogger({ process: 'test-cluster', level: process.env['TEST_LOG_LEVEL'] ?? 'error' });
  const server = await startEmbeddedPostgres({ dataDir, durable: false, log });
  // Ends with its standard input, that is with this process, however that happens.
  const script = 'read -r end; kill -QUIT "$1"; while kill -0 "$1" 2>/dev/null; do sleep 0.1; done; rm -rf "$2"';
  const guard = spawn('/bin/sh', ['-c', script, 'sh', String(server.pid), dataDir], {
    detached: true,
    stdio: ['pipe', 'ignore', 'ignore'],
  });
  guard.unref();
  const adminUrl = new URL(server.url);
  adminUrl.pathname = '/postgres';
  return {
    adminUrl: adminUrl.href,
    async stop() {
      const guardGone = once(guard, 'exit');
      guard.kill('SIGKILL');
      await guardGone;
      await server.stop();
      await rm(dataDir, { recursive: true, force: true });
    },
  };
}
