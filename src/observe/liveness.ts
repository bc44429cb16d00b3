/** A timer of this process that should fire again and again. Times are epoch or monotonic milliseconds, all of one clock. */
interface LoopBeat {
  readonly name: string;
  readonly everyMs: number;
  /** The end of its latest round, successful or not; before the first, the start of the loop. */
  readonly endedAtMs: number;
}

/** A job in flight in this process. */
interface RunningJob {
  readonly name: string;
  readonly startedAtMs: number;
  /** Its limit in milliseconds, after which its signal fires. */
  readonly deadlineMs: number;
}

/** A queue that this process takes jobs from. */
interface QueueBeat {
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
function stallReasons({ nowMs, loops, jobs, queues }: Vitals): string[] {
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
function isStill({ takenAtMs, running, concurrency }: Omit<QueueBeat, 'oldestWaitingMs'>, nowMs: number): boolean {
  return running < concurrency && nowMs - takenAtMs > QUEUE_STILL_MS;
}

/** The age of the oldest waiting job of a queue, milliseconds; 0 without one. May reject. */
type WaitingAge = (queue: string) => Promise<number>;

/** The recent activity of one process, for the rule of `stallReasons`. */
export class LivenessTracker {
  readonly #now: () => number;
  readonly #loops = new Map<string, LoopBeat>();
  readonly #queues = new Map<string, Omit<QueueBeat, 'oldestWaitingMs'>>();
  readonly #jobs = new Set<RunningJob>();

  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
  }

  /** Registers a loop. Call the returned function at the end of every round. */
  loop(name: string, everyMs: number): () => void {
    const beat = () => void this.#loops.set(name, { name, everyMs, endedAtMs: this.#now() });
    beat();
    return beat;
  }

  /** Registers a queue of this process, with its concurrency. */
  queue(name: string, concurrency: number): void {
    this.#queues.set(name, { name, concurrency, running: 0, takenAtMs: this.#now() });
  }

  /** Registers a job. Call the returned function at its end. */
  job(queue: string, name: string, deadlineMs: number): () => void {
    const job = { name, startedAtMs: this.#now(), deadlineMs };
    this.#jobs.add(job);
    this.#count(queue, 1, job.startedAtMs);
    return () => {
      if (this.#jobs.delete(job)) this.#count(queue, -1);
    };
  }

  /** Whether a job is in flight. */
  get isAtWork(): boolean {
    return this.#jobs.size > 0;
  }

  /** The reasons why the work is stalled; empty otherwise. Asks a queue for its age only when this process takes no jobs from it. */
  async stallReasons(waitingAge: WaitingAge): Promise<string[]> {
    const nowMs = this.#now();
    const queues = await Promise.all(
      [...this.#queues.values()].map(async (queue) => {
        const oldestWaitingMs = isStill(queue, nowMs) ? await ageOr0(waitingAge, queue.name) : 0;
        return { ...queue, oldestWaitingMs };
      }),
    );
    return stallReasons({ nowMs, loops: [...this.#loops.values()], jobs: [...this.#jobs], queues });
  }

  #count(name: string, change: number, takenAtMs?: number): void {
    const queue = this.#queues.get(name);
    if (!queue) return;
    const running = queue.running + change;
    this.#queues.set(name, { ...queue, running, ...(takenAtMs !== undefined && { takenAtMs }) });
  }
}

/** Readiness reports an unavailable queue store; it is not a fault of this process. */
async function ageOr0(waitingAge: WaitingAge, queue: string): Promise<number> {
  try {
    return await waitingAge(queue);
  } catch {
    return 0;
  }
}
