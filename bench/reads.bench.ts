import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import autocannon from 'autocannon';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { sql } from '../src/store/tx.ts';
import { createTestDatabase, type TestDatabase } from '../test/support/database.ts';
import { API_KEY, OddswireProcess } from '../test/support/system.ts';
import { storeHistory } from './stored-history.ts';
import { type Figure, printFigures, whole } from './table.ts';

/** BENCH_TRADES=1000000 for the figure of the design; BENCH_SECONDS is the length of one measurement. */
const TRADES = Number(process.env['BENCH_TRADES'] ?? 100_000);
const SECONDS = Number(process.env['BENCH_SECONDS'] ?? 1);
const MARKETS = 2_000;
const DAYS = 60;
const CONNECTIONS = 16;
const HEADERS = { authorization: `Bearer ${API_KEY}` };

const ROUTES = {
  prices: (id: string) => `/v1/polymarket/markets/${id}/prices`,
  market: (id: string) => `/v1/polymarket/markets/${id}`,
  candles: (id: string) => `/v1/polymarket/markets/${id}/candles?interval=1h`,
  trades: (id: string) => `/v1/polymarket/markets/${id}/trades?limit=100`,
} as const;

let database: TestDatabase;
let api: OddswireProcess;
let bare: ChildProcess;
let address: string;
let marketIds: string[];
beforeAll(async () => {
  bare = fork(join(import.meta.dirname, 'bare-server.mjs'));
  database = await createTestDatabase();
  marketIds = await storeHistory(database.db, { markets: MARKETS, trades: TRADES, days: DAYS });
  api = new OddswireProcess('api', {
    DATABASE_URL: database.url,
    SECRETS_KEYS: `bench:${Buffer.alloc(32, 7).toString('base64')}`,
    BOOTSTRAP_API_KEY: API_KEY,
    RATE_LIMIT_PER_MINUTE: '100000000',
    VENUES: 'polymarket',
    PORT: '0',
    METRICS_PORT: '0',
  });
  address = (await api.start()).address ?? '';
});
afterAll(async () => {
  bare.disconnect();
  await api.end('SIGTERM');
  await database.drop();
});

/** Has the bare server send what the API sends; its address. */
async function teachBareServer(paths: readonly string[]): Promise<string> {
  const answers = [];
  for (const path of paths) {
    const response = await fetch(address + path, { headers: HEADERS });
    expect(response.status).toBe(200);
    const names = ['content-type', 'etag', 'cache-control', 'vary', 'x-request-id'];
    const headers = Object.fromEntries(names.map((name) => [name, response.headers.get(name) ?? '']));
    answers.push({ path, headers, body: await response.text() });
  }
  bare.send(answers);
  const [{ port }] = (await once(bare, 'message')) as [{ port: number }];
  return `http://127.0.0.1:${port}`;
}

async function requestsPerSecond(url: string, paths: readonly string[]): Promise<{ rate: number; p99: number }> {
  const result = await autocannon({
    url,
    connections: CONNECTIONS,
    duration: SECONDS,
    headers: HEADERS,
    requests: paths.map((path) => ({ path })),
  });
  expect(result.non2xx + result.errors + result.timeouts).toBe(0);
  return { rate: result.requests.average, p99: result.latency.p99 };
}

it('reads, beside a bare server that sends the same bytes', async () => {
  const figures: Figure[] = [];
  for (const [name, pathOf] of Object.entries(ROUTES)) {
    for (const [label, count] of [
      ['one market', 1],
      [`${whole(MARKETS)} markets in turn`, MARKETS],
    ] as const) {
      const paths = marketIds.slice(0, count).map(pathOf);
      const bareUrl = await teachBareServer(paths.slice(0, Math.min(count, 50)));
      const ours = await requestsPerSecond(address, paths);
      const theirs = await requestsPerSecond(bareUrl, paths.slice(0, Math.min(count, 50)));
      const again = await requestsPerSecond(address, paths);
      const rate = (ours.rate + again.rate) / 2;
      figures.push({
        what: `${name}, ${label}`,
        measured: `${whole(rate)} requests/s, p99 ${Math.max(ours.p99, again.p99)} ms`,
        baseline: `bare server ${whole(theirs.rate)} requests/s`,
        ratio: (rate / theirs.rate).toFixed(2),
        goal: '>= 0.5',
      });
    }
  }
  printFigures(figures);
  const [size] = await database.db.query<{ bytes: string }>(
    sql('bench_size', 'SELECT pg_database_size(current_database()) AS bytes'),
  );
  console.log(`${whole(TRADES)} trades, database size: ${whole(Number(size?.bytes ?? 0) / 1_048_576)} MiB`);
});
