import { setTimeout as delay } from 'node:timers/promises';
import type { Worker } from 'bullmq';
import type { QueueBackend } from '../../src/queues/port.ts';

const ASK_EVERY_MS = 250;

/**
 * Stops taking jobs and waits for the running ones. While the queue store is down, a Worker waits for its last answer, on Redis
 * without end. So after the last job this returns without the Worker, and a job whose end the store missed runs again later.
 */
export async function closeWorkers(
  workers: readonly Worker[],
  backend: Pick<QueueBackend, 'ping'>,
  isAtWork: () => boolean,
): Promise<void> {
  let isClosed = false;
  const closing = Promise.all(workers.map((worker) => worker.close())).finally(() => {
    isClosed = true;
  });
  const untilStoreIsDown = async () => {
    while (!isClosed) {
      if (!isAtWork() && !(await answers(backend))) return;
      await delay(ASK_EVERY_MS);
    }
  };
  await Promise.race([closing, untilStoreIsDown()]);
}

function answers(backend: Pick<QueueBackend, 'ping'>): Promise<boolean> {
  return backend.ping().then(
    () => true,
    () => false,
  );
}
