import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { type Exchange, type ExchangeOptions, startExchange } from '../../sim/exchange.ts';
import { type Receiver, startReceiver } from '../../sim/receiver.ts';
import { ROLES, type Role } from '../../src/queues/jobs.ts';

export type ProcessName = 'api' | Role;

export const API_KEY = 'test-key-0123456789abcdef';
/** Free text on purpose: the strictest case for the two ways a secret becomes a key. */
export const WEBHOOK_SECRET = 'a receiver secret 0123456789';

interface LogLine {
  msg?: string;
  level?: string;
  address?: string;
}

/** One oddswire process, as the Procfile starts it. */
export class OddswireProcess {
  readonly name: ProcessName;
  readonly #environment: Record<string, string>;
  #child: ChildProcess | undefined;
  /** The last lines it wrote, for the message of a failed test. */
  readonly lines: string[] = [];

  constructor(name: ProcessName, environment: Record<string, string>) {
    this.name = name;
    this.#environment = environment;
  }

  /** Starts it and resolves with the line that says it has. */
  async start(): Promise<LogLine> {
    const script = this.name === 'api' ? ['dist/api/main.js'] : ['dist/workers/main.js', this.name];
    const child = spawn(process.execPath, script, {
      env: { PATH: process.env['PATH'] ?? '', ...this.#environment },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    this.#child = child;
    child.stderr?.on('data', (chunk: Buffer) => this.#keep(chunk.toString()));
    return new Promise((resolve, reject) => {
      let address: string | undefined;
      child.once('exit', (code, signal) => {
        reject(new Error(`${this.name} ended (${signal ?? code}) before it started:\n${this.lines.join('\n')}`));
      });
      createInterface(child.stdout).on('line', (text) => {
        this.#keep(text);
        const line = parseLine(text);
        address ??= line.address;
        if (line.msg === 'started') resolve(address === undefined ? line : { ...line, address });
      });
    });
  }

  get pid(): number | undefined {
    return this.#child?.pid;
  }

  /** Sends the signal and resolves with the exit code, or null when the signal ended it. */
  async end(signal: NodeJS.Signals): Promise<number | null> {
    const child = this.#child;
    if (!child || child.exitCode !== null || child.signalCode !== null) return child?.exitCode ?? null;
    const exited = once(child, 'exit');
    child.kill(signal);
    const [code] = await exited;
    return code;
  }

  #keep(text: string): void {
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

/** An account call to the API at an address; throws unless it succeeds. */
export function callTo<T>(address: string, method: string, path: string, body?: unknown): Promise<T> {
  return request(address, path, {
    method,
    headers: { 'x-api-key': API_KEY, ...(body !== undefined && { 'content-type': 'application/json' }) },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
}

async function request<T>(address: string, path: string, init: RequestInit): Promise<T> {
  const response = await fetch(address + path, init);
  const text = await response.text();
  if (!response.ok) throw new Error(`${init.method ?? 'GET'} ${path}: ${response.status} ${text}`);
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
  /** kill -9, then start again. */
  killAndRestart(name: ProcessName): Promise<void>;
  /** Graceful end of everything; the exit codes by process. */
  stop(): Promise<Map<ProcessName, number | null>>;
}

/** What the processes of one oddswire share: whom they poll and deliver to, and their variables. */
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
    async killAndRestart(name) {
      const item = processes.get(name);
      await item?.end('SIGKILL');
      await item?.start();
    },
    async stop() {
      const codes = await Promise.all(
        [...processes].map(async ([name, item]) => [name, await item.end('SIGTERM')] as const),
      );
      await close();
      return new Map(codes);
    },
  };
}
