import type { Queue } from 'bullmq';

/** The job states of a queue's backlog. Completed jobs are kept only for a while. */
export const QUEUE_STATES = ['waiting', 'prioritized', 'active', 'delayed', 'failed'] as const;

interface QueueState {
  counts: Readonly<Record<(typeof QUEUE_STATES)[number], number>>;
  isPaused: boolean;
  /** The age of the oldest runnable job, milliseconds; 0 without waiting jobs, and in a paused queue. */
  oldestWaitingMs: number;
}

/** The contents of a queue, over all processes. @throws when the queue store does not answer. */
export async function queueState(queue: Queue, nowMs: number): Promise<QueueState> {
  const [counts, oldestMs, isPaused] = await Promise.all([
    queue.getJobCounts(...QUEUE_STATES),
    oldestWaitingMs(queue, nowMs),
    queue.isPaused(),
  ]);
  const { waiting = 0, prioritized = 0, active = 0, delayed = 0, failed = 0 } = counts;
  return { counts: { waiting, prioritized, active, delayed, failed }, isPaused, oldestWaitingMs: oldestMs };
}

/** Only the age, without counts. @throws when the queue store does not answer */
export async function oldestWaitingMs(queue: Queue, nowMs: number): Promise<number> {
  const [waiting, prioritized] = await Promise.all([
    queue.getJobs(['waiting'], 0, 0, true),
    queue.getJobs(['prioritized'], 0, 0, true),
  ]);
  const ages = [...waiting, ...prioritized].map((job) => nowMs - (job.timestamp + (job.opts.delay ?? 0)));
  if (ages.length === 0 || (await queue.isPaused())) return 0;
  return Math.max(0, ...ages);
}
