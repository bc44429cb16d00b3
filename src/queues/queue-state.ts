import type { Queue } from 'bullmq';

/** The job states that describe a queue's health. Completed jobs are only kept for a while. */
export const QUEUE_STATES = ['waiting', 'prioritized', 'active', 'delayed', 'failed'] as const;

interface QueueState {
  counts: Readonly<Record<(typeof QUEUE_STATES)[number], number>>;
  isPaused: boolean;
  /** How long the job that waits longest could have run, milliseconds; 0 when none waits, or nothing runs on purpose. */
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

/** Only the age, without counting. @throws when the queue store does not answer. */
export async function oldestWaitingMs(queue: Queue, nowMs: number): Promise<number> {
  const [waiting, prioritized] = await Promise.all([
    queue.getJobs(['waiting'], 0, 0, true),
    queue.getJobs(['prioritized'], 0, 0, true),
  ]);
  const ages = [...waiting, ...prioritized].map((job) => nowMs - (job.timestamp + (job.opts.delay ?? 0)));
  if (ages.length === 0 || (await queue.isPaused())) return 0;
  return Math.max(0, ...ages);
}
