import { readFile } from 'node:fs/promises';
import type { Worker } from 'bullmq';
import type { Config } from '../src/config/config.ts';
import { DATABASE_POOL_SIZE } from '../src/config/pools.ts';
import { VERSION } from '../src/config/version.ts';
import type { Logger } from '../src/observe/logger.ts';
import { createMetrics, type Metrics } from '../src/observe/metrics.ts';
import { createProbeServer } from '../src/observe/probe-server.ts';
import { createQueueBackend } from '../src/queues/backend.ts';
import { concurrencyOf, queuesOfRole, type Role } from '../src/queues/jobs.ts';
import { createProducer } from '../src/queues/producer.ts';
import { stopInOrder } from '../src/runtime/lifecycle.ts';
import { listen } from '../src/runtime/listen.ts';
import { waitForDatabase } from '../src/runtime/wait-for-database.ts';
import { createDataSource } from '../src/store/data-source.ts';
import { migrate, withBootLock } from '../src/store/migrate.ts';
import { Partitions } from '../src/store/partitions.ts';
import { Database, sql } from '../src/store/tx.ts';
import type { VenueAdapter } from '../src/venues/port.ts';
import { createAdapters } from '../src/venues/registry.ts';
import { createSecretBox } from '../src/webhooks/secret-box.ts';
import { createSender } from '../src/webhooks/sender.ts';
import { createProcessor } from './define.ts';
import type { WorkerDeps } from './deps.ts';
import { restore, startRestoring } from './restore.ts';
import { processorsOf } from './roles.ts';
import { venueObserver } from './venue-observer.ts';

export interface RunningWorker {
  /** Where /metrics and /health answer. */
  probeUrl: string;
  stop(): Promise<void>;
}

/**
 * Brings up one worker process: wait for the database, migrate under the boot lock, then construct (DESIGN section 2,
 * point 6). The signal ends the wait.
 */
export async function startWorker(
  role: Role,
  config: Config,
  log: Logger,
  signal: AbortSignal,
): Promise<RunningWorker> {
  const processors = processorsOf(role);
  await waitForDatabase(config.databaseUrl, log, signal);
  const queueNames = queuesOfRole(role, config.venues);
  const dataSource = createDataSource({
    databaseUrl: config.databaseUrl,
    poolSize: DATABASE_POOL_SIZE[role],
    applicationName: `oddswire-${role}`,
    log,
  });
  await dataSource.initialize();
  const backend = createQueueBackend({
    databaseUrl: config.databaseUrl,
    ...(config.queues.redisUrl !== undefined && { redisUrl: config.queues.redisUrl }),
    prefix: config.queues.prefix,
    workers: queueNames.length,
    log,
  });
  await withBootLock(config.databaseUrl, async () => {
    await migrate(dataSource);
    await backend.migrate();
  });

  const metrics = createMetrics(role);
  const producer = createProducer({ backend, log, onWakeFailure: (job) => metrics.wakeFailures.inc({ job }) });
  const db = new Database(dataSource);
  const adapters = role === 'poller' ? adaptersOf(config, metrics, log) : new Map<string, VenueAdapter>();
  const stopping = new AbortController();
  const deps: WorkerDeps = {
    config,
    db,
    partitions: new Partitions(db),
    producer,
    adapters,
    sender: await senderOf(config),
    secretBox: createSecretBox(config.secretsKeys),
    metrics,
    log,
    stopping: stopping.signal,
    now: Date.now,
  };
  const processor = createProcessor(processors, deps);
  const workers = queueNames.map((name) => {
    const worker = backend.worker(name, processor, concurrencyOf(name));
    worker.on('error', (error) => log.warn({ err: error, queue: name }, 'worker error'));
    return worker;
  });
  await restore(role, deps, backend);
  for (const worker of workers) runUntilClosed(worker, log);
  const restoring = startRestoring(role, deps, backend);
  const probes = createProbeServer(metrics, [
    { name: 'database', check: () => db.query(PING).then(() => undefined) },
    { name: 'queue store', check: () => backend.ping() },
  ]);
  const probeUrl = await listen(probes, config.metrics.host, config.metrics.port);

  return {
    probeUrl,
    async stop() {
      // Stop taking, finish, close: workers before queues, queues before connections.
      stopping.abort();
      await stopInOrder([
        () => restoring.stop(),
        () => Promise.all(workers.map((worker) => worker.close())),
        () => deps.sender.close(),
        () => Promise.all([...adapters.values()].map((adapter) => adapter.close())),
        () => producer.close(),
        () => backend.close(),
        () => dataSource.destroy(),
        () => new Promise((resolve) => probes.close(resolve)),
      ]);
    },
  };
}

const PING = sql('ping', 'SELECT 1');

function runUntilClosed(worker: Worker, log: Logger): void {
  worker.run().catch((error: unknown) => log.error({ err: error, queue: worker.name }, 'worker loop ended'));
}

function adaptersOf(config: Config, metrics: Metrics, log: Logger): Map<string, VenueAdapter> {
  return createAdapters({ venues: config.venues, urls: config.venueUrls, observer: venueObserver(metrics, log) });
}

async function senderOf(config: Config) {
  const { allowCidrs, caFile, timeoutMs } = config.webhooks;
  return createSender({
    version: VERSION,
    deadlineMs: timeoutMs,
    allow: allowCidrs,
    ...(caFile !== undefined && { extraCaPem: await readFile(caFile, 'utf8') }),
  });
}
