import type { Role } from '../src/queues/jobs.ts';
import type { QueueBackend } from '../src/queues/port.ts';
import { reconcileSchedules, schedulesOf } from '../src/queues/schedules.ts';
import { dueSubscriptions, oldestOverdueSeconds } from '../src/store/deliveries.ts';
import { stageBacklogs, waitingShards } from '../src/store/marks.ts';
import type { WorkerDeps } from './deps.ts';

const EVERY_MS = 5_000;
const JITTER = 0.2;
/** Subscriptions woken per round; the rest follow 5 s later. */
const MAX_WOKEN = 1_000;

/**
 * The timer that restores the queue from the database (DESIGN section 2, point 4): it lives in the process, not in the
 * queue, so nothing that happens to the queue store stops it. It re-creates the store and the schedulers if they are gone,
 * and wakes stages whose marks or due rows are waiting.
 */
export function startRestoring(role: Role, deps: WorkerDeps, backend: QueueBackend): { stop(): Promise<void> } {
  let timer: NodeJS.Timeout | undefined;
  let round: Promise<void> = Promise.resolve();
  const next = () => {
    if (deps.stopping.aborted) return;
    timer = setTimeout(
      () => {
        round = restore(role, deps, backend)
          .catch((error: unknown) => deps.log.warn({ err: error }, 'restoring round failed'))
          .finally(next);
      },
      EVERY_MS * (1 - JITTER + 2 * JITTER * Math.random()),
    );
  };
  next();
  return {
    async stop() {
      clearTimeout(timer);
      await round;
    },
  };
}

/** One round. Exported for boot and for tests. */
export async function restore(role: Role, deps: WorkerDeps, backend: QueueBackend): Promise<void> {
  const { db, producer, metrics, log } = deps;
  if (await backend.restore()) log.warn('queue store was gone: re-created');
  const mended = await reconcileSchedules(producer, schedulesOf(role, deps.config), deps.now());
  if (mended.length > 0) log.info({ schedules: mended }, 'schedules set');
  if (role === 'aggregator') producer.wakeStage('fold-candles', await waitingShards(db, 'fold-candles'));
  if (role === 'alerter') producer.wakeStage('evaluate-alerts', await waitingShards(db, 'evaluate-alerts'));
  if (role === 'deliverer') {
    producer.wakeDeliveries(await dueSubscriptions(db, MAX_WOKEN));
    metrics.oldestOverdueSeconds.set(await oldestOverdueSeconds(db));
  }
  if (role === 'aggregator') {
    for (const { stage, waiting, parked } of await stageBacklogs(db)) {
      metrics.marksWaiting.set({ stage }, waiting);
      metrics.marksParked.set({ stage }, parked);
    }
  }
}
