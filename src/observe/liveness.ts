/** A timer of this process that should come round again and again. Moments are epoch or monotonic milliseconds, all of one clock. */
export interface LoopBeat {
  readonly name: string;
  readonly everyMs: number;
  /** When its latest round ended, well or not; before the first, when the loop began. */
  readonly endedAtMs: number;
}

/** A job in flight in this process. */
export interface RunningJob {
  readonly name: string;
  readonly startedAtMs: number;
  /** Milliseconds it may take: its signal fires then. */
  readonly deadlineMs: number;
}

/** A queue this process takes jobs from. */
export interface QueueBeat {
  readonly name: string;
  /** When this process last began one of its jobs; before the first, when it began to take them. */
  readonly takenAtMs: number;
  readonly running: number;
  readonly concurrency: number;
  /** How long the job that waits longest could have run; 0 when none waits or the queue is paused. */
  readonly oldestWaitingMs: number;
}

export interface Vitals {
  readonly nowMs: number;
  readonly loops: readonly LoopBeat[];
  readonly jobs: readonly RunningJob[];
  readonly queues: readonly QueueBeat[];
}

/** A loop may miss so many rounds: a round asks the database a few times, and each answer may take a while. */
export const LOOP_ROUNDS = 12;
/** Jobs end when their signal fires; a job that is still in flight this long after hangs on a call without a signal. */
export const JOB_GRACE_MS = 60_000;
/** Work that waits this long while this process has free hands and takes none. */
export const QUEUE_STILL_MS = 120_000;

/**
 * The reasons why this process is stalled, in words; empty when it is not. Connections that answer prove nothing here: BullMQ
 * workers are known to stop taking jobs while PING succeeds. An absent dependency is not a reason: the caller checks it first.
 */
export function stallReasons({ nowMs, loops, jobs, queues }: Vitals): string[] {
  const seconds = (ms: number) => `${Math.round(ms / 1000)} s`;
  return [
    ...loops
      .filter(({ everyMs, endedAtMs }) => nowMs - endedAtMs > LOOP_ROUNDS * everyMs)
      .map(({ name, endedAtMs }) => `loop ${name} has not come round for ${seconds(nowMs - endedAtMs)}`),
    ...jobs
      .filter(({ startedAtMs, deadlineMs }) => nowMs - startedAtMs > deadlineMs + JOB_GRACE_MS)
      .map(({ name, startedAtMs }) => `job ${name} has run for ${seconds(nowMs - startedAtMs)}`),
    ...queues
      .filter((queue) => isStill(queue, nowMs) && queue.oldestWaitingMs > QUEUE_STILL_MS)
      .map(({ name, oldestWaitingMs }) => `queue ${name}: a job waits for ${seconds(oldestWaitingMs)}, none is taken`),
  ];
}

/** Whether a queue is worth asking how old its jobs are: this process could take some, and has not for a while. */
export function isStill(
  { takenAtMs, running, concurrency }: Omit<QueueBeat, 'oldestWaitingMs'>,
  nowMs: number,
): boolean {
  return running < concurrency && nowMs - takenAtMs > QUEUE_STILL_MS;
}
