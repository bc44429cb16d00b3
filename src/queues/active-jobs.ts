import type { Queue } from 'bullmq';
import type { QueueBackend } from './port.ts';
import type { Producer } from './producer.ts';

/** BullMQ's error for a job that another process has moved, finished or deleted meanwhile; other errors have no such code. */
function isMovedMeanwhile(error: unknown): boolean {
  const { code } = error as { code?: unknown };
  return typeof code === 'number' && code < 0;
}

/** The first part of the token of a lock. */
function workerOf(token: string): string {
  return token.slice(0, token.lastIndexOf(':'));
}

/**
 * Moves the active jobs of ended workers back to the front of their queues, by the worker of each queue, and returns their number.
 * BullMQ does it itself when it finds the locks expired. Until then an active job absorbs every wake-up with its deduplication id.
 * @throws when the queue store does not answer.
 */
export async function requeueJobsOf(
  workers: Readonly<Record<string, string>>,
  { backend, producer }: { backend: Pick<QueueBackend, 'locks'>; producer: Pick<Producer, 'queue'> },
): Promise<number> {
  const requeued = await Promise.all(
    Object.entries(workers).map(([name, worker]) => requeueIn(producer.queue(name), backend, worker)),
  );
  return requeued.reduce((sum, count) => sum + count, 0);
}

function requeueIn(queue: Queue, backend: Pick<QueueBackend, 'locks'>, worker: string): Promise<number> {
  return requeueLocked(backend.locks(queue), {
    isLost: (_id, token) => workerOf(token) === worker,
    move: async (id, token) => (await queue.getJob(id))?.moveToWait(token),
  });
}

/** Moves active jobs that no worker runs back to the front of their queue, by the locks of the queue, and returns their number. */
export async function requeueLocked(
  locks: Promise<ReadonlyMap<string, string>>,
  { isLost, move }: { isLost(id: string, token: string): boolean; move(id: string, token: string): Promise<unknown> },
): Promise<number> {
  let requeued = 0;
  for (const [id, token] of await locks) {
    if (!isLost(id, token)) continue;
    try {
      await move(id, token);
      requeued += 1;
    } catch (error) {
      if (!isMovedMeanwhile(error)) throw error;
    }
  }
  return requeued;
}
