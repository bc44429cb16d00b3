import { setTimeout as sleep } from 'node:timers/promises';

/** Thrown when the wait for a turn would be longer than the caller can wait; nothing was taken from the budget. */
export class BudgetExceededError extends Error {
  readonly waitMs: number;

  constructor(waitMs: number) {
    super(`the request budget is used up for ${Math.ceil(waitMs)} ms`);
    this.name = 'BudgetExceededError';
    this.waitMs = waitMs;
  }
}

interface RequestBudget {
  /**
   * Waits for a turn, in order of arrival.
   * @throws BudgetExceededError at once when the wait would be longer than `maxWaitMs`; the signal's AbortError when aborted.
   */
  acquire(signal: AbortSignal, maxWaitMs: number): Promise<void>;
  /** Nobody gets a turn for this long: the venue asked for a pause. */
  pause(ms: number): void;
}

/** A token bucket of one host: `perSecond` turns a second on average, at most `burst` at once. */
export function createRequestBudget(options: { perSecond: number; burst: number }): RequestBudget {
  const intervalMs = 1000 / options.perSecond;
  const toleranceMs = (options.burst - 1) * intervalMs;
  let nextFreeAt = 0;
  let pausedUntil = 0;
  return {
    async acquire(signal, maxWaitMs) {
      signal.throwIfAborted();
      const now = performance.now();
      const turn = Math.max(nextFreeAt, now);
      const waitMs = Math.max(turn - toleranceMs, pausedUntil) - now;
      if (waitMs > maxWaitMs) throw new BudgetExceededError(waitMs);
      nextFreeAt = turn + intervalMs;
      if (waitMs > 0) await sleep(waitMs, undefined, { signal });
    },
    pause(ms) {
      pausedUntil = Math.max(pausedUntil, performance.now() + ms);
    },
  };
}
