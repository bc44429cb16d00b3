/** A timer of this process that should fire again and again. Times are epoch or monotonic milliseconds, all of one clock. */
export interface LoopBeat {
  readonly name: string;
  readonly everyMs: number;
  /** The end of its latest round, successful or not; before the first, the start of the loop. */
  readonly endedAtMs: number;
}

/** A job in flight in this process. */
export interface RunningJob {
  readonly name: string;
  readonly startedAtMs: number;
  /** Its limit in milliseconds, after which its signal fires. */
  readonly deadlineMs: number;
}

/** A queue that this process takes jobs from. */
export interface QueueBeat {
  readonly name: string;
  /** When this process last started one of its jobs; before the first, when it registered the queue. */
  readonly takenAtMs: number;
  readonly running: number;
  readonly concurrency: number;
  /** The age of the oldest runnable job; 0 without one and in a paused queue. */
  readonly oldestWaitingMs: number;
}

interface Vitals {
  readonly nowMs: number;
  readonly loops: readonly LoopBeat[];
  readonly jobs: readonly RunningJob[];
  readonly queues: readonly QueueBeat[];
}

/** Rounds that a loop may miss: a round queries the database a few times, and each answer may take a while. */
const LOOP_ROUNDS = 12;
/** Jobs end when their signal fires; a job still in flight this long after it hangs in a call without a signal. */
const JOB_GRACE_MS = 60_000;
/** The age of a waiting job at which a process with free capacity that takes no jobs is stalled. */
const QUEUE_STILL_MS = 120_000;

/**
 * The reasons why this process is stalled, as texts; empty otherwise. Answering connections prove nothing here: BullMQ
 * workers can stop taking jobs while PING succeeds. An absent dependency is not a reason: the caller checks it first.
 */
export function stallReasons({ nowMs, loops, jobs, queues }: Vitals): string[] {
  const seconds = (ms: number) => `${Math.round(ms / 1000)} s`;
  return [
    ...loops
      .filter(({ everyMs, endedAtMs }) => nowMs - endedAtMs > LOOP_ROUNDS * everyMs)
      .map(({ name, endedAtMs }) => `loop ${name} has not run for ${seconds(nowMs - endedAtMs)}`),
    ...jobs
      .filter(({ startedAtMs, deadlineMs }) => nowMs - startedAtMs > deadlineMs + JOB_GRACE_MS)
      .map(({ name, startedAtMs }) => `job ${name} has run for ${seconds(nowMs - startedAtMs)}`),
    ...queues
      .filter((queue) => isStill(queue, nowMs) && queue.oldestWaitingMs > QUEUE_STILL_MS)
      .map(({ name, oldestWaitingMs }) => `queue ${name}: a job waits for ${seconds(oldestWaitingMs)}, none is taken`),
  ];
}

/** Whether to ask a queue for the age of its jobs: this process has free capacity, and has taken none for a while. */
export function isStill(
  { takenAtMs, running, concurrency }: Omit<QueueBeat, 'oldestWaitingMs'>,
  nowMs: number,
): boolean {
  return running < concurrency && nowMs - takenAtMs > QUEUE_STILL_MS;
}
