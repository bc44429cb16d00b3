import type { Server } from 'node:http';
import { promisify } from 'node:util';
import { createAccountLimits } from '../../../api/access/account-limits.ts';
import { createFailedKeys } from '../../../api/access/failed-keys.ts';
import { createKeyDirectory, type KeyDirectory } from '../../../api/access/key-directory.ts';
import { createAnswerCache } from '../../../api/reads/answer-cache.ts';
import { ArchiveHistory } from '../../../api/reads/archive-history.ts';
import { createReadTracker, type ReadTracker } from '../../../api/reads/read-tracker.ts';
import { enabledVenues } from '../../../api/reads/venue-catalog.ts';
import { openApiText } from '../../../api/routes/documents.ts';
import { venueScopes } from '../../../api/routes/market-scope.ts';
import type { ApiDeps } from '../../../api/server/api-deps.ts';
import { createApi, routeTable } from '../../../api/server/app.ts';
import { createHttpServer, drain } from '../../../api/server/http-server.ts';
import type { SocketDeps } from '../../../api/streams/socket/connection.ts';
import { serveSockets } from '../../../api/streams/socket/server.ts';
import { Streams } from '../../../api/streams/streams.ts';
import { SCOPES, type Scope } from '../../../src/domain/values/api-key.ts';
import { createCursorCodec } from '../../../src/domain/values/cursor.ts';
import { newId } from '../../../src/domain/values/ids.ts';
import { PUBLIC_ONLY } from '../../../src/domain/webhooks/address-policy.ts';
import { createLogger, type Logger } from '../../../src/observe/logger.ts';
import { createQueueBackend } from '../../../src/queues/backend.ts';
import { createProducer } from '../../../src/queues/producer.ts';
import { listen } from '../../../src/runtime/listen.ts';
import { createApiKey } from '../../../src/store/accounts/accounts.ts';
import { createArrivals } from '../../../src/store/catalog/arrivals.ts';
import { createDataSource } from '../../../src/store/db/data-source.ts';
import { Database } from '../../../src/store/db/tx.ts';
import { followJournal } from '../../../src/store/journal/tail.ts';
import { createSecretBox, type SecretBox } from '../../../src/webhooks/secret-box.ts';
import { ApiContract, type Exchange, observed } from '../../support/api-contract.ts';
import { GUARD_MS } from '../../support/eventually.ts';
import { forTests } from '../../support/for-tests.ts';
import { createTestDatabase } from '../../support/postgres/database.ts';
import { startTcpProxy, type TcpProxy } from './server/tcp-proxy.ts';

/** An answer with its body: `body` is the parsed JSON, `text` the raw text. */
export interface Answer {
  status: number;
  headers: Headers;
  text: string;
  body: {
    success: boolean;
    data: unknown;
    error: { code: string; message: string; details?: { path: string; message: string }[] };
    meta: { request_id: string; timestamp: number; next_cursor?: string | null; [key: string]: unknown };
  };
}

/** An account and calls with its key. */
export interface Client {
  accountId: bigint;
  key: string;
  /** A market route, with `Authorization: Bearer`. */
  market(path: string, init?: RequestInit): Promise<Answer>;
  /** A webhook or alert route, with `X-API-Key`; `body` is sent as JSON. */
  account(method: string, path: string, body?: unknown): Promise<Answer>;
}

export interface TestApi {
  url: string;
  databaseUrl: string;
  db: Database;
  secretBox: SecretBox;
  keys: KeyDirectory;
  /** Wake-ups of the routes, in order. */
  wakes: { job: string; targets: readonly (bigint | number)[]; data?: unknown }[];
  /** Records the read markets; writes them at `flush`. */
  reads: ReadTracker;
  /** The app's clock, epoch milliseconds. */
  clock: { nowMs: number };
  /** The dependencies of the app. */
  deps: ApiDeps;
  streams: Streams;
  /** The contract; `call` checks every answer against it. */
  contract: ApiContract;
  /** Throws when an answer since the last check violates the contract. `call` includes this check. */
  checkAnswers(): void;
  /** Between the app and its database, with `behindProxy`. */
  proxy?: TcpProxy;
  client(scopes?: readonly Scope[]): Promise<Client>;
  call(path: string, init?: RequestInit): Promise<Answer>;
  /** The number of connections that the server holds. */
  openConnections(): Promise<number>;
  close(): Promise<void>;
}

