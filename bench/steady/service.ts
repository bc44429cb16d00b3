import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { FEED_PATHS } from '../../sim/feeds/hub.ts';
import { makePrivateKey, PRESET_KEY_ID } from '../../sim/kalshi/handshake.ts';
import { VARIABLES } from '../../src/config/variables.ts';
import { ROLES, STREAMER } from '../../src/queues/jobs.ts';
import { endWithThisProcess } from '../../test/support/processes/orphan-guard.ts';
import { NODE_OPTIONS } from '../support/node-options.ts';
import { cpuOfChildren } from '../support/process-usage.ts';
import { type Simulator, startSimulator } from '../support/simulator.ts';
import { type DataFolder, databaseUrlOf, makeDataFolder } from './cluster.ts';
import { activityOf, type SteadyOptions } from './options.ts';

/** Everything of the service on this machine: `oddswire start` or `oddswire demo`, its children, and its Postgres. */
export interface Service {
  /** By name: the runner, the lines of the Procfile, and `simulator` and `receiver` of the demo. Empty on systems without /proc. */
  readonly pids: ReadonlyMap<string, number>;
  /** The addresses of /metrics by process. */
  readonly metrics: ReadonlyMap<string, string>;
  readonly databaseUrl: string;
  readonly simulatorUrl: string;
  readonly data: DataFolder;
  readonly pollMs: PollMs;
  stop(): Promise<void>;
}

const POLLS = ['markets', 'prices', 'trades', 'books'] as const;
/** The intervals of the polls. */
export type PollMs = Readonly<Record<(typeof POLLS)[number], number>>;

/** The simulated exchange of a combination, on its own clock. */
export interface World {
  readonly simulator: Simulator;
  readonly kalshiKeyFile: string;
}

const VENUES = 4;
const START_LIMIT_MS = 160_000;

/** `markets` of all venues together, of which as many trade as the rate needs. The history is short, so that the service catches up soon. */
export async function startWorld(folder: string, markets: number, rate: number): Promise<World> {
  const kalshiKeyFile = join(folder, 'kalshi.pem');
  await writeFile(kalshiKeyFile, makePrivateKey());
  const perVenue = Math.round(markets / VENUES);
  const { liveMarkets, speed } = activityOf(rate, perVenue);
  const simulator = await startSimulator([
    ...['--seed', '7', '--markets', String(perVenue), '--live-markets', String(liveMarkets), '--speed', String(speed)],
    ...['--history-hours', '0.02', '--rolling-seconds', '0', '--kalshi-key-file', kalshiKeyFile],
  ]);
  return { simulator, kalshiKeyFile };
}

/** The variables of `oddswire start` on a simulated exchange: addresses, and the key of a feed. */
function exchangeEnvironment({ simulator, kalshiKeyFile }: World, feeds: boolean): Record<string, string> {
  const { url } = simulator;
  const feed = (path: string) => `${url.replace('http', 'ws')}${path}`;
  return {
    POLYMARKET_GAMMA_URL: `${url}/gamma`,
    POLYMARKET_CLOB_URL: `${url}/clob`,
    POLYMARKET_DATA_URL: `${url}/data`,
    KALSHI_API_URL: `${url}/kalshi/trade-api/v2`,
    MANIFOLD_API_URL: `${url}/manifold/v0`,
    LIMITLESS_API_URL: `${url}/limitless`,
    ...(feeds && {
      POLYMARKET_FEED_URL: feed(FEED_PATHS.clob),
      KALSHI_FEED_URL: feed(FEED_PATHS.kalshi),
      MANIFOLD_FEED_URL: feed(FEED_PATHS.manifold),
      LIMITLESS_FEED_URL: feed(FEED_PATHS.limitless),
      KALSHI_API_KEY_ID: PRESET_KEY_ID,
      KALSHI_PRIVATE_KEY_FILE: kalshiKeyFile,
    }),
  };
}

