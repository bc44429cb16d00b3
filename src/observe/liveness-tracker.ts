import { isStill, type LoopBeat, type QueueBeat, type RunningJob, stallReasons } from './liveness.ts';

/** The age of the oldest waiting job of a queue, milliseconds; 0 without one. May reject. */
type WaitingAge = (queue: string) => Promise<number>;

/** The recent activity of one process, for the rule of liveness.ts. */
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
