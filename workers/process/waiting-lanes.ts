import { setTimeout as delay } from 'node:timers/promises';
import { asError } from '../../src/domain/values/errors.ts';
import { FailureStreaks } from '../../src/observe/failures.ts';
import type { Logger } from '../../src/observe/logger.ts';
import { laneOf } from '../../src/queues/jobs.ts';
import type { LaneJob, Producer } from '../../src/queues/producer.ts';
import type { Queryable } from '../../src/store/db/tx.ts';
import { freeLanes, lanesOf, takeLane } from '../../src/store/marks/lane-signals.ts';

/** A job without a signal for this long ends. */
const IDLE_MS = 3_000;
/** Looks for marks without a signal: of a process of the former release, or after the loss of a notification. */
const LOOK_EVERY_MS = 1_000;
/** At its next turn after this time a job gives its lane to another one, which any process of the role may take. */
const STAY_MS = 30_000;
/** A producer that signals a lane holds its lock for an instant. */
const TAKE_TRIES = 3;
const TAKE_AGAIN_MS = 3;
/** Lanes that are signalled while another job works wait for it this long; then a second job works beside it. */
const SHARE_MS = 25;
/** A signal of a lane that no job of this process waits for belongs to another process. If it takes no marks by then, the lane gets a job. */
const WITNESS_MS = 500;

interface WaitingLanesOptions {
  readonly job: LaneJob;
  /** The session that holds the lanes and receives the signals. */
  readonly session: Pick<Queryable, 'query'>;
  /** The shards of the stage with pending marks. */
  readonly pendingShards: () => Promise<readonly number[]>;
  readonly producer: Pick<Producer, 'wake'>;
  readonly log: Logger;
  readonly idleMs?: number;
}

/**
 * The lanes of a stage whose jobs run in this process. A job that found its lane empty stays, holds the lane, and waits for a signal, which costs
 * one statement where a job costs tens. Usually one job works at a time, and takes the marks of all lanes that were signalled.
 *
 * A lane is held by a lock of the session. It is free before the last claim of its job, so a producer either gives the lane a job or commits its
 * marks before that claim. When the process ends, Postgres frees the lanes.
 */
export class WaitingLanes {
  readonly #options: WaitingLanesOptions;
  readonly #streaks = new FailureStreaks();
  /** Lanes whose lock the session holds. */
  readonly #held = new Set<number>();
  /** Held lanes that were signalled, and are not claimed yet. */
  readonly #signalled = new Set<number>();
  /** When the job of a lane began. */
  readonly #beganMs = new Map<number, number>();
  /** Jobs that work, by their lane, and jobs that wait. */
  readonly #working = new Set<number>();
  readonly #waiting = new Map<number, (lanes: readonly number[]) => void>();
  /** The takes of lanes in flight: the lock of a session counts, so a lane is taken once. */
  readonly #taking = new Map<number, Promise<boolean>>();
  /** Lanes that are freed for the end of their jobs, while the job of `by` makes the last claim. */
  #closing: { readonly by: number; readonly lanes: readonly number[] } | undefined;
  /** Lanes of other processes that were signalled. */
  readonly #foreign = new Set<number>();
  #idle: NodeJS.Timeout | undefined;
  #look: NodeJS.Timeout | undefined;
  #share: NodeJS.Timeout | undefined;
  #witness: NodeJS.Timeout | undefined;

  constructor(options: WaitingLanesOptions) {
    this.#options = options;
  }

  /** A job of the lane begins to work. Call `end` when it is over. */
  begin(lane: number): void {
    this.#working.add(lane);
    this.#beganMs.set(lane, performance.now());
  }

