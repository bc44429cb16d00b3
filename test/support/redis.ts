import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

export interface TestRedis {
  url: string;
  stop(): Promise<void>;
}

/** A Redis to test on: REDIS_URL, else a redis-server from PATH on a free port, else null, which is said aloud. */
export async function startTestRedis(): Promise<TestRedis | null> {
  const given = process.env['REDIS_URL'];
  if (given) return { url: given, stop: async () => undefined };
  if (spawnSync('redis-server', ['--version']).status !== 0) {
    console.warn('\n!!! no REDIS_URL and no redis-server on PATH: the Redis half of the queue tests is SKIPPED !!!\n');
    return null;
  }
  return spawnRedis();
}

/** A redis-server of one's own, set up as production asks: append-only file, no eviction. */
export async function spawnRedis(): Promise<TestRedis> {
  const port = await freePort();
  const dir = await mkdtemp(join(tmpdir(), 'oddswire-redis-'));
  const args = ['--port', String(port), '--bind', '127.0.0.1', '--dir', dir, '--appendonly', 'yes'];
  const server = spawn('redis-server', [...args, '--maxmemory-policy', 'noeviction', '--hz', '100'], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const exited = once(server, 'exit');
  for await (const line of createInterface(server.stdout)) {
    if (line.includes('Ready to accept connections')) break;
  }
  server.stdout.resume();
  return {
    url: `redis://127.0.0.1:${port}`,
    async stop() {
      server.kill('SIGTERM');
      await exited;
      await rm(dir, { recursive: true, force: true });
    },
  };
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  server.close();
  if (typeof address !== 'object' || address === null) throw new Error('no address');
  return address.port;
}
