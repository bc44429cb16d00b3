import { asError } from '../../domain/values/errors.ts';
import { MAX_PAUSE_MS } from '../../domain/values/request-rate.ts';
import { VenueError } from '../errors.ts';
import type { RateLedger, RateState } from './rate-ledger.ts';

/** Thrown when the wait for a turn would be longer than the caller can wait; the budget stays as it was. */
export class BudgetExceededError extends Error {
  readonly waitMs: number;

  constructor(waitMs: number) {
    super(`the request budget is used up for ${Math.ceil(waitMs)} ms`);
    this.name = 'BudgetExceededError';
    this.waitMs = waitMs;
  }
}

/** Thrown when the ledger does not answer. The message omits the cause, which may name the address of a database. */
class BudgetUnavailableError extends Error {
  constructor(cause: unknown) {
    super('the request budget is unavailable', { cause });
    this.name = 'BudgetUnavailableError';
  }
}

/** An error of `acquire` as the error of a call to this venue; undefined for other errors. Neither is a fault of the venue. */
export function budgetFailure(venue: string, thrown: unknown): VenueError | undefined {
  if (thrown instanceof BudgetExceededError) {
    const retryAfterMs = Math.ceil(thrown.waitMs);
    return new VenueError(venue, 'rate_limited', thrown.message, { retryable: true, retryAfterMs, cause: thrown });
  }
  if (thrown instanceof BudgetUnavailableError)
    return new VenueError(venue, 'budget_unavailable', thrown.message, { retryable: true, cause: thrown.cause });
  return undefined;
}

interface RequestBudget {
  /**
   * Waits for a turn, in order of arrival, and resolves with the moment of its take.
   * @throws BudgetExceededError when the wait is, or becomes, longer than `maxWaitMs`; BudgetUnavailableError; the reason of the signal
   * when aborted.
   */
  acquire(signal: AbortSignal, maxWaitMs: number): Promise<number>;
  /** Gives no turn for this long, at most ten minutes, because the venue asked for a pause. Never rejects. */
  pause(ms: number): Promise<void>;
  /** The venue answered a request with the turn of this take. */
  succeeded(takenAt: number): void;
  /** The venue refused a request with the turn of this take, because there were too many. Never rejects. */
  limited(takenAt: number): Promise<void>;
}

interface Waiter {
  latestAt: number;
  give(takenAt: number): void;
  refuse(error: Error): void;
}

/** One call of the ledger takes the turns of this time at most: the other processes need turns too. */
const SHARE_SECONDS = 0.25;

/**
 * The queue of callers before a ledger. It takes a turn per waiting caller and none in advance, so that a pause or a slower rate of
 * another process holds from the next request on. Callers that wait together share a call of the ledger.
 */
export function createRequestBudget(ledger: RateLedger, perSecond: number): RequestBudget {
  const queue: Waiter[] = [];
  /** Takes of turns whose callers aborted. */
  const spare: number[] = [];
  const successes: number[] = [];
  /** The latest take that was refused while the ledger did not answer. */
  let unreported: number | undefined;
  let rate = perSecond;
  /** The ledger has no turn before this moment. */
  let nextAt = Number.NEGATIVE_INFINITY;
  let isAsking = false;
  let timer: NodeJS.Timeout | undefined;

  async function ask(): Promise<void> {
    isAsking = true;
    try {
      while (queue.length > 0 && nextAt <= performance.now()) {
        if (unreported !== undefined) await report(unreported);
        const turns = Math.min(queue.length, Math.max(1, Math.floor(rate * SHARE_SECONDS)));
        const { granted, at, ...state } = await ledger.take(turns, successes.splice(0));
        for (let given = 0; given < granted; given += 1) {
          const waiter = queue.shift();
          if (waiter) waiter.give(at);
          else spare.push(at);
        }
        follow(state);
      }
    } catch (cause) {
      for (const waiter of queue.splice(0)) waiter.refuse(new BudgetUnavailableError(cause));
    }
    isAsking = false;
    schedule();
  }

  function schedule(): void {
    clearTimeout(timer);
    if (isAsking || queue.length === 0) return;
    const waitMs = nextAt - performance.now();
    if (waitMs <= 0) void ask();
    else timer = setTimeout(ask, Math.ceil(waitMs));
  }

  /** The wait of the turn after `ahead` others. */
  function waitAfter(waitMs: number, ahead: number): number {
    return waitMs + (ahead / rate) * 1000;
  }

  /** Callers whose turn would now come too late fail at once. */
  function follow(state: Pick<RateState, 'rate' | 'waitMs'>): void {
    const now = performance.now();
    rate = state.rate;
    nextAt = now + state.waitMs;
    if (state.waitMs === 0) return;
    for (const waiter of queue.splice(0)) {
      const wait = waitAfter(state.waitMs, queue.length);
      if (now + wait <= waiter.latestAt) queue.push(waiter);
      else waiter.refuse(new BudgetExceededError(wait));
    }
  }

  async function report(takenAt: number): Promise<void> {
    unreported = takenAt;
    follow(await ledger.limited(takenAt));
    unreported = undefined;
  }

  /** Follows a change that the venue caused. An error is not the caller's: the next take meets it too. */
  async function change(changing: Promise<void>): Promise<void> {
    spare.length = 0;
    await changing.catch(() => undefined);
    schedule();
  }

  return {
    async acquire(signal, maxWaitMs) {
      signal.throwIfAborted();
      const left = queue.length === 0 ? spare.shift() : undefined;
      if (left !== undefined) return left;
      const now = performance.now();
      const wait = waitAfter(nextAt - now, queue.length);
      if (nextAt > now && wait > maxWaitMs) throw new BudgetExceededError(wait);
      return new Promise<number>((resolve, reject) => {
        const onAbort = () => {
          queue.splice(queue.indexOf(waiter), 1);
          reject(asError(signal.reason));
        };
        const waiter: Waiter = {
          latestAt: now + maxWaitMs,
          give(takenAt) {
            signal.removeEventListener('abort', onAbort);
            resolve(takenAt);
          },
          refuse(error) {
            signal.removeEventListener('abort', onAbort);
            reject(error);
          },
        };
        signal.addEventListener('abort', onAbort, { once: true });
        queue.push(waiter);
        schedule();
      });
    },
    pause(ms) {
      // Holds in this process even when the ledger does not answer.
      nextAt = Math.max(nextAt, performance.now() + Math.min(ms, MAX_PAUSE_MS));
      return change(ledger.pause(ms).then(follow));
    },
    succeeded(takenAt) {
      successes.push(takenAt);
    },
    limited: (takenAt) => change(report(takenAt)),
  };
}
