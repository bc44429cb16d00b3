import { readFile } from 'node:fs/promises';
import type { Worker } from 'bullmq';
import type { Config } from '../src/config/config.ts';
import { VERSION } from '../src/config/version.ts';
import type { Logger } from '../src/observe/logger.ts';
import type { Metrics } from '../src/observe/metrics.ts';
import { concurrencyOf, queuesOfRole, type Role } from '../src/queues/jobs.ts';
import { openFoundation } from '../src/runtime/foundation.ts';
import { Partitions } from '../src/store/partitions.ts';
import type { VenueAdapter } from '../src/venues/port.ts';
import { createAdapters } from '../src/venues/registry.ts';
import { createSender } from '../src/webhooks/sender.ts';
import { createProcessor } from './define.ts';
import type { WorkerDeps } from './deps.ts';
import { releaseParked, restore, startRestoring } from './restore.ts';
import { processorsOf } from './roles.ts';
import { venueObserver } from './venue-observer.ts';

export interface RunningWorker {
  /** Where /metrics and /health answer. */
  probeUrl: string;
  stop(): Promise<void>;
}

/** Brings up one worker process. It stops in the order: take no more, finish, close. The signal ends the wait for the database. */
export async function startWorker(
  role: Role,
  config: Config,
  log: Logger,
  signal: AbortSignal,
): Promise<RunningWorker> {
  const processors = processorsOf(role);
  const names = queuesOfRole(role, config.venues);
  const foundation = await openFoundation(role, { config, log, signal, workers: names.length });
  const { backend, metrics } = foundation;
  try {
    const adapters = role === 'poller' ? adaptersOf(config, metrics, log) : new Map<string, VenueAdapter>();
    foundation.onStop(() => Promise.all([...adapters.values()].map((adapter) => adapter.close())));
    const sender = await senderOf(config);
    foundation.onStop(() => sender.close());
    const stopping = new AbortController();
    const deps: WorkerDeps = {
      config,
      db: foundation.db,
      partitions: new Partitions(foundation.db),
      producer: foundation.producer,
      adapters,
      sender,
      secretBox: foundation.secretBox,
      metrics,
      log,
      stopping: stopping.signal,
      now: Date.now,
    };
    const processor = createProcessor(processors, deps);
    await releaseParked(role, deps);
    await restore(role, deps, backend);
    const workers = names.map((name) => runWorker(backend.worker(name, processor, concurrencyOf(name)), log));
    foundation.onStop(() => Promise.all(workers.map((worker) => worker.close())));
    const restoring = startRestoring(role, deps, backend);
    foundation.onStop(() => restoring.stop());
    return {
      probeUrl: foundation.probeUrl,
      async stop() {
        stopping.abort();
        await foundation.stop();
      },
    };
  } catch (error) {
    await foundation.stop();
    throw error;
  }
}

function runWorker(worker: Worker, log: Logger): Worker {
  worker.on('error', (error) => log.warn({ err: error, queue: worker.name }, 'worker error'));
  worker.run().catch((error: unknown) => log.error({ err: error, queue: worker.name }, 'worker loop ended'));
  return worker;
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
