import { forwardAbort, WakeUp } from '../../src/domain/values/signals.ts';
import { POLL_VENUE_EVERY_MS, type Poll } from '../../src/queues/schedules.ts';
import type { PollLeases } from './poll-leases.ts';

/** A job waits two seconds for the next one of its venue, so that the polls go on when the queue is late. */
const STAY_MS = POLL_VENUE_EVERY_MS + 2_000;
/** Another process ends its last job meanwhile. */
const TAKE_AGAIN_MS = 500;

/** The job of a poll, and the kind of its lease; wallets have leases of their own. */
export interface VenuePoll extends Poll {
  readonly kind: string | undefined;
  /** Another poll that makes this one due when it has stored something: new markets have no price yet. */
  readonly follows?: Poll['job'] | undefined;
  /** Whether it stored something. Never rejects. */
  run(): Promise<boolean>;
}

interface Venue {
  /** When the next poll of a job is due, by `performance.now()`. A kind whose lease was never held here is absent. */
  readonly dueMs: Map<string, number>;
  readonly running: Map<string, Promise<void>>;
  /** The present job of the venue in this process. */
  current: AbortController | undefined;
  /** Ends the wait for the next poll. */
  readonly wakeUp: WakeUp;
}

/**
 * The polls of the venues whose jobs run in this process. A job runs the due polls of its venue side by side, each with a deadline and
 * failures of its own, until the next job of the venue begins: so a slow walk never delays the other polls. A process keeps the leases
 * meanwhile. When the next job begins in another process, this one polls on for two seconds and then frees the leases.
 */
export class VenuePolls {
  readonly #leases: PollLeases;
  readonly #venues = new Map<string, Venue>();
  readonly #stayMs: number;

  constructor(leases: PollLeases, { stayMs = STAY_MS }: { stayMs?: number } = {}) {
    this.#leases = leases;
    this.#stayMs = stayMs;
    leases.requests.onRequested = (venue, job) => this.#hasten(venue, job);
  }

  /** Runs the polls of a job. Resolves when the next job has begun, or when the polls of the last job have ended. Returns their number. */
  async stay(venue: string, polls: readonly VenuePoll[], signal: AbortSignal): Promise<number> {
    const state = this.#venues.get(venue) ?? {
      dueMs: new Map(),
      running: new Map(),
      current: undefined,
      wakeUp: new WakeUp(),
    };
    this.#venues.set(venue, state);
    const turn = new AbortController();
    state.current?.abort();
    state.current = turn;
    state.wakeUp.wake();
    const unlink = forwardAbort(signal, turn);
    const endsMs = performance.now() + this.#stayMs;
    let begun = 0;
    try {
      while (!turn.signal.aborted && performance.now() < endsMs) {
        state.wakeUp.take();
        const isComplete = await this.#takeLeases(venue, state, polls);
        if (turn.signal.aborted) break;
        begun += beginDue(state, polls);
        const nextMs = Math.min(
          endsMs,
          isComplete ? endsMs : performance.now() + TAKE_AGAIN_MS,
          nextDueMs(state, polls),
        );
        await state.wakeUp.wait(nextMs - performance.now(), turn.signal);
      }
      return begun;
    } finally {
      unlink();
      // No process polls under a lease that this one keeps without a job.
      if (state.current === turn) {
        state.current = undefined;
        state.dueMs.clear();
        await this.#leases.release(venue);
        await Promise.all(state.running.values());
      }
    }
  }

  /** Takes the free leases of kinds whose last poll is unknown here. Returns whether all are known. */
  async #takeLeases(venue: string, state: Venue, polls: readonly VenuePoll[]): Promise<boolean> {
    const nowMs = performance.now();
    const unknown = polls.filter(({ job }) => !state.dueMs.has(job));
    if (unknown.length === 0) {
      await this.#leases.requests.take(venue);
      return true;
    }
    for (const { job, kind } of unknown) if (kind === undefined) state.dueMs.set(job, nowMs);
    const kinds = polls.flatMap(({ kind }) => kind ?? []);
    const taken = await this.#leases.keep(venue, kinds);
    for (const { job, kind, everyMs } of unknown) {
      const attemptedMsAgo = kind === undefined ? undefined : taken.get(kind);
      if (attemptedMsAgo === undefined) continue;
      state.dueMs.set(job, attemptedMsAgo === null ? nowMs : nowMs + Math.max(0, everyMs - attemptedMsAgo));
    }
    return unknown.every(({ job }) => state.dueMs.has(job));
  }

  #hasten(venue: string, job: string): void {
    const state = this.#venues.get(venue);
    if (!state) return;
    makeDue(state, job);
    state.wakeUp.wake();
  }
}

/** Makes a poll due whose lease was held here. */
function makeDue(state: Venue, job: string): void {
  if (state.dueMs.has(job)) state.dueMs.set(job, performance.now());
}

/** Begins the due polls that do not run yet; returns their number. */
function beginDue(state: Venue, polls: readonly VenuePoll[]): number {
  const nowMs = performance.now();
  const due = polls.filter(({ job }) => !state.running.has(job) && (state.dueMs.get(job) ?? Infinity) <= nowMs);
  for (const { job, everyMs, run } of due) {
    state.dueMs.set(job, nowMs + everyMs);
    const running = run().then((hasNews) => {
      state.running.delete(job);
      if (hasNews) for (const next of polls) if (next.follows === job) makeDue(state, next.job);
      state.wakeUp.wake();
    });
    state.running.set(job, running);
  }
  return due.length;
}

/** When the next poll begins that does not run now. */
function nextDueMs(state: Venue, polls: readonly VenuePoll[]): number {
  const waiting = polls.filter(({ job }) => !state.running.has(job));
  return Math.min(...waiting.map(({ job }) => state.dueMs.get(job) ?? Infinity));
}