  /** The job is over, or failed. */
  async end(lane: number): Promise<void> {
    this.#working.delete(lane);
    if (this.#closing?.by === lane) this.#claimClosed();
    if (this.#held.has(lane) && !this.#waiting.has(lane)) await this.#leave(lane);
    this.#dispatch();
  }

  /** The lanes that the job claims next; none when it ends. `claimed` is the number of marks since the last call. */
  async next(lane: number, claimed: number, signal: AbortSignal): Promise<readonly number[]> {
    if (this.#closing?.by === lane) {
      const { lanes } = this.#closing;
      this.#closing = undefined;
      if (claimed === 0) {
        this.#endJobs(lanes);
        return [];
      }
      // A lane whose job ended meanwhile stays free: no job would free it again.
      for (const closed of lanes) {
        if (closed !== lane && !this.#isClosed(closed)) continue;
        const isTaken = await this.#take(closed);
        if (!isTaken && this.#waiting.has(closed)) this.#start(closed, [closed]);
        if (isTaken && !this.#working.has(closed) && !this.#waiting.has(closed)) await this.#leave(closed);
      }
      return lanes;
    }
    // The queue gave the lane to a second job, because it lost the lock of the first one, for example with a killed database.
    if (this.#waiting.has(lane)) return [];
    // Marks between the last claim and the lock got a job, which waits for the end of this one. So the lane is claimed once more.
    if (!this.#held.has(lane)) return (await this.#take(lane)) || claimed > 0 ? [lane] : [];
    this.#working.delete(lane);
    if (signal.aborted || performance.now() - (this.#beganMs.get(lane) ?? 0) > STAY_MS) {
      await this.#leave(lane);
      return [];
    }
    const taken = new Promise<readonly number[]>((resolve) => this.#waiting.set(lane, resolve));
    const onAbort = () => {
      const resolve = this.#waiting.get(lane);
      this.#waiting.delete(lane);
      if (resolve) void this.#leave(lane).finally(() => resolve([]));
    };
    signal.addEventListener('abort', onAbort, { once: true });
    this.#dispatch();
    this.#watch();
    return taken.finally(() => signal.removeEventListener('abort', onAbort));
  }

  /** Gives each of these lanes to a job of its own, because one claim did not take all their marks; returns the lanes of the caller. */
  spread(lanes: readonly number[]): readonly number[] {
    const [own, ...others] = lanes;
    for (const lane of others) {
      this.#signalled.add(lane);
      if (this.#waiting.has(lane)) this.#start(lane, [lane]);
    }
    return own === undefined ? [] : [own];
  }

  /** A payload of the channel. */
  receive(payload: string): void {
    for (const { job, lane } of lanesOf(payload)) {
      if (job !== this.#options.job) continue;
      if (this.#held.has(lane)) this.#signalled.add(lane);
      else this.#foreign.add(lane);
    }
    this.#dispatch();
    if (this.#foreign.size > 0) this.#witness ??= setTimeout(() => void this.#wakeForeign(), WITNESS_MS);
  }

  /** The session is lost, and its locks with it: each job claims once more and ends. */
  lost(): void {
    this.#held.clear();
    this.#signalled.clear();
    this.#closing = undefined;
    for (const lane of [...this.#waiting.keys()]) this.#start(lane, [lane]);
  }

  close(): void {
    for (const timer of [this.#idle, this.#look, this.#share, this.#witness]) clearTimeout(timer);
  }

  /** Gives the signalled lanes to a waiting job; while another one works, after some milliseconds. */
  #dispatch(): void {
    if (this.#signalled.size === 0 || this.#waiting.size === 0) return;
    if (this.#working.size > 0) {
      this.#share ??= setTimeout(() => {
        this.#share = undefined;
        this.#startAny();
      }, SHARE_MS);
      return;
    }
    clearTimeout(this.#share);
    this.#share = undefined;
    this.#startAny();
  }

  #startAny(): void {
    const [lane] = this.#waiting.keys();
    if (lane !== undefined && this.#signalled.size > 0) this.#start(lane, [...this.#signalled]);
  }

  #start(lane: number, lanes: readonly number[]): void {
    const resolve = this.#waiting.get(lane);
    this.#waiting.delete(lane);
    for (const claimed of lanes) this.#signalled.delete(claimed);
    this.#working.add(lane);
    clearTimeout(this.#idle);
    this.#idle = undefined;
    resolve?.(lanes);
  }

  /** Ends the jobs after a time without a signal, and looks for marks meanwhile. */
  #watch(): void {
    if (this.#waiting.size === 0) return;
    if (this.#working.size === 0) this.#idle ??= setTimeout(() => void this.#free(), this.#options.idleMs ?? IDLE_MS);
    this.#look ??= setTimeout(() => void this.#lookForMarks(), LOOK_EVERY_MS);
  }

  async #lookForMarks(): Promise<void> {
    try {
      const lanes = new Set((await this.#options.pendingShards()).map(laneOf));
      for (const lane of lanes) if (this.#held.has(lane)) this.#signalled.add(lane);
      this.#streaks.succeeded('look');
    } catch (error) {
      this.#failed('look', error);
    }
    this.#look = undefined;
    this.#dispatch();
    this.#watch();
  }

  /** Frees all lanes, and lets one job claim their last marks. That job works from here on, so that nothing else starts or frees it. */
  async #free(): Promise<void> {
    this.#idle = undefined;
    const [first] = this.#waiting;
    if (first === undefined || this.#working.size > 0 || this.#signalled.size > 0) return;
    const [by, claim] = first;
    const lanes = [...this.#held];
    this.#held.clear();
    this.#waiting.delete(by);
    this.#working.add(by);
    this.#closing = { by, lanes };
    await this.#unlock(lanes);
    claim(lanes);
  }

  /** Ends the waiting jobs of freed lanes. A job that took its lane meanwhile, or again, goes on. */
  #endJobs(lanes: readonly number[]): void {
    for (const lane of lanes.filter((each) => this.#isClosed(each))) {
      this.#waiting.get(lane)?.([]);
      this.#waiting.delete(lane);
    }
  }

  /** The last claim of freed lanes failed: each job claims its own lane once more. */
  #claimClosed(): void {
    const lanes = this.#closing?.lanes ?? [];
    this.#closing = undefined;
    for (const lane of lanes.filter((each) => this.#isClosed(each))) this.#start(lane, [lane]);
  }

  /** Whether the job of the lane waits although the lane is free. */
  #isClosed(lane: number): boolean {
    return this.#waiting.has(lane) && !this.#held.has(lane);
  }

  /** Frees a lane whose job ends at its deadline or with the process, and gives it a job that claims what was signalled until now. */
  async #leave(lane: number): Promise<void> {
    this.#held.delete(lane);
    this.#signalled.delete(lane);
    await this.#unlock([lane]);
    this.#options.producer.wake(this.#options.job, { lane });
  }

  #take(lane: number): Promise<boolean> {
    const taking = this.#taking.get(lane) ?? this.#tryToTake(lane).finally(() => this.#taking.delete(lane));
    this.#taking.set(lane, taking);
    return taking;
  }

  async #tryToTake(lane: number): Promise<boolean> {
    const { session, job } = this.#options;
    try {
      for (let tries = 1; tries <= TAKE_TRIES; tries += 1) {
        if (await takeLane(session, { job, lane })) {
          this.#streaks.succeeded('take');
          this.#held.add(lane);
          return true;
        }
        await delay(TAKE_AGAIN_MS);
      }
      return false;
    } catch (error) {
      this.#failed('take', error);
      return false;
    }
  }

  async #unlock(lanes: readonly number[]): Promise<void> {
    try {
      await freeLanes(this.#options.session, this.#options.job, lanes);
      this.#streaks.succeeded('free');
    } catch (error) {
      // A lost session holds no locks.
      this.#failed('free', error);
    }
  }

  /** Wakes the signalled lanes of other processes whose marks are still pending: that process is suspended. */
  async #wakeForeign(): Promise<void> {
    this.#witness = undefined;
    const lanes = [...this.#foreign];
    this.#foreign.clear();
    try {
      const pending = new Set((await this.#options.pendingShards()).map(laneOf));
      for (const lane of lanes) {
        if (pending.has(lane) && !this.#held.has(lane)) this.#options.producer.wake(this.#options.job, { lane });
      }
      this.#streaks.succeeded('witness');
    } catch (error) {
      this.#failed('witness', error);
    }
  }

  #failed(what: string, error: unknown): void {
    const { inARow, shouldLog } = this.#streaks.failed(what);
    const line = { job: this.#options.job, what, err: asError(error), inARow };
    this.#options.log[shouldLog ? 'warn' : 'debug'](line, 'lanes not read; the timer wakes them');
  }
}
