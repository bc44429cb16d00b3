import type { AddressInfo } from 'node:net';
import { hostname } from 'node:os';
import { hasDuckdb } from '../../src/archive/duckdb.ts';
import { ArchiveReader } from '../../src/archive/reader.ts';
import { fetchedFilesOf } from '../../src/archive/store/fetched-files.ts';
import type { Config } from '../../src/config/config.ts';
import { feedOffReason } from '../../src/config/feeds.ts';
import { createCursorCodec } from '../../src/domain/values/cursor.ts';
import { DAY_MS } from '../../src/domain/values/durations.ts';
import { asError } from '../../src/domain/values/errors.ts';
import { newId } from '../../src/domain/values/ids.ts';
import { noPassword } from '../../src/domain/values/password.ts';
import { deriveKey } from '../../src/domain/values/secret-keys.ts';
import { isLoopbackAddress } from '../../src/domain/webhooks/address-policy.ts';
import type { Logger } from '../../src/observe/logger.ts';
import type { Metrics } from '../../src/observe/metrics.ts';
import type { Dependency } from '../../src/observe/probe-server.ts';
import { queueNames } from '../../src/queues/jobs.ts';
import { listen } from '../../src/runtime/listen.ts';
import { type RunningProcess, startProcess } from '../../src/runtime/start-process.ts';
import { ensureBootstrapKey } from '../../src/store/accounts/accounts.ts';
import { addRateUsage } from '../../src/store/accounts/rate-usage.ts';
import { createArrivals } from '../../src/store/catalog/arrivals.ts';
import type { Database } from '../../src/store/db/tx.ts';
import { followJournal } from '../../src/store/journal/tail.ts';
import { recordAction } from '../../src/store/ops/actions.ts';
import { hasOperators } from '../../src/store/ops/operators.ts';
import { sampleThroughput } from '../../src/store/ops/overview.ts';
import { createAccountLimits } from '../access/account-limits.ts';
import { createFailedKeys } from '../access/failed-keys.ts';
import { createKeyDirectory } from '../access/key-directory.ts';
import type { RequestSample } from '../middleware/request-context.ts';
import { ArchiveFolder } from '../reads/archive-folder.ts';
import { ArchiveHistory } from '../reads/archive-history.ts';
import { createReadTracker } from '../reads/read-tracker.ts';
import { enabledVenues } from '../reads/venue-catalog.ts';
import { marketVenues, venueScopes } from '../routes/market-scope.ts';
import { serveSockets } from '../streams/socket/server.ts';
import { Streams, streamGauges } from '../streams/streams.ts';
import type { ApiDeps } from './api-deps.ts';
import { createApi } from './app.ts';
import { createDraining, notStopping } from './draining.ts';
import { createHttpServer } from './http-server.ts';
import { createLiveReads } from './live-reads.ts';

/** The latest changes for streams, in addition to the memory of reads. */
const STREAMS_SHARE = 1 / 32;
/** The longest wait of a client for a cold read. */
const COLD_WAIT_MS = 2_500;

export interface RunningApi extends RunningProcess {
  /** Base address of the API, without a trailing slash. */
  address: string;
  port: number;
}

/**
 * Starts the API: waits for the database, migrates under the boot lock, creates the bootstrap key, then listens. The signal ends the
 * wait. A stop finishes the requests in flight, then closes.
 * @throws StartupError when a port is taken.
 */
