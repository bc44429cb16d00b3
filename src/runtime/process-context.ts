import pg from 'pg';
import type { Config } from '../config/config.ts';
import { DATABASE_POOL_SIZE, DATABASE_SILENCE_MS } from '../config/pools.ts';
import { asError, OddswireError } from '../domain/values/errors.ts';
import { dependencyGauge, poolGauges } from '../observe/dependency-gauges.ts';
import type { Logger } from '../observe/logger.ts';
import { createMetrics, type Metrics } from '../observe/metrics.ts';
import { checkedOncePerSecond, createProbeServer, type Dependency, liveness } from '../observe/probe-server.ts';
import { processLag } from '../observe/process-lag.ts';
import { createQueueBackend } from '../queues/backend.ts';
import type { JobName } from '../queues/jobs.ts';
import type { QueueBackend } from '../queues/port.ts';
import { createProducer, type Producer } from '../queues/producer.ts';
import { checkKeyRing, KeyDiffersError, KeysMissingError } from '../store/accounts/key-check.ts';
import { findBusySessions } from '../store/db/busy-sessions.ts';
import { createDataSource } from '../store/db/data-source.ts';
import { withBootLock } from '../store/db/migrate.ts';
import { ping } from '../store/db/ping.ts';
import { poolUse } from '../store/db/pool-use.ts';
import { Database } from '../store/db/tx.ts';
import { createSecretBox, type SecretBox, SecretCorruptError } from '../webhooks/secret-box.ts';
import { startHeartbeat } from './heartbeat.ts';
import { inOrder, StartupError } from './lifecycle.ts';
import { listen } from './listen.ts';
import { migrateSchema, migratesAtStart, requireSchema } from './migrate-database.ts';
import { refuseTlsFailure, waitUntilAnswers } from './wait-until.ts';

/** The parts that every process needs: database, queue store, metrics, probes, key ring. */
interface ProcessContext {
  readonly db: Database;
  readonly backend: QueueBackend;
  readonly producer: Producer;
  readonly metrics: Metrics;
  readonly secretBox: SecretBox;
  readonly dependencies: readonly Dependency[];
  /** The address of /metrics and /health. */
  readonly probeUrl: string;
  /** Sets the check that tells /health whether this process is stalled. */
  judgeBy(stallReasons: () => Promise<readonly string[]>): void;
  /** Registers a resource. Resources close in the reverse order. */
  onStop(step: () => Promise<unknown>): void;
  /** Closes everything, in the reverse order of opening. */
  stop(): Promise<void>;
}

/** Requests and feeds need no queue, and timers find the due work: an outage of Redis must not drop every API or end every feed. */
function worksWithoutQueues(name: keyof typeof DATABASE_POOL_SIZE): boolean {
  return name === 'api' || name === 'streamer';
}

/**
 * Waits for the database and, where jobs are worked, for the queue store. Under the boot lock it migrates both schemas, or checks them when
 * its role must not migrate, and checks the key ring. When a later step fails, it closes everything that it opened.
 * @throws StartupError for an older schema, the wrong key ring or a taken port.
 */
export async function openProcessContext(
  name: keyof typeof DATABASE_POOL_SIZE,
  options: { config: Config; log: Logger; signal: AbortSignal; workers: number },
): Promise<ProcessContext> {
  const { config, log, signal, workers } = options;
  const { databaseUrl, databaseDirectUrl } = config;
  const isPooled = databaseDirectUrl !== databaseUrl;
  await waitForDatabase(databaseDirectUrl, log, signal);
  if (isPooled) await waitForDatabase(databaseUrl, log, signal);
  const opened: (() => Promise<unknown>)[] = [];
  const stop = () => inOrder(opened.splice(0).reverse());
  try {
    const dataSource = createDataSource({
      databaseUrl,
      isPooled,
      poolSize: config.hasFewConnections ? Math.ceil(DATABASE_POOL_SIZE[name] / 2) : DATABASE_POOL_SIZE[name],
      silenceMs: DATABASE_SILENCE_MS[name],
      stopping: signal,
      applicationName: `oddswire-${name}`,
      log,
    });
    await dataSource.initialize();
    opened.push(() => dataSource.destroy());
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
      ...(config.hasFewConnections && { hasFewConnections: true }),
      workers,
      log,
      findBusy: (pids) => findBusySessions(databaseDirectUrl, pids),
      stopping: signal,
    });
    opened.push(() => backend.close());
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
    const heartbeat = startHeartbeat(db, name, log);
    opened.push(() => heartbeat.close());
    const onWakeFailure = (job: JobName) => metrics.wakeFailures.inc({ job_name: job });
    const producer = createProducer({ backend, log, onWakeFailure });
    opened.push(() => producer.close());
    const dependencies: Dependency[] = [
      checkedOncePerSecond({ name: 'database', check: () => ping(db) }),
      checkedOncePerSecond({
        name: 'queue store',
        check: () => backend.ping(),
        mayBeMissing: worksWithoutQueues(name),
      }),
    ];
    let stallReasons: () => Promise<readonly string[]> = async () => [];
    const probed = { metrics, dependencies, stallReasons: () => stallReasons() };
    metrics.collectors.add(
      dependencyGauge(metrics, dependencies),
      poolGauges(metrics, () => [
        { pool: 'main', ...poolUse(dataSource) },
        ...(backend.poolUse ? [{ pool: 'queues', ...backend.poolUse() }] : []),
      ]),
      {
        name: 'liveness',
        read: async () => metrics.stalled.set((await liveness(probed)).length > 0 ? 1 : 0),
        forget: () => undefined,
      },
      { name: 'lateness', read: async () => metrics.lateShare.set(processLag().share()), forget: () => undefined },
    );
    const probes = createProbeServer(probed);
    const probeUrl = await listen(probes, config.metrics.host, config.metrics.port);
    opened.push(() => new Promise((resolve) => probes.close(resolve)));
    const onStop = (step: () => Promise<unknown>) => void opened.push(step);
    const judgeBy = (rule: typeof stallReasons) => {
      stallReasons = rule;
    };
    return { db, backend, producer, metrics, secretBox, dependencies, probeUrl, judgeBy, onStop, stop };
  } catch (error) {
    await stop().catch((failure: unknown) => log.warn({ err: failure }, 'closing after a failed start'));
    throw error;
  }
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
