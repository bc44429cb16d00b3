import { isStill, type LoopBeat, type QueueBeat, type RunningJob, stallReasons } from './liveness.ts';

/** How old the work is that waits in a queue, milliseconds; 0 when none does. May reject. */
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

  /** This process takes jobs of the queue, so many at once. */
  queue(name: string, concurrency: number): void {
    this.#queues.set(name, { name, concurrency, running: 0, takenAtMs: this.#now() });
  }

  /** Registers a job. Call the returned function when it ended. */
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

  /** Why the work stands still; empty when it does not. Asks a queue for its age only when this process takes nothing from it. */
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

/** A queue store that is away is told by readiness; it says nothing about this process. */
async function ageOr0(waitingAge: WaitingAge, queue: string): Promise<number> {
  try {
    return await waitingAge(queue);
  } catch {
    return 0;
  }
}
