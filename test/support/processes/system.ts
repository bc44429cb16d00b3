import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { type Exchange, type ExchangeOptions, startExchange } from '../../../sim/exchange.ts';
import { type Receiver, startReceiver } from '../../../sim/receiver.ts';
import { ROLES, type Role, type STREAMER } from '../../../src/queues/jobs.ts';
import { endWithThisProcess } from './orphan-guard.ts';

export type ProcessName = 'api' | Role | typeof STREAMER;

export const API_KEY = 'test-key-0123456789abcdef';
/** Free text on purpose: the strictest case for the two ways to derive a key from a secret. */
export const WEBHOOK_SECRET = 'a receiver secret 0123456789';

interface LogLine {
  msg?: string;
  level?: string;
  address?: string;
}

/** A checkout of the former release with its `dist`; processes that a test starts again are of both releases then. */
const FORMER_ROOT = process.env['FORMER_ROOT'];
/** A slower process is killed before the hook that starts it times out, because it would stay otherwise. */
const START_LIMIT_MS = 160_000;
/** Longer than an orchestrator waits before a kill. */
const END_LIMIT_MS = 60_000;

/** Listeners to the life of a process. */
export interface ProcessListener {
  /** Each line of its output. */
  line?(text: string): void;
  /** The exit code, or the signal, at its end. */
  exit?(how: number | NodeJS.Signals): void;
}

/** One oddswire process, started as in the Procfile. It never outlives this one. */
export class OddswireProcess {
  readonly name: ProcessName;
  readonly #environment: Record<string, string>;
  #child: ChildProcess | undefined;
  readonly #warnings: string[] = [];
  #starts = 0;
  /** The last lines of its output, for the message of a failed test. */
  readonly lines: string[] = [];
  readonly #listener: ProcessListener;

  constructor(name: ProcessName, environment: Record<string, string>, listener: ProcessListener = {}) {
    this.name = name;
    this.#environment = environment;
    this.#listener = listener;
  }

