import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, it } from 'vitest';
import { createTestDatabase, type TestDatabase } from '../test/support/postgres/database.ts';
import { measureExecutable } from './support/executable-load.ts';
import type { Figure } from './support/figure.ts';
import { type LiveChanges, startChanges } from './support/live-changes.ts';
import { percentile, sizeOf, sizesOf, whole } from './support/numbers.ts';
import { cpuSeconds } from './support/process-usage.ts';
import { type Api, startApi } from './support/read-load.ts';
import { report } from './support/report.ts';
import { storeHistory } from './support/stored-history.ts';
import { openStreams, residentBytes } from './support/stream-load.ts';

/** BENCH_CLIENTS=10000 for the published figure; it needs `ulimit -n` above this number. */
const CLIENTS = sizesOf('BENCH_CLIENTS', [1, 100, 1_000]);
const EXECUTABLE_CLIENTS = 1_000;
/** Of each measurement. */
const SECONDS = sizeOf('BENCH_SECONDS', 4);
/** Messages per second to all clients together: more would measure an overload. */
const MAX_MESSAGES_PER_SECOND = 100_000;
const MAX_CHANGES = 100;
const ROUND_MS = 100;
/** Of more than 1,000 clients: one write to each of 10,000 takes a fifth of a second. */
const LONG_ROUND_MS = 1_000;
/** Idle streams get a heartbeat in this time, after which their memory is measured. */
const IDLE_MS = 2_000;
const MARKETS = 500;
const PATH = '/v1/polymarket/stream?channels=prices';

let database: TestDatabase;
let changes: LiveChanges;
let marketIds: string[];
let api: Api;
let bare: ChildProcess;
let bareAddress: string;
beforeAll(async () => {
  database = await createTestDatabase();
  marketIds = await storeHistory(database.db, { markets: MARKETS, trades: 1_000, days: 1 });
  changes = await startChanges(database.db, database.url, 0);
  const limit = String(2 * Math.max(EXECUTABLE_CLIENTS, ...CLIENTS));
  api = await startApi(database.url, {
    STREAM_MAX_CONNECTIONS: limit,
    STREAM_CONNECTIONS_PER_ACCOUNT: limit,
    STREAM_MESSAGES_PER_SECOND: '0',
    HTTP_MAX_CONNECTIONS_PER_ADDRESS: limit,
  });
  bare = fork(join(import.meta.dirname, 'support', 'bare-streams.mjs'));
  const [{ port }] = (await once(bare, 'message')) as [{ port: number }];
  bareAddress = `http://127.0.0.1:${port}`;
});
afterAll(async () => {
  bare.disconnect();
  await api.stop();
  await changes.stop();
  await database.drop();
});

interface Measured {
  p50Ms: number;
  p99Ms: number;
  /** Seconds of the server's CPU per second. */
  cpu: number;
  /** Per client that is connected. */
  bytesPerClient: number;
  sample: string;
}

interface Rate {
  changesPerSecond: number;
  roundMs: number;
}

function rateFor(clients: number): Rate {
  const changesPerSecond = Math.min(MAX_CHANGES, MAX_MESSAGES_PER_SECOND / clients);
  return { changesPerSecond, roundMs: clients > 1_000 ? LONG_ROUND_MS : ROUND_MS };
}

/** Opens idle streams and measures their memory; then lets `send` run and measures the server. */
async function measure(
  server: { pid: number; address: string },
  count: number,
  send: () => Promise<unknown>,
): Promise<Measured> {
  const before = await residentBytes(server.pid);
  const load = await openStreams(server.address, () => PATH, count);
  try {
    await delay(IDLE_MS);
    const bytesPerClient = ((await residentBytes(server.pid)) - before) / count;
    const cpuBefore = await cpuSeconds(server.pid);
    await send();
    const cpu = ((await cpuSeconds(server.pid)) - cpuBefore) / SECONDS;
    const { delaysMs, sample } = load;
    return { p50Ms: percentile(delaysMs, 0.5), p99Ms: percentile(delaysMs, 0.99), cpu, bytesPerClient, sample };
  } finally {
    load.close();
  }
}

async function sendChanges({ changesPerSecond, roundMs }: Rate): Promise<void> {
  changes.setRate(changesPerSecond, roundMs);
  await delay(SECONDS * 1_000);
  changes.setRate(0);
}

/** The bare server sends the same bytes, with their time, at the same rate. */
async function sendBare(sample: string, { changesPerSecond, roundMs }: Rate): Promise<void> {
  const each = (changesPerSecond * roundMs) / 1_000;
  const begunMs = performance.now();
  for (let round = 1; round <= (SECONDS * 1_000) / roundMs; round += 1) {
    bare.send(sample.replace(/"at":"[^"]+"/, `"at":"${new Date().toISOString()}"`).repeat(each));
    await delay(Math.max(0, begunMs + round * roundMs - performance.now()));
  }
}

function figuresOf(count: number, own: Measured, limit: Measured): Figure[] {
  const text = ({ p50Ms, p99Ms, cpu }: Measured) =>
    `p50 ${whole(p50Ms)} ms, p99 ${whole(p99Ms)} ms, ${(cpu * 100).toFixed(0)} % CPU`;
  const clients = `${whole(count)} ${count === 1 ? 'client' : 'clients'}`;
  const fanOut: Figure = {
    title: `stream to ${clients}, ${rateFor(count).changesPerSecond} changes/s`,
    measured: text(own),
    baseline: text(limit),
    ...(count >= 100 && { ratio: limit.cpu / own.cpu }),
    ...(count === 1_000 && { goal: { atMost: 250, of: { name: 'p99', value: own.p99Ms, unit: 'ms' } } }),
  };
  if (count < 1_000) return [fanOut];
  const kilobytes = (bytes: number) => `${(bytes / 1_000).toFixed(1)} KB`;
  const memory: Figure = {
    title: `memory of an idle stream, ${clients}`,
    measured: kilobytes(own.bytesPerClient),
    baseline: kilobytes(limit.bytesPerClient),
    goal: { atMost: 25, of: { name: 'memory', value: own.bytesPerClient / 1_000, unit: 'KB' } },
  };
  return [fanOut, memory];
}

it.each(CLIENTS)('sends changes to %i clients, beside a bare server that sends the same bytes', async (count) => {
  const rate = rateFor(count);
  const own = await measure(api, count, () => sendChanges(rate));
  const server = { pid: bare.pid ?? 0, address: bareAddress };
  const limit = await measure(server, count, () => sendBare(own.sample, rate));
  report(figuresOf(count, own, limit));
});

it('sends executable prices of three sizes to 1,000 clients while books change', async () => {
  const options = { api, db: database.db, marketIds: marketIds.slice(0, 50), seconds: SECONDS };
  const { p50Ms, p99Ms, cpu, messages } = await measureExecutable({
    ...options,
    clients: EXECUTABLE_CLIENTS,
    changesPerSecond: 50,
  });
  const figure: Figure = {
    title: 'executable prices to 1,000 clients, three sizes each, 50 books/s',
    measured: `p50 ${whole(p50Ms)} ms, p99 ${whole(p99Ms)} ms after the commit, ${(cpu * 100).toFixed(0)} % CPU`,
    baseline: `${whole(messages)} read messages`,
    goal: { atMost: 250, of: { name: 'p99', value: p99Ms, unit: 'ms' } },
  };
  report([figure]);
});
