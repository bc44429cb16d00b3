import {
  MAX_PAUSE_MS,
  RATE_DECREASE,
  RATE_FLOOR,
  RATE_RECOVERY_SECONDS,
  RESERVE_MS,
  RESERVED_SHARE,
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

/** Turns for requests after those that wait. They may be used for `RESERVE_MS`, unless the budget slows down or pauses meanwhile. */
export interface ReserveRequest {
  most: number;
  /** The take with the last reserve of this client, all of whose turns were used, or given up, so long ago. */
  ended?: { at: number; agoMs: number };
}

/**
 * The account of one budget: its rate, its turns and its pause. Several processes may share it. Every method may reject; the ledger then
 * logs the reason.
 */
export interface RateLedger {
  /**
   * Grants at most this many turns. `successes` are the moments (`at`) of the takes whose requests the host has answered since the last
   * call. Turns are reserved at the full rate only, from those that are left.
   */
  take(
    turns: number,
    successes: readonly number[],
    reserve?: ReserveRequest,
  ): Promise<RateState & { granted: number; reserved: number }>;
  /** The host refused a request with a turn of this take, because there were too many. */
  limited(takenAt: number): Promise<RateState>;
  /** Gives no turn for this long, at most ten minutes, because the host asked for a pause. */
  pause(ms: number): Promise<RateState>;
  /** Calls the listener when another client has slowed the budget down or paused it, or may have done so unnoticed. */
  onSlowed?(listener: () => void): void;
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
 * reflect the present rate, so a burst of refusals counts once. Turns in the bucket and reserved ones together never exceed the burst: the
 * bucket refills to what is not reserved.
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
  /** The take of each reserved turn. A bucket that is as old as a full refill does not depend on what was reserved before it. */
  let reserves: number[] = [];
  const forgottenAfterMs = RESERVE_MS + (burst / ceiling) * 1000;

  function refill(ended?: ReserveRequest['ended']): number {
    const at = now();
    const elapsedMs = Math.max(0, at - Math.max(refilledAt, pausedUntil));
    const endedMs = Math.min(elapsedMs, ended?.agoMs ?? 0);
    const known = reserves.filter((takenAt) => takenAt >= at - forgottenAfterMs);
    reserves = known.filter((takenAt) => takenAt !== ended?.at);
    const filled = (before: number, ms: number, reserved: number) =>
      Math.min(Math.max(1, (burst * rate) / ceiling - reserved), before + (ms * rate) / 1000);
    tokens = filled(filled(tokens, elapsedMs - endedMs, known.length), endedMs, reserves.length);
    refilledAt = at;
    return at;
  }

  function stateAt(at: number): RateState {
    const missing = 1 - tokens;
    const refillMs = missing > TURN_ROUNDING ? (missing / rate) * 1000 : 0;
    return { rate, waitMs: Math.max(0, pausedUntil - at) + refillMs, at };
  }

  return {
    async take(turns, successes, reserve) {
      const at = refill(reserve?.ended);
      const counted = successes.filter((takenAt) => takenAt > slowedAt).length;
      // The square grows by the same step with each success, so the rate grows by the same step per second of requests at full pace.
      if (counted > 0)
        rate = Math.min(ceiling, Math.sqrt(rate * rate + ((2 * ceiling) / RATE_RECOVERY_SECONDS) * counted));
      const granted = pausedUntil > at ? 0 : Math.min(turns, Math.floor(tokens + TURN_ROUNDING));
      tokens = Math.max(0, tokens - granted);
      const most = Math.min(reserve?.most ?? 0, Math.floor(burst * RESERVED_SHARE + TURN_ROUNDING) - reserves.length);
      const isWhole = rate === ceiling && pausedUntil <= at;
      const reserved = isWhole ? Math.max(0, Math.min(most, Math.floor(tokens + TURN_ROUNDING))) : 0;
      tokens = Math.max(0, tokens - reserved);
      reserves.push(...Array<number>(reserved).fill(at));
      return { ...stateAt(at), granted, reserved };
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
