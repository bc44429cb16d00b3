import { setTimeout as delay } from 'node:timers/promises';
import type { Worker } from 'bullmq';
import type { QueueBackend } from '../../src/queues/port.ts';

const ASK_EVERY_MS = 250;

/**
 * Takes no more jobs and lets those under way finish. A Worker whose queue store is away would wait for its last answer, for
 * ever on Redis: once no job is under way it is left to the end of its connection instead, and a job whose end the store did
 * not hear of runs again later.
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
  const untilAbandoned = async () => {
    while (!isClosed) {
      if (!isAtWork() && !(await answers(backend))) return;
      await delay(ASK_EVERY_MS);
    }
  };
  await Promise.race([closing, untilAbandoned()]);
}

function answers(backend: Pick<QueueBackend, 'ping'>): Promise<boolean> {
  return backend.ping().then(
    () => true,
    () => false,
  );
}