export function startApi(
  config: Config,
  log: Logger,
  signal: AbortSignal = new AbortController().signal,
): Promise<RunningApi> {
  return startProcess('api', { config, log, signal, workers: 0 }, async (context, onStop) => {
    const { db, backend, producer, metrics, secretBox, dependencies, now } = context;
    await createBootstrapKey(db, config.bootstrapApiKey, log);
    const keys = createKeyDirectory(db, log);
    onStop(() => keys.close());
    const arrivals = createArrivals(config.databaseDirectUrl, log);
    onStop(() => arrivals.close());
    const tail = followJournal({ databaseUrl: config.databaseDirectUrl, pool: db, log });
    onStop(() => tail.close());
    const venues = enabledVenues(config.venues, config.pollMs, {
      wallets: config.venueUrls.solana.rpc === undefined ? ['solana'] : [],
      feed: (venue) => feedOffReason(venue, config.feeds),
    });
    const cursors = createCursorCodec(deriveKey(config.secretsKeys, 'cursor'));
    const streams = new Streams({
      db,
      tail,
      codec: cursors,
      venues,
      decimalFormat: config.decimalFormat,
      limits: config.streams,
      heartbeatMs: config.streams.heartbeatMs,
      maxUnsentTotalBytes: config.streams.maxUnsentBytes,
      recentBytes: config.apiMemoryBytes * STREAMS_SHARE,
      eventRetentionMs: config.retention.eventsDays * DAY_MS,
      metrics,
      log,
      now,
    });
    metrics.collectors.add(streamGauges(metrics, streams));
    onStop(() => streams.close());
    const reads = createReadTracker(db, log);
    onStop(() => reads.close());
    const live = createLiveReads({
      tail,
      db,
      venues: marketVenues({ venues }),
      maxBytes: config.apiMemoryBytes,
      decimalFormat: config.decimalFormat,
      reads,
      metrics,
      log,
    });
    onStop(async () => live.close());
    const limits = createAccountLimits({
      addUsage: backend.addUsage ?? ((entries) => addRateUsage(db, entries)),
      defaults: { requests: config.perMinute.requests, cold_reads: config.perMinute.coldReads },
      log,
      now,
    });
    onStop(() => limits.close());
    // Without any login the pages stay off. The first stored operator therefore needs a restart.
    const isOpsOn = Object.keys(config.ops.passwords).length > 0 || (await hasOperators(db));
    const { dir } = config.archive;
    const fetches = new AbortController();
    onStop(async () => fetches.abort());
    const archive = dir === undefined ? undefined : new ArchiveFolder(dir, log, fetchedFilesOf(config, fetches.signal));
    const reader = dir === undefined || !hasDuckdb() ? undefined : new ArchiveReader(dir);
    onStop(async () => reader?.close());
    const history = new ArchiveHistory({
      db,
      log,
      ...(archive && { folder: archive }),
      ...(reader && { reader }),
    });
    const deps: ApiDeps = {
      db,
      producer,
      arrivals,
      coldWaitMs: COLD_WAIT_MS,
      reads,
      streams,
      keys,
      failedKeys: createFailedKeys({ limits, trustedProxies: config.http.trustedProxies }),
      limits,
      corsOrigins: config.http.corsOrigins,
      secretBox,
      cursors,
      answers: live.answers,
      memory: live.memory,
      venues,
      decimalFormat: config.decimalFormat,
      tradeRetentionMs: config.retention.tradesDays * DAY_MS,
      addressRules: config.webhooks.addressRules,
      quotas: config.quotas,
      history,
      ...(archive && { archive, archivePlan: config.archive }),
      dependencies: [...dependencies, notStopping(signal), journalRead(streams)],
      ...(config.isConsoleOn && {
        console: {
          trustedProxies: config.http.trustedProxies,
          ...(config.publicMarket && { publicMarket: config.publicMarket }),
        },
      }),
      ...(isOpsOn && {
        ops: {
          ...config.ops,
          sessionKey: deriveKey(config.secretsKeys, 'ops-session'),
          noPassword: noPassword(),
          trustedProxies: config.http.trustedProxies,
          queueNames: queueNames(config.venues),
        },
      }),
      log,
      onRequest: (sample) => countRequest(metrics, sample),
      now,
    };
    if (isOpsOn) {
      if (config.ops.publicUrl === undefined && !isLoopbackAddress(config.http.host)) {
        log.warn('the operator pages are served without TLS; set OPS_PUBLIC_URL when a proxy terminates TLS');
      }
      const sampler = startThroughputSampler(db, log);
      onStop(() => sampler.close());
    }
    const server = createHttpServer(createApi(deps), log, config.http, streams);
    serveSockets(server, { ...deps, scopeOf: venueScopes(deps) });
    const draining = createDraining(server);
    const address = await listen(server, config.http.host, config.http.port);
    onStop(async () => {
      await Promise.all([draining.end(config.drainDelayMs), streams.drain()]);
    });
    log.info({ address }, 'listening');
    return { address, port: (server.address() as AddressInfo).port };
  });
}

/** Before its first read of the journal a process rejects streams, so that load balancers wait for it. */
function journalRead(streams: Streams): Dependency {
  return { name: 'journal', check: async () => streams.requireReady() };
}

async function createBootstrapKey(db: Database, key: string | undefined, log: Logger): Promise<void> {
  if (key === undefined) return;
  const isCreated = await db.transaction(async (tx) => {
    const id = await ensureBootstrapKey(tx, key);
    if (id === null) return false;
    const by = { source: 'process', actor: 'api', address: hostname() } as const;
    const result = `key ${id} of BOOTSTRAP_API_KEY`;
    const done = { action: 'key.create', target: 'account bootstrap', status: 'done', result } as const;
    await recordAction(tx, { ...by, ...done, requestId: newId('req') }, Date.now());
    return true;
  });
  if (isCreated) log.info('bootstrap API key created');
}

/** The usual methods. Node's parser accepts about thirty more, which would become label values. */
const METHODS = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']);

function countRequest(metrics: Metrics, { route, method, status, durationSeconds }: RequestSample): void {
  const labels = { route, method: METHODS.has(method) ? method : 'other', status: String(status) };
  metrics.httpRequests.observe(labels, durationSeconds);
}

/** The database keeps one sample per minute. More frequent calls keep the samples a minute apart. */
const EVERY_MS = 15_000;

/** Samples the throughput for the overview while the process runs. An unavailable database leaves a gap. */
function startThroughputSampler(db: Database, log: Logger): { close(): Promise<void> } {
  let inFlight: Promise<unknown> = Promise.resolve();

  function sample(): void {
    inFlight = sampleThroughput(db).catch((error: unknown) => {
      log.debug({ err: asError(error) }, 'throughput not sampled');
    });
  }

  sample();
  const timer = setInterval(sample, EVERY_MS);
  timer.unref();
  return {
    async close() {
      clearInterval(timer);
      await inFlight;
    },
  };
}
