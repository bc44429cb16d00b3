import autocannon from 'autocannon';
import { expect } from 'vitest';

import { eventually } from '../../test/support/eventually.ts';
import { API_KEY, OddswireProcess } from '../../test/support/processes/system.ts';
import { freePort } from '../../test/support/redis/redis.ts';
import { NODE_OPTIONS } from './node-options.ts';

export const HEADERS = { authorization: `Bearer ${API_KEY}` };
const CONNECTIONS = 64;

/** The point reads of a market. */
export const ROUTES = {
  prices: (id: string) => `/v1/polymarket/markets/${id}/prices`,
  market: (id: string) => `/v1/polymarket/markets/${id}`,
  candles: (id: string) => `/v1/polymarket/markets/${id}/candles?interval=1h`,
  trades: (id: string) => `/v1/polymarket/markets/${id}/trades?limit=100`,
  executable: (id: string) => `/v1/polymarket/markets/${id}/executable?side=buy&size=500`,
} as const;

/** An API process over a database, and its address. */
export interface Api {
  address: string;
  pid: number;
  /** Resolves when every open market is in memory, or as many as it takes. Needs a publisher. */
  loaded(): Promise<void>;
  stop(): Promise<void>;
}

export async function startApi(databaseUrl: string, environment: Record<string, string> = {}): Promise<Api> {
  const metricsPort = await freePort();
  const api = new OddswireProcess('api', {
    DATABASE_URL: databaseUrl,
    SECRETS_KEYS: `bench:${Buffer.alloc(32, 7).toString('base64')}`,
    BOOTSTRAP_API_KEY: API_KEY,
    RATE_LIMIT_PER_MINUTE: '100000000',
    VENUES: 'polymarket',
    PORT: '0',
    METRICS_PORT: String(metricsPort),
    ...NODE_OPTIONS,
    ...environment,
  });
  const { address = '' } = await api.start();
  return {
    address,
    pid: api.pid ?? 0,
    async loaded() {
      const scraped = async () => (await fetch(`http://127.0.0.1:${metricsPort}/metrics`)).text();
      await eventually(scraped, (text) => /^read_memory_loaded\{.*\} 1$/m.test(text), { timeoutMs: 300_000 });
    },
    async stop() {
      await api.end('SIGTERM');
    },
  };
}

export interface ReadRate {
  /** Requests per second. */
  rate: number;
  p99Ms: number;
  answers: number;
}

export interface ReadLoad {
  /** Read in turn, repeatedly. Each connection reads its own share, so that no two request the same path at the same time. */
  paths: readonly string[];
  /** The duration; or `once`, each path a single time, so that the cache cannot answer it. */
  length: { seconds: number } | 'once';
}

/** Requests of 64 connections, spread over these addresses. @throws when any answer is not 2xx. */
export async function readRate(addresses: readonly string[], load: ReadLoad): Promise<ReadRate> {
  const connections = CONNECTIONS / addresses.length;
  const results = await Promise.all(
    addresses.map((url, index) => {
      const paths = load.paths.length < addresses.length ? load.paths : share(load.paths, index, addresses.length);
      return request(url, { ...load, paths }, connections);
    }),
  );
  for (const { result } of results) expect(result.non2xx + result.errors + result.timeouts).toBe(0);
  return {
    rate: results.reduce((sum, { rate }) => sum + rate, 0),
    answers: results.reduce((sum, { answers }) => sum + answers, 0),
    p99Ms: Math.max(...results.map(({ result }) => result.latency.p99)),
  };
}

async function request(
  url: string,
  { paths, length }: ReadLoad,
  most: number,
): Promise<{ result: autocannon.Result; rate: number; answers: number }> {
  const connections = length === 'once' ? Math.min(most, paths.length) : most;
  let [clients, answers, firstMs, lastMs] = [0, 0, 0, 0];
  const result = await autocannon({
    url,
    connections,
    headers: HEADERS,
    ...(length === 'once' ? { amount: paths.length } : { duration: length.seconds }),
    setupClient: (connection) => {
      const own = paths.length < connections ? paths : share(paths, clients, connections);
      clients += 1;
      connection.setRequests(own.map((path) => ({ path })));
      connection.on('response', () => {
        answers += 1;
        lastMs = performance.now();
        if (answers === 1) firstMs = lastMs;
      });
    },
  });
  // Between answers, because autocannon checks for the end only once a second.
  return { result, answers, rate: ((answers - 1) * 1_000) / (lastMs - firstMs) };
}

/** Every n-th, from the index-th. */
function share(paths: readonly string[], index: number, of: number): string[] {
  return paths.filter((_, position) => position % of === index);
}
