import {
  MAX_PAUSE_MS,
  RATE_DECREASE,
  RATE_FLOOR,
  RATE_RECOVERY_SECONDS,
  TURN_ROUNDING,
} from '../../domain/values/request-rate.ts';

/** The budget of a host after a change. */
export interface RateState {
  /** The present rate, requests per second. */
  rate: number;
  /** The wait for the next turn; 0 while one is left. */
  waitMs: number;
  /** The moment of the change, by the ledger's own clock. */
  at: number;
}

/**
 * The account of one budget: its rate, its turns and its pause. Several processes may share it. Every method may reject; the ledger then
 * logs the reason.
 */
export interface RateLedger {
  /**
   * Grants at most this many turns. `successes` are the moments (`at`) of the takes whose requests the host has answered since the last
   * call.
   */
  take(turns: number, successes: readonly number[]): Promise<RateState & { granted: number }>;
  /** The host refused a request with a turn of this take, because there were too many. */
  limited(takenAt: number): Promise<RateState>;
  /** Gives no turn for this long, at most ten minutes, because the host asked for a pause. */
  pause(ms: number): Promise<RateState>;
}

/** The budget of one client of a host, as its code or its configuration states it. */
export interface BudgetTerms {
  venue: string;
  host: string;
  /** The name of the budget: `host#client`. Clients with one key share the ledger. */
  key: string;
  /** The ceiling and initial rate, requests per second. */
  perSecond: number;
  /** Turns that may be taken at once after a quiet time; shrinks with the rate. */
  burst: number;
  /** A share of the budget of a client, which its requests use as well. */
  isShare?: true;
}

export type OpenLedger = (terms: BudgetTerms) => RateLedger;

/**
 * The ledger of one process: a token bucket whose rate follows the venue's refusals. A refusal halves the rate, and successes raise it
 * by the same step per second up to the ceiling (additive increase, multiplicative decrease). Only turns taken after the last decrease
 * reflect the present rate, so a burst of refusals counts once.
 */
export function createMemoryLedger(
  { perSecond: ceiling, burst }: Pick<BudgetTerms, 'perSecond' | 'burst'>,
  now: () => number = () => performance.now(),
): RateLedger {
  let rate = ceiling;
  let tokens = burst;
  let refilledAt = now();
  let pausedUntil = Number.NEGATIVE_INFINITY;
  let slowedAt = Number.NEGATIVE_INFINITY;

  function refill(): number {
    const at = now();
    const elapsedMs = Math.max(0, at - Math.max(refilledAt, pausedUntil));
    const capacity = Math.max(1, (burst * rate) / ceiling);
    tokens = Math.min(capacity, tokens + (elapsedMs * rate) / 1000);
    refilledAt = at;
    return at;
  }

  function stateAt(at: number): RateState {
    const missing = 1 - tokens;
    const refillMs = missing > TURN_ROUNDING ? (missing / rate) * 1000 : 0;
    return { rate, waitMs: Math.max(0, pausedUntil - at) + refillMs, at };
  }

  return {
    async take(turns, successes) {
      const at = refill();
      const counted = successes.filter((takenAt) => takenAt > slowedAt).length;
      // The square grows by the same step with each success, so the rate grows by the same step per second of requests at full pace.
      if (counted > 0)
        rate = Math.min(ceiling, Math.sqrt(rate * rate + ((2 * ceiling) / RATE_RECOVERY_SECONDS) * counted));
      const granted = pausedUntil > at ? 0 : Math.min(turns, Math.floor(tokens + TURN_ROUNDING));
      tokens = Math.max(0, tokens - granted);
      return { ...stateAt(at), granted };
    },
    async limited(takenAt) {
      const at = refill();
      if (takenAt > slowedAt) {
        slowedAt = at;
        tokens = 0;
        rate = Math.max(ceiling * RATE_FLOOR, rate * RATE_DECREASE);
      }
      return stateAt(at);
    },
    async pause(ms) {
      const at = refill();
      pausedUntil = Math.max(pausedUntil, at + Math.min(ms, MAX_PAUSE_MS));
      // The pause ends with one turn and not with a burst.
      tokens = Math.min(tokens, 1);
      return stateAt(at);
    },
  };
}
