import pg from 'pg';
import type { Config } from '../config/config.ts';
import { type DATABASE_POOL_SIZE, DATABASE_SILENCE_MS, poolSizeOf } from '../config/pools.ts';
import { asError, OddswireError } from '../domain/values/errors.ts';
import { dependencyGauge, poolGauges } from '../observe/dependency-gauges.ts';
import { LivenessTracker } from '../observe/liveness.ts';
import type { Logger } from '../observe/logger.ts';
import { createMetrics } from '../observe/metrics.ts';
import { checkedOncePerSecond, createProbeServer, type Dependency, liveness } from '../observe/probe-server.ts';
import { processLag } from '../observe/process-lag.ts';
import { createQueueBackend } from '../queues/backend.ts';
import type { JobName } from '../queues/jobs.ts';
import { createProducer } from '../queues/producer.ts';
import { oldestWaitingMs } from '../queues/state.ts';
import { checkKeyRing, KeyDiffersError, KeysMissingError } from '../store/accounts/key-ring.ts';
import { findBusySessions } from '../store/db/busy-sessions.ts';
import { createDataSource, poolUse } from '../store/db/data-source.ts';
import { DatabaseClock } from '../store/db/database-clock.ts';
import { withBootLock } from '../store/db/migrate.ts';
import { Partitions } from '../store/db/partitions.ts';
import { createPresence } from '../store/db/presence.ts';
import { Database, isDatabaseUnavailable, ping } from '../store/db/tx.ts';
import { signalLanes } from '../store/marks/lane-signals.ts';
import { createSecretBox, type SecretBox, SecretCorruptError } from '../webhooks/secret-box.ts';
import { startHeartbeat } from './heartbeat.ts';
import { inOrder, StartupError } from './lifecycle.ts';
import { listen } from './listen.ts';
import { migrateSchema, migratesAtStart, requireSchema } from './migrate-database.ts';
import type { ProcessContext } from './process-context.ts';
import { startAgain } from './start-again.ts';
import { refuseTlsFailure, waitUntilAnswers } from './wait-until.ts';

/** How often a process reads the database's clock. */
const READ_CLOCK_EVERY_MS = 5_000;

interface ProcessOptions {
  config: Config;
  log: Logger;
  /** Ends the wait for the database. */
  signal: AbortSignal;
  /** The number of BullMQ workers. */
  workers: number;
}

/** Registers a resource of the process. Resources close in the reverse order. */
type OnStop = (step: () => Promise<unknown>) => void;

export interface RunningProcess {
  /** Where /metrics and /health answer. */
  probeUrl: string;
  /** Ends the work, then closes everything in the reverse order of opening. */
  stop(): Promise<void>;
}

/** Requests and feeds need no queue, and timers find the due work: an outage of Redis must not drop every API or end every feed. */
function worksWithoutQueues(name: keyof typeof DATABASE_POOL_SIZE): boolean {
  return name === 'api' || name === 'streamer';
}

/**
 * Opens the context of a process and calls `start`, whose result has the addresses of the process. When a step fails, it closes everything
 * that it opened.
 * @throws StartupError for an older schema, the wrong key ring or a taken port.
 */
export function startProcess<T>(
  name: keyof typeof DATABASE_POOL_SIZE,
  options: ProcessOptions,
  start: (context: ProcessContext, onStop: OnStop) => Promise<T>,
): Promise<T & RunningProcess> {
  const { log, signal } = options;
  const once = async () => {
    const stopping = new AbortController();
    const opened: (() => Promise<unknown>)[] = [];
    const onStop = (step: () => Promise<unknown>) => void opened.push(step);
    const stop = () => {
      stopping.abort();
      return inOrder(opened.splice(0).reverse());
    };
    try {
      const { context, probeUrl } = await openContext(name, { ...options, stopping: stopping.signal, onStop });
      return { ...(await start(context, onStop)), probeUrl, stop };
    } catch (error) {
      await stop().catch((failure: unknown) => log.warn({ err: failure }, 'closing after a failed start'));
      throw error;
    }
  };
  return startAgain(once, log, signal);
}

/**
 * Waits for the database and, where jobs are worked, for the queue store. Under the boot lock it migrates both schemas, or checks them when
 * its role must not migrate, and checks the key ring.
 */
