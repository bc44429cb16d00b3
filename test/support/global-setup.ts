import { spawn } from 'node:child_process';
import { once } from 'node:events';
import type { TestProject } from 'vitest/node';
import { makeCluster, openFolder, removeCluster } from './postgres/made-cluster.ts';
import { createTemplate } from './postgres/template.ts';
import { guard } from './processes/guard.ts';
import { startTestRedis } from './redis/redis.ts';

declare module 'vitest' {
  interface ProvidedContext {
    /** Superuser URL of the run's throwaway Postgres cluster. */
    adminUrl: string;
    /** A data folder with a prepared cluster that is not started: for tests that need a server of their own. */
    madeCluster: string;
    /** The run's Redis, or null without REDIS_URL and without a redis-server on PATH. */
    redisUrl: string | null;
  }
}

/**
 * One Postgres cluster and one Redis for the whole run; every test file uses its own database and key prefix. `parent` is the folder
 * for the cluster, by default the temporary folder.
 */
export default async function setup(project: TestProject, parent?: string): Promise<() => Promise<void>> {
  const made = await openFolder('oddswire-made-');
  const watch = guard('rm -rf "$1"', made);
  const [cluster, redis] = await Promise.all([clusterWithTemplate(made, parent), startTestRedis(), build()]);
  project.provide('adminUrl', cluster.adminUrl);
  project.provide('madeCluster', made);
  project.provide('redisUrl', redis?.url ?? null);
  return async () => {
    await redis?.stop();
    await cluster.stop();
    await watch.dismiss();
    await removeCluster(made);
  };
}

/** End-to-end tests start real processes from the build. */
async function build(): Promise<void> {
  if (process.env['NO_BUILD']) return;
  const [code] = await once(spawn('npm', ['run', '--silent', 'build'], { stdio: 'inherit' }), 'exit');
  if (code !== 0) throw new Error('npm run build failed');
}

async function clusterWithTemplate(made: string, parent?: string): ReturnType<typeof testCluster> {
  const cluster = await testCluster(made, parent);
  await createTemplate(cluster.adminUrl);
  return cluster;
}

/** A throwaway cluster, or the server of TEST_DATABASE_URL (of a superuser), to run the suite on another Postgres. */
async function testCluster(made: string, parent?: string): Promise<{ adminUrl: string; stop(): Promise<void> }> {
  await makeCluster(made);
  const given = process.env['TEST_DATABASE_URL'];
  if (given) return { adminUrl: given, stop: async () => undefined };
  const { startTestCluster } = await import('./postgres/embedded-cluster.ts');
  return startTestCluster({ copyOf: made, dataDir: await openFolder('oddswire-test-', parent) });
}