  /** Starts it and resolves with the line that reports its start. A process that takes too long is killed. */
  async start(limitMs = START_LIMIT_MS): Promise<LogLine> {
    const script = this.name === 'api' ? ['dist/api/main.js'] : ['dist/workers/main.js', this.name];
    // Every second life is one of the former release, which meets the schema and the marks of the present one.
    const cwd = this.#starts % 2 === 1 ? FORMER_ROOT : undefined;
    this.#starts += 1;
    const child = spawn(process.execPath, script, {
      ...(cwd !== undefined && { cwd }),
      env: { PATH: process.env['PATH'] ?? '', ...this.#environment },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    this.#child = child;
    endWithThisProcess(child);
    child.once('exit', (code, signal) => this.#listener.exit?.(signal ?? code ?? 0));
    child.stderr?.on('data', (chunk: Buffer) => {
      this.#keep(chunk.toString());
      this.#warnings.push(...(chunk.toString().match(/^\(node:\d+\) .*Warning: .*$/gm) ?? []));
    });
    return new Promise((resolve, reject) => {
      let address: string | undefined;
      const limit = setTimeout(() => child.kill('SIGKILL'), limitMs);
      // Its last lines may come after its exit, and before its close.
      child.once('close', (code, signal) => {
        clearTimeout(limit);
        reject(new Error(`${this.name} ended (${signal ?? code}) before it started:\n${this.lines.join('\n')}`));
      });
      createInterface(child.stdout).on('line', (text) => {
        this.#keep(text);
        const line = parseLine(text);
        address ??= line.address;
        if (line.msg !== 'started') return;
        clearTimeout(limit);
        resolve(address === undefined ? line : { ...line, address });
      });
    });
  }

  get pid(): number | undefined {
    return this.#child?.pid;
  }

  get isRunning(): boolean {
    return this.#child !== undefined && this.#child.exitCode === null && this.#child.signalCode === null;
  }

  /** Sends a signal that does not end it. */
  signal(signal: NodeJS.Signals): void {
    this.#child?.kill(signal);
  }

  /**
   * Sends the signal and resolves with the exit code, or null after a signal; after the time limit it is killed.
   * @throws when Node warned of the process
   */
  async end(signal: NodeJS.Signals): Promise<number | null> {
    const child = this.#child;
    if (!child || !this.isRunning) return child?.exitCode ?? null;
    const exited = once(child, 'exit');
    child.kill(signal);
    // A stopped process reacts only to this signal and to SIGKILL.
    child.kill('SIGCONT');
    const limit = setTimeout(() => child.kill('SIGKILL'), END_LIMIT_MS);
    const [code] = await exited;
    clearTimeout(limit);
    const [warning] = this.#warnings.splice(0);
    if (warning !== undefined) throw new Error(`${this.name} warned: ${warning}`);
    return code;
  }

  #keep(text: string): void {
    this.#listener.line?.(text);
    this.lines.push(text);
    if (this.lines.length > 200) this.lines.shift();
  }
}

function parseLine(text: string): LogLine {
  try {
    return JSON.parse(text) as LogLine;
  } catch {
    return { msg: text };
  }
}

export interface SystemOptions {
  databaseUrl: string;
  redisUrl?: string;
  queuePrefix?: string;
  exchange?: ExchangeOptions;
  environment?: Record<string, string>;
}

/** A market-data call to the API at an address; throws unless it succeeds. */
export function readFrom<T>(address: string, path: string): Promise<T> {
  return request(address, path, { headers: { authorization: `Bearer ${API_KEY}` } });
}

/** The API answered with an error. */
export class CallRefusedError extends Error {
  readonly status: number;

  constructor(message: string, status: number) {
    super(message);
    this.status = status;
  }
}

/** Options of an account call, beside its body. */
export interface CallOptions {
  headers?: Record<string, string>;
  signal?: AbortSignal;
}

/** An account call to the API at an address; throws unless it succeeds. */
export function callTo<T>(
  address: string,
  method: string,
  path: string,
  body?: unknown,
  { headers, signal }: CallOptions = {},
): Promise<T> {
  return request(address, path, {
    method,
    headers: { 'x-api-key': API_KEY, ...(body !== undefined && { 'content-type': 'application/json' }), ...headers },
    ...(body !== undefined && { body: JSON.stringify(body) }),
    ...(signal && { signal }),
  });
}

async function request<T>(address: string, path: string, init: RequestInit): Promise<T> {
  const response = await fetch(address + path, init);
  const text = await response.text();
  if (!response.ok)
    throw new CallRefusedError(`${init.method ?? 'GET'} ${path}: ${response.status} ${text}`, response.status);
  return (JSON.parse(text) as { data: T }).data;
}

/** All of oddswire as separate processes, with an exchange to poll and a receiver to deliver to, both in this process. */
export interface System {
  exchange: Exchange;
  receiver: Receiver;
  processes: ReadonlyMap<ProcessName, OddswireProcess>;
  /** A market-data call; throws unless it succeeds. */
  read<T>(path: string): Promise<T>;
  /** An account call; throws unless it succeeds. */
  call<T>(method: string, path: string, body?: unknown): Promise<T>;
  /** Graceful end of all processes; the exit codes by process. */
  stop(): Promise<Map<ProcessName, number | null>>;
}

/** The common settings of the processes of one oddswire: venues, receivers and variables. */
export interface Surroundings {
  exchange: Exchange;
  receiver: Receiver;
  environment: Record<string, string>;
  close(): Promise<void>;
}

/** An exchange and a receiver in this process, and the variables that point processes at them. */
export async function startSurroundings(options: SystemOptions): Promise<Surroundings> {
  const exchange = await startExchange({ markets: 8, historyHours: 1, ...options.exchange });
  const receiver = await startReceiver({ secrets: [WEBHOOK_SECRET] });
  const dir = await mkdtemp(join(tmpdir(), 'oddswire-system-'));
  const caFile = join(dir, 'ca.pem');
  await writeFile(caFile, receiver.caPem);
  const kalshiKeyFile = join(dir, 'kalshi.pem');
  const kalshiKey = options.exchange?.recorded === undefined ? exchange.createKalshiKey() : undefined;
  if (kalshiKey !== undefined) await writeFile(kalshiKeyFile, kalshiKey.privateKey);
  const environment: Record<string, string> = {
    DATABASE_URL: options.databaseUrl,
    ...(options.redisUrl !== undefined && { REDIS_URL: options.redisUrl }),
    QUEUE_PREFIX: options.queuePrefix ?? 'oddswire',
    SECRETS_KEYS: `test:${Buffer.alloc(32, 7).toString('base64')}`,
    POLYMARKET_GAMMA_URL: exchange.gammaUrl,
    POLYMARKET_CLOB_URL: exchange.clobUrl,
    POLYMARKET_DATA_URL: exchange.dataUrl,
    VENUES: 'polymarket',
    KALSHI_API_URL: exchange.kalshiUrl,
    MANIFOLD_API_URL: exchange.manifoldUrl,
    LIMITLESS_API_URL: exchange.limitlessUrl,
    POLYMARKET_FEED_URL: exchange.feedUrls.clob,
    ...(kalshiKey !== undefined && {
      KALSHI_FEED_URL: exchange.feedUrls.kalshi,
      KALSHI_API_KEY_ID: kalshiKey.id,
      KALSHI_PRIVATE_KEY_FILE: kalshiKeyFile,
    }),
    MANIFOLD_FEED_URL: exchange.feedUrls.manifold,
    LIMITLESS_FEED_URL: exchange.feedUrls.limitless,
    JUPITER_API_URL: exchange.jupiterUrl,
    SOLANA_RPC_URL: exchange.solanaUrl,
    POLL_MARKETS_MS: '2000',
    POLL_PRICES_MS: '500',
    POLL_TRADES_MS: '500',
    POLL_BOOKS_MS: '1000',
    POLL_WALLETS_MS: '1000',
    WEBHOOK_ALLOW_CIDRS: '127.0.0.0/8',
    WEBHOOK_CA_FILE: caFile,
    WEBHOOK_RETRY_SCHEDULE: '1,1,2,2,5,5,5,5,5,5',
    BOOTSTRAP_API_KEY: API_KEY,
    RATE_LIMIT_PER_MINUTE: '1000000',
    COLD_READS_PER_MINUTE: '1000000',
    PORT: '0',
    METRICS_PORT: '0',
    ...options.environment,
  };
  return {
    exchange,
    receiver,
    environment,
    async close() {
      await receiver.close();
      await exchange.close();
      await rm(dir, { recursive: true, force: true });
    },
  };
}

export async function startSystem(options: SystemOptions): Promise<System> {
  const { exchange, receiver, environment, close } = await startSurroundings(options);
  const names: ProcessName[] = ['api', ...ROLES];
  const processes = new Map(names.map((name) => [name, new OddswireProcess(name, environment)]));
  const started = await Promise.all([...processes.values()].map((item) => item.start()));
  const address = started[0]?.address ?? '';

  return {
    exchange,
    receiver,
    processes,
    read: (path) => readFrom(address, path),
    call: (method, path, body) => callTo(address, method, path, body),
    async stop() {
      const codes = await Promise.all(
        [...processes].map(async ([name, item]) => [name, await item.end('SIGTERM')] as const),
      );
      await close();
      return new Map(codes);
    },
  };
}
