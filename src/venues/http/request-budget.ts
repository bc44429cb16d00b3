import { asError } from '../../domain/values/errors.ts';
import { MAX_PAUSE_MS, RESERVE_MS } from '../../domain/values/request-rate.ts';
import { VenueError } from '../errors.ts';
import type { RateLedger, RateState, ReserveRequest } from './rate-ledger.ts';

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

/** One call of the ledger takes the turns of this time at most, but two: the other processes need turns too. */
const SHARE_SECONDS = 0.25;
const LEAST_SHARE = 2;
/** As many turns are reserved as callers came within `RESERVE_MS` of this time. */
const USES_MS = 6 * RESERVE_MS;

/** Turns of the take `at` for later callers. */
interface Reserve {
  at: number;
  left: number;
  /** No turn is used after this moment; earlier when they are used up or dropped. */
  endsAt: number;
}

/**
 * The queue of callers before a ledger. Callers that wait together share a call of the ledger: while the budget is used up, it waits for
 * the turns of several of them. The last of them also reserves turns for as many callers as came lately, so that a request costs no call of its
 * own. A pause or a slower rate, also of another process, drops what is reserved: the next caller asks the ledger.
 * @param burst The turns that the ledger gives at once after a quiet time.
 */
export function createRequestBudget(ledger: RateLedger, perSecond: number, burst = 1): RequestBudget {
  const queue: Waiter[] = [];
  /** Takes of turns whose callers aborted. */
  const spare: number[] = [];
  const successes: number[] = [];
  /** The last reserve: it stays until the ledger knows that it has ended. */
  let reserve: Reserve | undefined;
  /** When turns were dropped: a take that began before may have turns of the former state for later callers. */
  let droppedAt = Number.NEGATIVE_INFINITY;
  /** When the last callers got their turns. */
  let uses: number[] = [];
  /** The latest take that was refused while the ledger did not answer. */
  let unreported: number | undefined;
  let rate = perSecond;
  /** The ledger has no turn before this moment. */
  let nextAt = Number.NEGATIVE_INFINITY;
  /** The end of the pause that the venue asked this process for. */
  let pausedUntil = Number.NEGATIVE_INFINITY;
  /** Turns do not gather before this moment: the reserve of another process limits them, or a pause ends. */
  let gathersAt = Number.NEGATIVE_INFINITY;
  let isGathering = false;
  let isAsking = false;
  let timer: NodeJS.Timeout | undefined;

  function used(takenAt: number): number {
    uses.push(performance.now());
    return takenAt;
  }

  /** A reserved turn. */
  function fromReserve(): number | undefined {
    const now = performance.now();
    if (!reserve || now >= reserve.endsAt) return undefined;
    reserve.left -= 1;
    if (reserve.left === 0) reserve.endsAt = now;
    return reserve.at;
  }

  function drop(): void {
    spare.length = 0;
    droppedAt = performance.now();
    if (reserve) reserve.endsAt = Math.min(reserve.endsAt, droppedAt);
  }

  /** The turns for the callers after these. */
  function toReserve(turns: number, now: number): ReserveRequest {
    uses = uses.filter((at) => at > now - USES_MS);
    const most = turns === queue.length ? mostWithin(uses, RESERVE_MS) : 0;
    if (!reserve) return { most };
    reserve.endsAt = Math.min(reserve.endsAt, now);
    return { most, ended: { at: reserve.at, agoMs: now - reserve.endsAt } };
  }

  async function ask(): Promise<void> {
    isAsking = true;
    try {
      while (queue.length > 0 && nextAt <= performance.now()) {
        if (unreported !== undefined) await report(unreported);
        const turns = share();
        const hasGathered = isGathering;
        isGathering = false;
        const askedAt = performance.now();
        const asked = toReserve(turns, askedAt);
        const { granted, reserved, at, ...state } = await ledger.take(turns, successes.splice(0), asked);
        for (let given = 0; given < granted; given += 1) {
          const waiter = queue.shift();
          if (waiter) waiter.give(used(at));
          else if (askedAt > droppedAt) spare.push(at);
        }
        if (hasGathered && granted < turns) gathersAt = askedAt + RESERVE_MS;
        const endsAt = askedAt > droppedAt ? askedAt + RESERVE_MS : droppedAt;
        reserve = reserved > 0 ? { at, left: reserved, endsAt } : undefined;
        serveReserved();
        follow(state);
      }
    } catch (cause) {
      for (const waiter of queue.splice(0)) waiter.refuse(new BudgetUnavailableError(cause));
    }
    isAsking = false;
    schedule();
  }

  /** Callers that came during the take. */
  function serveReserved(): void {
    while (queue.length > 0) {
      const at = fromReserve();
      if (at === undefined) return;
      queue.shift()?.give(used(at));
    }
  }

  /** The callers that the next call serves. */
  function share(): number {
    return Math.min(queue.length, Math.max(Math.min(burst, LEAST_SHARE), Math.floor(rate * SHARE_SECONDS), 1));
  }

  /**
   * When the turns of all of them are there. They do not gather when one of them could not wait for one turn more, which another process can
   * take meanwhile, nor at a slower rate, whose bucket has no room for them.
   */
  function askAt(): number {
    if (rate < perSecond || nextAt < gathersAt) return nextAt;
    const first = queue.slice(0, Math.min(share(), burst));
    const allAt = Math.max(nextAt, performance.now()) + ((first.length - 1) / rate) * 1000;
    return first.every(({ latestAt }) => latestAt > allAt + 1000 / rate) ? allAt : nextAt;
  }

  function schedule(): void {
    clearTimeout(timer);
    if (isAsking || queue.length === 0) return;
    const now = performance.now();
    const at = askAt();
    isGathering = at > Math.max(nextAt, now);
    if (at <= now) return void ask();
    // A timer may fire a part of a millisecond early.
    timer = setTimeout(ask, Math.ceil(at - now) + (isGathering ? 1 : 0));
  }

  /** The wait of the turn after `ahead` others. */
  function waitAfter(waitMs: number, ahead: number): number {
    return waitMs + (ahead / rate) * 1000;
  }

  function endPauseWithOneTurn(): void {
    gathersAt = Math.max(gathersAt, nextAt + 1);
  }

  /** Callers whose turn would now come too late fail at once. */
  function follow(state: Pick<RateState, 'rate' | 'waitMs'>): void {
    const now = performance.now();
    rate = state.rate;
    // A take of before the pause may answer after it.
    const waitMs = Math.max(state.waitMs, pausedUntil - now);
    nextAt = now + waitMs;
    // Longer than the refill of a turn.
    if (waitMs > 1000 / rate + 1) endPauseWithOneTurn();
    if (waitMs === 0) return;
    for (const waiter of queue.splice(0)) {
      const wait = waitAfter(waitMs, queue.length);
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
    drop();
    await changing.catch(() => undefined);
    schedule();
  }

  ledger.onSlowed?.(drop);

  return {
    async acquire(signal, maxWaitMs) {
      signal.throwIfAborted();
      const left = queue.length === 0 ? (spare.shift() ?? fromReserve()) : undefined;
      if (left !== undefined) return used(left);
      const now = performance.now();
      const wait = waitAfter(nextAt - now, queue.length);
      if (nextAt > now && wait > maxWaitMs) throw new BudgetExceededError(wait);
      return new Promise<number>((resolve, reject) => {
        const onAbort = () => {
          queue.splice(queue.indexOf(waiter), 1);
          reject(asError(signal.reason));
          // The others need not wait for its turn.
          schedule();
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
      pausedUntil = Math.max(pausedUntil, performance.now() + Math.min(ms, MAX_PAUSE_MS));
      nextAt = Math.max(nextAt, pausedUntil);
      endPauseWithOneTurn();
      return change(ledger.pause(ms).then(follow));
    },
    succeeded(takenAt) {
      successes.push(takenAt);
    },
    limited: (takenAt) => change(report(takenAt)),
  };
}

/** The largest number of these moments, which ascend, within a time. */
function mostWithin(moments: readonly number[], ms: number): number {
  let first = 0;
  let most = 0;
  moments.forEach((at, index) => {
    while ((moments[first] ?? at) <= at - ms) first += 1;
    most = Math.max(most, index - first + 1);
  });
  return most;
}
