import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { guard } from '../processes/guard.ts';
import { steadyPort } from '../processes/steady-port.ts';

export interface TestRedis {
  url: string;
  stop(): Promise<void>;
}

/** A Redis for tests: REDIS_URL, else a redis-server from PATH on a free port, else null with a warning. */
export async function startTestRedis(): Promise<TestRedis | null> {
  const given = process.env['REDIS_URL'];
  if (given) return { url: given, stop: async () => undefined };
  if (spawnSync('redis-server', ['--version']).status !== 0) {
    console.warn('\n!!! no REDIS_URL and no redis-server on PATH: the Redis half of the queue tests is SKIPPED !!!\n');
    return null;
  }
  return spawnRedis();
}

/** A separate redis-server with the settings of production: append-only file, no eviction. */
export async function spawnRedis(): Promise<TestRedis> {
  const server = await spawnRedisServer();
  return { url: `redis://127.0.0.1:${server.port}`, stop: () => server.stop() };
}

export interface RedisServer {
  readonly port: number;
  /** kill -9; `stop` must still be called. */
  kill(): Promise<void>;
  /** Ends it as an operator does, without loss; `stop` must still be called. */
  shutDown(): Promise<void>;
  /** Restarts it after one of these, on the same address with the same data; resolves when it accepts connections. */
  start(): Promise<void>;
  stop(): Promise<void>;
}

/** Production's settings and the caller's additions, on a free port; resolves when it accepts connections. */
export async function spawnRedisServer(settings: Readonly<Record<string, string>> = {}): Promise<RedisServer> {
  const port = await steadyPort();
  const dir = await mkdtemp(join(tmpdir(), 'oddswire-redis-'));
  const all = {
    appendonly: 'yes',
    'maxmemory-policy': 'noeviction',
    hz: '100',
    'repl-diskless-sync-delay': '0',
    ...settings,
  };
  const args = Object.entries(all).flatMap(([name, value]) => [`--${name}`, value]);
  return launch(dir, port, ['--port', String(port), '--bind', '127.0.0.1', '--dir', dir, ...args], 'Ready to accept');
}

/** A Redis Sentinel with this configuration, which it rewrites at run time. */
export async function spawnSentinel(lines: readonly string[]): Promise<RedisServer> {
  const port = await steadyPort();
  const dir = await mkdtemp(join(tmpdir(), 'oddswire-sentinel-'));
  const file = join(dir, 'sentinel.conf');
  await writeFile(file, [`port ${port}`, 'bind 127.0.0.1', `dir ${dir}`, ...lines, ''].join('\n'));
  return launch(dir, port, [file, '--sentinel'], '+monitor');
}

async function launch(dir: string, port: number, args: string[], readyLine: string): Promise<RedisServer> {
  const pidFile = join(dir, 'redis.pid');
  let server = await run([...args, '--pidfile', pidFile], readyLine);
  const watch = guard('kill -9 "$(cat "$1/redis.pid")"; rm -rf "$1"', dir);
  const end = async (signal: NodeJS.Signals) => {
    if (server.exitCode !== null || server.signalCode !== null) return;
    const exited = once(server, 'exit');
    server.kill(signal);
    await exited;
  };
  return {
    port,
    kill: () => end('SIGKILL'),
    shutDown: () => end('SIGTERM'),
    async start() {
      server = await run([...args, '--pidfile', pidFile], readyLine);
    },
    async stop() {
      await end('SIGTERM');
      await watch.dismiss();
      await rm(dir, { recursive: true, force: true });
    },
  };
}

async function run(args: readonly string[], readyLine: string): Promise<ChildProcess> {
  const server = spawn('redis-server', args, { stdio: ['ignore', 'pipe', 'inherit'] });
  const said: string[] = [];
  for await (const line of createInterface(server.stdout)) {
    said.push(line);
    if (line.includes(readyLine)) break;
  }
  if (!said.at(-1)?.includes(readyLine)) throw new Error(`redis-server did not start:\n${said.join('\n')}`);
  server.stdout.resume();
  return server;
}

export async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  server.close();
  if (typeof address !== 'object' || address === null) throw new Error('no address');
  return address.port;
}