/** Starts the service as a user does, and resolves when every process of the Procfile runs. `world` is absent for the demo. */
export async function startService(options: SteadyOptions, redisUrl: string | null, world?: World): Promise<Service> {
  const command = world === undefined ? 'demo' : 'start';
  const data = await makeDataFolder(world === undefined ? 'demo' : '', options.statements);
  const { child, lines } = run(command, {
    PATH: process.env['PATH'] ?? '',
    DATA_DIR: data.path,
    PORT: '0',
    METRICS_PORT: '0',
    FEEDS: options.feeds ? 'on' : 'off',
    ...(options.queues === 'redis' && redisUrl !== null && { REDIS_URL: redisUrl }),
    ...(world && exchangeEnvironment(world, options.feeds)),
    ...NODE_OPTIONS,
    ...(options.profiles && { NODE_OPTIONS: profilerOptions(options.profiles) }),
  });
  const stop = async () => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    const exited = once(child, 'exit');
    child.kill('SIGTERM');
    await exited;
  };
  try {
    await untilStarted(child, lines, command);
    const started = await allProcessesOf(child.pid ?? 0, command);
    return {
      ...started,
      simulatorUrl: world?.simulator.url ?? `http://127.0.0.1:${started.simulatorPort}`,
      databaseUrl: await databaseUrlOf(data),
      data,
      stop,
    };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** The hook profiles each process from its start to its exit. */
function profilerOptions(folder: string): string {
  const hook = pathToFileURL(resolve('bench/profile-hook.mjs'));
  hook.searchParams.set('folder', resolve(folder));
  return `--import ${hook.href}`;
}

function run(command: string, environment: Record<string, string>): { child: ChildProcess; lines: string[] } {
  const child = spawn(process.execPath, ['dist/bin/oddswire.js', command], {
    env: environment,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  endWithThisProcess(child);
  const lines: string[] = [];
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (chunk: Buffer) => {
      lines.push(chunk.toString());
      if (lines.length > 200) lines.shift();
    });
  }
  return { child, lines };
}

const READY = { demo: 'first price served', start: 'oddswire is ready' };

async function untilStarted(child: ChildProcess, lines: readonly string[], command: 'demo' | 'start'): Promise<void> {
  const giveUpMs = performance.now() + START_LIMIT_MS;
  while (!lines.some((line) => line.includes(READY[command]))) {
    if (child.exitCode !== null || performance.now() > giveUpMs) {
      throw new Error(`oddswire ${command} did not start:\n${lines.join('')}`);
    }
    await delay(100);
  }
}

/** The children of the runner: the demo serves its first price before all of them run. */
async function allProcessesOf(runner: number, command: 'demo' | 'start') {
  for (const giveUpMs = performance.now() + START_LIMIT_MS; ; await delay(100)) {
    const found = await processesOf(runner);
    // A child has the command line of the runner until it loads its own program.
    if (!found.pids.has(command) && ['api', ...ROLES, STREAMER].every((role) => found.pids.has(role))) return found;
    if (performance.now() > giveUpMs) throw new Error(`oddswire ${command} did not start every process`);
  }
}

/** The children of the runner, by the names of the Procfile. */
async function processesOf(runner: number) {
  const pids = new Map([['runner', runner]]);
  const metrics = new Map<string, string>();
  let simulatorPort = '';
  let given: Readonly<Record<string, string>> = {};
  for (const pid of (await cpuOfChildren(runner)).keys()) {
    const { command, environment } = await startOf(pid);
    const name = nameOf(command);
    if (name === undefined) continue;
    pids.set(name, pid);
    if (name === 'poller') given = environment;
    if (name === 'simulator') simulatorPort = command[command.indexOf('--port') + 1] ?? '';
    else if (name !== 'receiver' && name !== 'db') {
      metrics.set(name, `http://127.0.0.1:${environment['METRICS_PORT']}/metrics`);
    }
  }
  const intervals = POLLS.map((kind) => {
    const variable = `POLL_${kind.toUpperCase()}_MS` as 'POLL_MARKETS_MS';
    return [kind, Number(given[variable] || VARIABLES[variable].default)];
  });
  return { pids, metrics, simulatorPort, pollMs: Object.fromEntries(intervals) as PollMs };
}

/** The words of a running process' command line, and its environment. */
async function startOf(pid: number): Promise<{ command: string[]; environment: Record<string, string> }> {
  const words = async (file: string) => (await readFile(`/proc/${pid}/${file}`, 'utf8')).split('\0').filter(Boolean);
  const entries = (await words('environ')).map((entry): [string, string] => {
    const at = entry.indexOf('=');
    return [entry.slice(0, at), entry.slice(at + 1)];
  });
  return { command: await words('cmdline'), environment: Object.fromEntries(entries) };
}

/** The name of a process of the service by its command line; undefined for another program. */
export function nameOf(command: readonly string[]): string | undefined {
  const at = command.findIndex((word) => word.endsWith('.js'));
  switch (command[at]) {
    case 'dist/api/main.js':
      return 'api';
    case 'dist/workers/main.js':
    case 'dist/bin/oddswire.js':
      return command[at + 1];
    case 'dist/sim/main.js':
      return 'simulator';
    case 'dist/sim/receiver-main.js':
      return 'receiver';
    default:
      return undefined;
  }
}