export const TEST_KEY = { kid: 'k1', key: Buffer.alloc(32, 7) };

/**
 * Starts the app on a free port with its own database, which also holds the queues. With `beside` it uses the database of another
 * app, as a second process, and must be closed first.
 */
export async function startTestApi(
  overrides: Partial<ApiDeps> = {},
  options: {
    behindProxy?: boolean;
    beside?: Pick<TestApi, 'databaseUrl'>;
    streams?: Partial<ConstructorParameters<typeof Streams>[0] & Pick<SocketDeps, 'pingMs' | 'authMs'>>;
  } = {},
): Promise<TestApi> {
  const log = createLogger({ process: 'test', level: 'silent' });
  const database = options.beside ? await connectBeside(options.beside.databaseUrl, log) : await createTestDatabase();
  const proxied = options.behindProxy ? await connectThroughProxy(database.url, log) : undefined;
  const db = proxied?.db ?? database.db;
  const backend = createQueueBackend({ databaseUrl: database.url, prefix: 'test', workers: 0, log });
  const producer = createProducer({ backend, log });
  const arrivals = createArrivals(database.url, log);
  const reads = createReadTracker(db, log);
  const keys = createKeyDirectory(db, log);
  const secretBox = createSecretBox([TEST_KEY]);
  const wakes: TestApi['wakes'] = [];
  const clock = { nowMs: Date.now() };
  const limits = createAccountLimits({
    // Without SQL, so that tests that count statements see only the statements of routes.
    addUsage: async (entries) => entries.map(({ used }) => used),
    defaults: { requests: 1_000_000, cold_reads: 1_000_000 },
    log,
    now: () => clock.nowMs,
  });
  // Tests that count the statements of routes replace `db.query`.
  const pool = { query: db.query.bind(db) };
  const tail = followJournal({ databaseUrl: database.url, pool, log });
  const pollMs = { markets: 60_000, prices: 5_000, books: 5_000, trades: 2_000 };
  const venues = overrides.venues ?? enabledVenues(['polymarket'], pollMs);
  const codec = createCursorCodec(Buffer.alloc(32, 1));
  const streams = new Streams({
    db,
    tail,
    codec,
    venues,
    decimalFormat: overrides.decimalFormat ?? 'number',
    limits: {
      maxConnections: 1_000,
      connectionsPerAccount: 100,
      subscriptionsPerAccount: 100,
      messagesPerSecond: 0,
    },
    heartbeatMs: 500,
    maxUnsentTotalBytes: 256_000_000,
    recentBytes: 1_000_000,
    eventRetentionMs: 90 * 86_400_000,
    drainSpreadMs: 100,
    lastReadMs: GUARD_MS,
    log,
    now: Date.now,
    ...options.streams,
  });
  const deps: ApiDeps = {
    db,
    producer: {
      queue: producer.queue,
      wake(job, data) {
        wakes.push({ job, targets: [], data });
        producer.wake(job, data);
      },
      wakeDeliveries(pks) {
        wakes.push({ job: 'deliver-webhook', targets: pks });
        producer.wakeDeliveries(pks);
      },
      wakeStage(job, shards) {
        wakes.push({ job, targets: shards });
        producer.wakeStage(job, shards);
      },
    },
    arrivals,
    coldWaitMs: 20,
    reads,
    streams,
    keys,
    failedKeys: createFailedKeys({ limits, trustedProxies: [], maxFailed: 1_000_000 }),
    limits,
    corsOrigins: [],
    secretBox,
    cursors: codec,
    // Tests read directly after writes. Only answer-cache.test.ts caches answers.
    answers: createAnswerCache({ ttlMs: 0 }),
    venues,
    decimalFormat: 'number',
    history: new ArchiveHistory({ db, log }),
    tradeRetentionMs: 3_650 * 86_400_000,
    addressRules: PUBLIC_ONLY,
    quotas: { webhooks: 1_000, alerts: 10_000, wallets: 1_000, keys: 1_000, archiveMbPerDay: 1_000 },
    dependencies: [],
    log,
    now: () => clock.nowMs,
    ...overrides,
  };
  const contract = contractOf(deps);
  // Violations of the contract. They fail their call, or otherwise `close`.
  const broken: string[] = [];
  const listener = observed(createApi(deps), (exchange) => broken.push(...explain(contract, exchange)));
  const server: Server = createHttpServer(listener, log, {}, deps.streams);
  const { pingMs, authMs } = options.streams ?? {};
  serveSockets(server, {
    ...deps,
    scopeOf: venueScopes(deps),
    ...(pingMs !== undefined && { pingMs }),
    ...(authMs !== undefined && { authMs }),
  });
  // Streams answer 503 before the first read of the journal.
  await new Promise<void>((resolve) => {
    if (tail.head) return resolve();
    const remove = tail.on(() => {
      remove();
      resolve();
    });
  });
  const url = await listen(server, '127.0.0.1', 0);
  const checkAnswers = () => {
    if (broken.length > 0) throw new TypeError(`violation of the contract:\n${broken.splice(0).join('\n')}`);
  };
  const call = async (path: string, init: RequestInit = {}) => {
    const answer = await read(fetch(`${url}${path}`, init));
    checkAnswers();
    return answer;
  };

  return {
    url,
    databaseUrl: database.url,
    db,
    secretBox,
    keys,
    wakes,
    reads,
    clock,
    deps,
    streams,
    contract,
    checkAnswers,
    ...(proxied && { proxy: proxied.proxy }),
    call,
    openConnections: () => promisify(server.getConnections.bind(server))(),
    async client(scopes = SCOPES) {
      const { key, accountId } = await createApiKey(db, { accountName: newId('req'), name: 'test', scopes });
      return {
        accountId,
        key,
        market: (path, init = {}) =>
          call(path, { ...init, headers: { ...toRecord(init.headers), Authorization: `Bearer ${key}` } }),
        account: (method, path, body) =>
          call(path, {
            method,
            headers: { 'X-API-Key': key, ...(body !== undefined && { 'Content-Type': 'application/json' }) },
            ...(body !== undefined && { body: JSON.stringify(body) }),
          }),
      };
    },
    async close() {
      await Promise.all([drain(server), streams.drain()]);
      await streams.close();
      await tail.close();
      await arrivals.close();
      await reads.close();
      await limits.close();
      await keys.close();
      await producer.close();
      await backend.close();
      await proxied?.close();
      await database.drop();
      checkAnswers();
    },
  };
}

