import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type RunningApi, startApi } from '../../../api/server/start-api.ts';
import { type Receiver, startReceiver } from '../../../sim/receiver.ts';
import { loadConfig } from '../../../src/config/config.ts';
import { decimal } from '../../../src/domain/values/decimal.ts';
import { createLogger, type Logger } from '../../../src/observe/logger.ts';
import { createQueueBackend } from '../../../src/queues/backend.ts';
import { ROLES, type Role } from '../../../src/queues/jobs.ts';
import { createProducer } from '../../../src/queues/producer.ts';
import { listen } from '../../../src/runtime/listen.ts';
import type { RunningProcess } from '../../../src/runtime/start-process.ts';
import { ensureTokens } from '../../../src/store/catalog/tokens.ts';
import { Partitions } from '../../../src/store/db/partitions.ts';
import { shardsOf } from '../../../src/store/marks/marks.ts';
import { writePrices } from '../../../src/store/prices/prices.ts';
import { startWorker } from '../../../workers/start-worker.ts';
import { createTestDatabase, type TestDatabase } from '../../support/postgres/database.ts';

/** Recognisable secrets, each in a valid form for its place, and none in a form that the logger recognises. */
export const SECRETS = {
  databasePassword: 'dbpass-5b1c7e',
  keyRing: Buffer.alloc(32, 0x5a).toString('base64'),
  apiKey: 'bootstrap-key-9f3d1a',
  operator: 'operator-pw-77ab',
  viewer: 'viewer-pw-31cd',
  nodePath: 'nodepathkey0123456789',
  nodeQuery: 'nodequerykey9876',
  jupiter: 'jupiterkey-4e4e',
  webhookSecret: 'a webhook secret 8c8c8c',
  rotatedSecret: 'a rotated secret 6d6d6d',
  urlToken: 'url-token-2a2a2a',
  wrongKey: 'a-wrong-api-key-1234567890',
} as const;

interface LogLine {
  process: string;
  level: string;
  time: string;
  msg: string;
  [field: string]: unknown;
}

/** All five processes in this one, with all of their log lines, a receiver, and venues that repeat every request. */
export interface WatchedSystem {
  database: TestDatabase;
  /** SECRETS, with the real password of the database. */
  secrets: Readonly<Record<keyof typeof SECRETS, string>>;
  api: RunningApi;
  receiver: Receiver;
  /** The addresses of /metrics, by process. */
  probes: ReadonlyMap<'api' | Role, string>;
  /** Raw lines of all processes, in order. */
  lines: string[];
  /** The parsed lines that contain this text. */
  grep(text: string): LogLine[];
  call(
    method: string,
    path: string,
    body?: unknown,
    headers?: Record<string, string>,
  ): Promise<{ status: number; text: string }>;
  /** Stores a price, as a poll does, and wakes the alerts. */
  see(mint: string, price: number): Promise<void>;
  stop(): Promise<void>;
}

/** Answers every request with its own contents: the worst that a venue can do with a key. */
async function startEcho(): Promise<{ url: string; close(): Promise<void> }> {
  const server: Server = createServer((request, response) => {
    const echo = `you sent ${request.method} ${request.url} ${JSON.stringify(request.headers)}`;
    request.resume();
    const isRpc = request.method === 'POST';
    response.end(isRpc ? JSON.stringify({ jsonrpc: '2.0', id: 1, error: { code: -32_000, message: echo } }) : echo);
  });
  const url = await listen(server, '127.0.0.1', 0);
  return {
    url,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

export async function startWatchedSystem(): Promise<WatchedSystem> {
  const database = await createTestDatabase();
  const receiver = await startReceiver();
  const echo = await startEcho();
  const dir = await mkdtemp(join(tmpdir(), 'oddswire-observe-'));
  const caFile = join(dir, 'ca.pem');
  await writeFile(caFile, receiver.caPem);
  const databaseUrl = new URL(database.url);
  // A server without a password accepts any.
  if (databaseUrl.password === '') databaseUrl.password = SECRETS.databasePassword;
  const secrets = { ...SECRETS, databasePassword: decodeURIComponent(databaseUrl.password) };
  const config = loadConfig({
    DATABASE_URL: databaseUrl.href,
    SECRETS_KEYS: `k1:${SECRETS.keyRing}`,
    BOOTSTRAP_API_KEY: SECRETS.apiKey,
    OPS_PASSWORD: SECRETS.operator,
    OPS_VIEWER_PASSWORD: SECRETS.viewer,
    VENUES: 'polymarket,solana',
    POLYMARKET_GAMMA_URL: echo.url,
    POLYMARKET_CLOB_URL: echo.url,
    POLYMARKET_DATA_URL: echo.url,
    SOLANA_RPC_URL: `${echo.url}/${SECRETS.nodePath}?api-key=${SECRETS.nodeQuery}`,
    JUPITER_API_URL: echo.url,
    JUPITER_API_KEY: SECRETS.jupiter,
    POLL_PRICES_MS: '500',
    PORT: '0',
    METRICS_PORT: '0',
    WEBHOOK_ALLOW_CIDRS: '127.0.0.0/8',
    WEBHOOK_CA_FILE: caFile,
    WEBHOOK_RETRY_SCHEDULE: '1,3600',
  });
  const lines: string[] = [];
  // Without the process's own secrets, because the test is about callers that log secrets.
  const logOf = (process: string): Logger =>
    createLogger({ process, level: 'trace', destination: { write: (line) => void lines.push(line) } });
  const { signal } = new AbortController();
  const api = await startApi(config, logOf('api'), signal);
  const workers = new Map<Role, RunningProcess>();
  for (const role of ROLES) workers.set(role, await startWorker(role, config, logOf(role), signal));
  const backend = createQueueBackend({ databaseUrl: database.url, prefix: 'test', workers: 0, log: logOf('test') });
  const producer = createProducer({ backend, log: logOf('test') });
  const partitions = new Partitions(database.db);
  await partitions.ensureAroundNow('price_history');
  await partitions.ensureAroundNow('observation');

  return {
    database,
    secrets,
    api,
    receiver,
    probes: new Map([
      ['api' as const, api.probeUrl],
      ...[...workers].map(([role, { probeUrl }]) => [role, probeUrl] as const),
    ]),
    lines,
    grep: (text) => lines.filter((line) => line.includes(text)).map((line) => JSON.parse(line) as LogLine),
    async call(method, path, body, headers = { 'X-API-Key': SECRETS.apiKey }) {
      const response = await fetch(api.address + path, {
        method,
        headers: { ...headers, ...(body !== undefined && { 'Content-Type': 'application/json' }) },
        ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
      });
      return { status: response.status, text: await response.text() };
    },
    async see(mint, price) {
      const tokenId = (await ensureTokens(database.db, [mint], 'USD')).get(mint) ?? 0n;
      const seen = { tokenId, asOfMs: Date.now(), price: decimal(price) };
      await database.db.transaction((tx) => writePrices(tx, [seen]));
      producer.wakeStage('evaluate-alerts', shardsOf([tokenId]));
    },
    async stop() {
      await producer.close();
      await backend.close();
      await Promise.all([...workers.values()].map((worker) => worker.stop()));
      await api.stop();
      await receiver.close();
      await echo.close();
      await database.drop();
      await rm(dir, { recursive: true, force: true });
    },
  };
}