async function openContext(
  name: keyof typeof DATABASE_POOL_SIZE,
  { config, log, signal, workers, stopping, onStop }: ProcessOptions & { stopping: AbortSignal; onStop: OnStop },
): Promise<{ context: ProcessContext; probeUrl: string }> {
  const { databaseUrl, databaseDirectUrl } = config;
  const isPooled = databaseDirectUrl !== databaseUrl;
  await waitForDatabase(databaseDirectUrl, log, signal);
  if (isPooled) await waitForDatabase(databaseUrl, log, signal);
  const dataSource = createDataSource({
    databaseUrl,
    isPooled,
    poolSize: poolSizeOf(name, config.databasePools),
    silenceMs: DATABASE_SILENCE_MS[name],
    stopping: signal,
    applicationName: `oddswire-${name}`,
    log,
  });
  await dataSource.initialize();
  onStop(() => dataSource.destroy());
  const metrics = createMetrics(name);
  const db = new Database(dataSource, (waitMs) => metrics.poolAcquire.observe(waitMs / 1000), {
    isPreparing: config.hasPreparedStatements,
  });
  const mayMigrate = await migratesAtStart(db, config);
  const backend = createQueueBackend({
    databaseUrl: databaseDirectUrl,
    mayMigrate,
    ...(config.queues.redisUrl !== undefined && { redisUrl: config.queues.redisUrl }),
    prefix: config.queues.prefix,
    hasFewConnections: (config.databasePools ?? 'full') !== 'full',
    workers,
    log,
    findBusy: (pids) => findBusySessions(databaseDirectUrl, pids),
    isUnavailable: isDatabaseUnavailable,
    stopping: signal,
  });
  onStop(() => backend.close());
  if (!worksWithoutQueues(name)) await waitUntilAnswers('the queue store', () => backend.ping(), log, signal);
  const secretBox = createSecretBox(config.secretsKeys);
  await withBootLock(databaseDirectUrl, signal, async () => {
    await refuseOtherSchema(async () => {
      if (mayMigrate) await migrateSchema(databaseDirectUrl, log);
      else await requireSchema(db);
      await backend.migrate();
    });
    if (config.secretsKeys.length > 0) await refuseWrongKeyRing(db, secretBox);
  });
  const heartbeat = startHeartbeat(db, name, log, { data: config.dataDir, archive: config.archive.dir });
  onStop(() => heartbeat.close());
  const onWakeFailure = (job: JobName) => metrics.wakeFailures.inc({ job_name: job });
  const producer = createProducer({
    backend,
    log,
    onWakeFailure,
    signal: (lanes, wakesPublisher) => signalLanes(db, lanes, wakesPublisher),
  });
  onStop(() => producer.close());
  const dependencies: Dependency[] = [
    checkedOncePerSecond({ name: 'database', check: () => ping(db) }),
    checkedOncePerSecond({
      name: 'queue store',
      check: () => backend.ping(),
      mayBeMissing: worksWithoutQueues(name),
    }),
  ];
  const tracker = new LivenessTracker();
  const stallReasons = () => tracker.stallReasons((queue) => oldestWaitingMs(producer.queue(queue), Date.now()));
  const probed = { metrics, dependencies, stallReasons };
  metrics.collectors.add(
    dependencyGauge(metrics, dependencies),
    poolGauges(metrics, () => [
      { pool: 'main', ...poolUse(dataSource) },
      ...(backend.poolUse ? [{ pool: 'queues', ...backend.poolUse() }] : []),
    ]),
    {
      name: 'liveness',
      read: async () => metrics.stalled.set((await liveness(probed)).length > 0 ? 1 : 0),
      forget: () => metrics.stalled.set(Number.NaN),
    },
    { name: 'lateness', read: async () => metrics.lateShare.set(processLag().share()), forget: () => undefined },
  );
  const probes = createProbeServer(probed);
  const probeUrl = await listen(probes, config.metrics.host, config.metrics.port);
  onStop(() => new Promise((resolve) => probes.close(resolve)));
  const now = name === 'api' ? Date.now : await followDatabaseClock(db, log, onStop);
  const presence = createPresence({ databaseUrl: databaseDirectUrl, log });
  onStop(() => presence.close());
  const partitions = new Partitions(db);
  const shared = { config, log, db, partitions, backend, producer, metrics, secretBox, dependencies };
  return { context: { ...shared, presence, tracker, stopping, now }, probeUrl };
}

/** Returns the clock of the database, which stamps the rows of all processes. */
async function followDatabaseClock(db: Database, log: Logger, onStop: OnStop): Promise<() => number> {
  const clock = new DatabaseClock(db);
  const read = () => clock.read().catch((error: unknown) => log.debug({ err: error }, 'database clock not read'));
  await read();
  const reading = setInterval(read, READ_CLOCK_EVERY_MS);
  onStop(async () => clearInterval(reading));
  return clock.now;
}

/** Turns failures that a restart does not repair into one line. */
async function refuseOtherSchema(prepare: () => Promise<void>): Promise<void> {
  try {
    await prepare();
  } catch (error) {
    refuseTlsFailure('the queue store', error);
    if (!(error instanceof OddswireError) || error.code !== 'other_schema') throw error;
    throw new StartupError(`${error.message}: run \`oddswire migrate\` with DATABASE_MIGRATE_URL`, error);
  }
}

async function refuseWrongKeyRing(db: Database, secretBox: SecretBox): Promise<void> {
  try {
    await checkKeyRing(db, secretBox);
  } catch (error) {
    const isRefused = [KeysMissingError, KeyDiffersError, SecretCorruptError].some(
      (refusal) => error instanceof refusal,
    );
    if (!isRefused) throw error;
    throw new StartupError(`SECRETS_KEYS is not the key ring of this database: ${asError(error).message}`, error);
  }
}

/**
 * Resolves when the database accepts a query. Everything else is constructed after this, because BullMQ never recovers from a
 * failed first connection.
 * @throws OddswireError `aborted` when the signal fires first
 */
function waitForDatabase(databaseUrl: string, log: Logger, signal: AbortSignal): Promise<void> {
  const ask = async () => {
    const client = new pg.Client({ connectionString: databaseUrl, connectionTimeoutMillis: 3_000 });
    try {
      await client.connect();
      await client.query('SELECT 1');
    } finally {
      await client.end().catch((error: unknown) => log.debug({ err: error }, 'closing a failed connection'));
    }
  };
  return waitUntilAnswers('the database', ask, log, signal);
}