/** The app for the tests of a file or a group. */
export function useTestApi(...of: Parameters<typeof startTestApi>): TestApi {
  return forTests(
    () => startTestApi(...of),
    (api) => api.close(),
  );
}

async function connectBeside(databaseUrl: string, log: Logger) {
  const dataSource = createDataSource({ databaseUrl, poolSize: 10, applicationName: 'oddswire-test-beside', log });
  await dataSource.initialize();
  return { url: databaseUrl, db: new Database(dataSource), drop: () => dataSource.destroy() };
}

const contracts = new Map<string, ApiContract>();

/** The contract of an API with this configuration. Cached, because parsing is slow and most tests share a configuration. */
function contractOf(deps: ApiDeps): ApiContract {
  const key = JSON.stringify([deps.decimalFormat, deps.venues]);
  const known = contracts.get(key) ?? new ApiContract(openApiText(deps, routeTable(deps)));
  contracts.set(key, known);
  return known;
}

function explain(contract: ApiContract, exchange: Exchange): string[] {
  const { method, target, status, headers, body } = exchange;
  const problems = contract.problemsOf(exchange);
  if (problems.length === 0) return [];
  return [
    `${method} ${target} ${status}: ${problems.slice(0, 5).join('; ')}`,
    JSON.stringify([...headers]),
    body.toString('utf8').slice(0, 500),
  ];
}

async function connectThroughProxy(databaseUrl: string, log: Logger) {
  const proxy = await startTcpProxy(databaseUrl);
  const applicationName = 'oddswire-test-api';
  const dataSource = createDataSource({ databaseUrl: proxy.url, poolSize: 4, applicationName, log });
  await dataSource.initialize();
  return {
    proxy,
    db: new Database(dataSource),
    async close() {
      await dataSource.destroy();
      await proxy.cut();
    },
  };
}

async function read(pending: Promise<Response>): Promise<Answer> {
  const response = await pending;
  const text = await response.text();
  const isJson = response.headers.get('content-type')?.startsWith('application/json') ?? false;
  return {
    status: response.status,
    headers: response.headers,
    text,
    body: (isJson && text !== '' ? JSON.parse(text) : undefined) as Answer['body'],
  };
}

function toRecord(headers: RequestInit['headers']): Record<string, string> {
  return Object.fromEntries(new Headers(headers).entries());
}
