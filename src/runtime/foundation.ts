import type { Config } from '../config/config.ts';
import { DATABASE_POOL_SIZE } from '../config/pools.ts';
import type { Logger } from '../observe/logger.ts';
import { createMetrics, type Metrics } from '../observe/metrics.ts';
import { createProbeServer, type Dependency } from '../observe/probe-server.ts';
import { createQueueBackend } from '../queues/backend.ts';
import type { QueueBackend } from '../queues/port.ts';
import { createProducer, type Producer } from '../queues/producer.ts';
import { createDataSource } from '../store/data-source.ts';
import { checkKeyRing } from '../store/key-check.ts';
import { migrate, withBootLock } from '../store/migrate.ts';
import { ping } from '../store/ping.ts';
import { Database } from '../store/tx.ts';
import { createSecretBox, type SecretBox, SecretCorruptError, SecretKeyMissingError } from '../webhooks/secret-box.ts';
import { inOrder, StartupError } from './lifecycle.ts';
import { listen } from './listen.ts';
import { waitForDatabase } from './wait-for-database.ts';

/** What every process stands on: database, queue store, metrics, probes, key ring. */
export interface Foundation {
  readonly db: Database;
  readonly backend: QueueBackend;
  readonly producer: Producer;
  readonly metrics: Metrics;
  readonly secretBox: SecretBox;
  readonly dependencies: readonly Dependency[];
  /** Where /metrics and /health answer. */
  readonly probeUrl: string;
  /** Registers what is to be closed before everything registered earlier. */
  onStop(step: () => Promise<unknown>): void;
  /** Closes everything, last opened first. */
  stop(): Promise<void>;
}

/**
 * Waits for the database, migrates both schemas and checks the key ring under the boot lock, and only then constructs
 * (DESIGN section 2, point 6). What was opened is closed again when a later step fails.
 * @throws StartupError for the wrong key ring or a taken port.
 */
export async function openFoundation(
  name: keyof typeof DATABASE_POOL_SIZE,
  options: { config: Config; log: Logger; signal: AbortSignal; workers: number },
): Promise<Foundation> {
  const { config, log, signal, workers } = options;
  await waitForDatabase(config.databaseUrl, log, signal);
  const opened: (() => Promise<unknown>)[] = [];
  const stop = () => inOrder(opened.splice(0).reverse());
  try {
    const dataSource = createDataSource({
      databaseUrl: config.databaseUrl,
      poolSize: DATABASE_POOL_SIZE[name],
      applicationName: `oddswire-${name}`,
      log,
    });
    await dataSource.initialize();
    opened.push(() => dataSource.destroy());
    const backend = createQueueBackend({
      databaseUrl: config.databaseUrl,
      ...(config.queues.redisUrl !== undefined && { redisUrl: config.queues.redisUrl }),
      prefix: config.queues.prefix,
      workers,
      log,
    });
    opened.push(() => backend.close());
    const db = new Database(dataSource);
    const secretBox = createSecretBox(config.secretsKeys);
    await withBootLock(config.databaseUrl, signal, async () => {
      await migrate(dataSource);
      await backend.migrate();
      await refuseWrongKeyRing(db, secretBox);
    });
    const metrics = createMetrics(name);
    const producer = createProducer({ backend, log, onWakeFailure: (job) => metrics.wakeFailures.inc({ job }) });
    opened.push(() => producer.close());
    const dependencies: Dependency[] = [
      { name: 'database', check: () => ping(db) },
      { name: 'queue store', check: () => backend.ping() },
    ];
    const probes = createProbeServer(metrics, dependencies);
    const probeUrl = await listen(probes, config.metrics.host, config.metrics.port);
    opened.push(() => new Promise((resolve) => probes.close(resolve)));
    const onStop = (step: () => Promise<unknown>) => void opened.push(step);
    return { db, backend, producer, metrics, secretBox, dependencies, probeUrl, onStop, stop };
  } catch (error) {
    await stop().catch((failure: unknown) => log.warn({ err: failure }, 'closing after a failed start'));
    throw error;
  }
}

async function refuseWrongKeyRing(db: Database, secretBox: SecretBox): Promise<void> {
  try {
    await checkKeyRing(db, secretBox);
  } catch (error) {
    if (!(error instanceof SecretKeyMissingError || error instanceof SecretCorruptError)) throw error;
    throw new StartupError(`SECRETS_KEYS is not the key ring of this database: ${error.message}`, error);
  }
}
