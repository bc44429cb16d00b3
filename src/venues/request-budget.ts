import { asError } from '../domain/values/errors.ts';

/** Thrown when the wait for a turn would be longer than the caller can wait; the budget stays as it was. */
export class BudgetExceededError extends Error {
  readonly waitMs: number;

  constructor(waitMs: number) {
    super(`the request budget is used up for ${Math.ceil(waitMs)} ms`);
    this.name = 'BudgetExceededError';
    this.waitMs = waitMs;
  }
}

export interface RequestBudget {
  /** The present rate, requests per second. */
  perSecond(): number;
  /**
   * Waits for a turn, in order of arrival.
   * @throws BudgetExceededError when the wait is, or becomes, longer than `maxWaitMs`; the reason of the signal when aborted.
   */
  acquire(signal: AbortSignal, maxWaitMs: number): Promise<void>;
  /** Gives no turn for this long, at most ten minutes, because the venue asked for a pause. */
  pause(ms: number): void;
  /** The venue answered a request that was sent at this moment, on the clock of `performance.now()`. */
  succeeded(sentAt: number): void;
  /** The venue refused a request that was sent at this moment, because there were too many. */
  limited(sentAt: number): void;
}

interface BudgetOptions {
  /** The ceiling and initial rate. */
  perSecond: number;
  /** Turns that may be taken at once after a quiet time; shrinks with the rate. */
  burst: number;
  /** Called with the new rate and the one before; at the start with 0 before. */
  onRate?(perSecond: number, previous: number): void;
}

interface Waiter {
  latestAt: number;
  give(): void;
  refuse(error: Error): void;
}

/** A refusal halves the rate: four refusals find a limit of a tenth of the ceiling. */
const DECREASE = 0.5;
/** Below a tenth of the ceiling, refusals are an outage, and the breaker and the pauses of the venue deal with it. */
const FLOOR = 0.1;
/** Successive requests at the full rate raise it from zero to the ceiling in this time. */
const RECOVERY_SECONDS = 60;
/** The longest pause: a wrong header must not silence a venue for days. */
const MAX_PAUSE_MS = 10 * 60_000;
/** Turns are counted in binary fractions. */
const ROUNDING = 1e-9;

/**
 * The request rate of one host: a token bucket whose rate follows the venue's refusals. A refusal halves the rate, and successes raise it
 * by the same step per second up to the ceiling (additive increase, multiplicative decrease). Only requests sent after the last decrease
 * reflect the present rate, so a burst of refusals counts once.
 */
export function createRequestBudget(options: BudgetOptions): RequestBudget {
  const { perSecond: ceiling, burst, onRate } = options;
  const queue: Waiter[] = [];
  let rate = ceiling;
  let tokens = burst;
  let refilledAt = performance.now();
  let pausedUntil = Number.NEGATIVE_INFINITY;
  let slowedAt = Number.NEGATIVE_INFINITY;
  let timer: NodeJS.Timeout | undefined;
  onRate?.(rate, 0);

  function refill(now: number): void {
    const from = Math.max(refilledAt, pausedUntil);
    const capacity = Math.max(1, (burst * rate) / ceiling);
    if (now > from) tokens = Math.min(capacity, tokens + ((now - from) * rate) / 1000);
    refilledAt = now;
  }

  /** The wait of the turn after `ahead` others, right after a refill. */
  function waitMs(ahead: number, now: number): number {
    const missing = ahead + 1 - tokens;
    return Math.max(0, pausedUntil - now) + (missing > ROUNDING ? (missing / rate) * 1000 : 0);
  }

  function take(): void {
    tokens = Math.max(0, tokens - 1);
  }

  function giveTurns(): void {
    const now = performance.now();
    refill(now);
    while (queue.length > 0 && waitMs(0, now) === 0) {
      take();
      queue.shift()?.give();
    }
    schedule(now);
  }

  function schedule(now: number): void {
    clearTimeout(timer);
    if (queue.length > 0) timer = setTimeout(giveTurns, Math.ceil(waitMs(0, now)));
  }

  /** After a slowdown: waiters whose turn would now come too late fail at once. */
  function refuseLate(now: number): void {
    const waiting = queue.splice(0);
    for (const waiter of waiting) {
      const wait = waitMs(queue.length, now);
      if (now + wait <= waiter.latestAt) queue.push(waiter);
      else waiter.refuse(new BudgetExceededError(wait));
    }
    schedule(now);
  }

  function setRate(perSecond: number): void {
    const previous = rate;
    rate = Math.min(ceiling, Math.max(ceiling * FLOOR, perSecond));
    if (rate !== previous) onRate?.(rate, previous);
  }

  return {
    perSecond: () => rate,
    async acquire(signal, maxWaitMs) {
      signal.throwIfAborted();
      const now = performance.now();
      if (queue.length > 0) giveTurns();
      else refill(now);
      const wait = waitMs(queue.length, now);
      if (wait > maxWaitMs) throw new BudgetExceededError(wait);
      if (wait === 0) return take();
      await new Promise<void>((resolve, reject) => {
        const onAbort = () => {
          queue.splice(queue.indexOf(waiter), 1);
          reject(asError(signal.reason));
        };
        const waiter: Waiter = {
          latestAt: now + maxWaitMs,
          give() {
            signal.removeEventListener('abort', onAbort);
            resolve();
          },
          refuse(error) {
            signal.removeEventListener('abort', onAbort);
            reject(error);
          },
        };
        signal.addEventListener('abort', onAbort, { once: true });
        queue.push(waiter);
        schedule(now);
      });
    },
    pause(ms) {
      const now = performance.now();
      refill(now);
      pausedUntil = Math.max(pausedUntil, now + Math.min(ms, MAX_PAUSE_MS));
      // The pause ends with one turn and not with a burst.
      tokens = Math.min(tokens, 1);
      refuseLate(now);
    },
    succeeded(sentAt) {
      if (rate === ceiling || sentAt <= slowedAt) return;
      refill(performance.now());
      setRate(rate + ceiling / RECOVERY_SECONDS / rate);
    },
    limited(sentAt) {
      if (sentAt <= slowedAt) return;
      const now = performance.now();
      slowedAt = now;
      refill(now);
      tokens = 0;
      setRate(rate * DECREASE);
      refuseLate(now);
    },
  };
}
