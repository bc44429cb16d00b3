import type { AttemptErrorCode } from '../domain/webhooks/event.ts';
import type { AttemptOutcome, FailedOutcome } from './attempt.ts';

/** Each delay varies by this share of itself, so that a recovered receiver does not get all retries at once. */
const JITTER = 0.2;
const MIN_DELAY_SECONDS = 1;
/** Retry-After may extend a planned delay to twice itself or to this, whichever is longer. */
export const RETRY_AFTER_CAP_SECONDS = 3600;
/** A forbidden address may be a DNS mistake that is being repaired, but does not justify a day of attempts. */
const MAX_BLOCKED_ATTEMPTS = 3;

interface RetryInput {
  readonly outcome: AttemptOutcome;
  /** Number of the attempt that had this outcome, from 1. */
  readonly attemptNumber: number;
  readonly schedule: readonly number[];
  /** Fewer attempts than the schedule allows: 1 for a test event. */
  readonly maxAttempts?: number;
  /** Uniform in [0, 1), as Math.random. */
  readonly random: () => number;
}

type FailureReason = AttemptErrorCode | 'gone';

/** The next state of the delivery. `pauseSubscription` requests a pause of the subscription with that reason. */
export type RetryDecision =
  | { readonly state: 'delivered' }
  | { readonly state: 'retry'; readonly delaySeconds: number }
  | { readonly state: 'failed'; readonly reason: FailureReason; readonly pauseSubscription?: 'gone' };

/** The retry rules of docs/webhooks.md. Faults of this machine never get here: they throw, and no attempt is counted. */
export function decideRetry(input: RetryInput): RetryDecision {
  const { outcome, attemptNumber, schedule } = input;
  if (outcome.kind === 'delivered') return { state: 'delivered' };
  if (outcome.statusCode === 410) return { state: 'failed', reason: 'gone', pauseSubscription: 'gone' };
  const plannedSeconds = schedule[attemptNumber - 1];
  if (plannedSeconds === undefined || attemptNumber >= attemptLimit(outcome, input.maxAttempts)) {
    return { state: 'failed', reason: outcome.errorCode };
  }
  return { state: 'retry', delaySeconds: delaySeconds(outcome, plannedSeconds, input.random) };
}

function attemptLimit(outcome: FailedOutcome, maxAttempts = Number.POSITIVE_INFINITY): number {
  // A retry cannot repair a malformed URL; the owner changes the URL and retries manually.
  if (outcome.errorCode === 'invalid_url') return 1;
  return outcome.errorCode === 'blocked_address' ? Math.min(maxAttempts, MAX_BLOCKED_ATTEMPTS) : maxAttempts;
}

function delaySeconds(outcome: FailedOutcome, plannedSeconds: number, random: () => number): number {
  const { retryAfterSeconds, statusCode } = outcome;
  if (retryAfterSeconds !== undefined && (statusCode === 429 || statusCode === 503)) {
    const capSeconds = Math.max(2 * plannedSeconds, RETRY_AFTER_CAP_SECONDS);
    const askedSeconds = Math.min(Math.max(retryAfterSeconds, plannedSeconds), capSeconds);
    // Upwards only: the receiver would reject an earlier attempt.
    return Math.max(MIN_DELAY_SECONDS, askedSeconds * (1 + JITTER * random()));
  }
  return Math.max(MIN_DELAY_SECONDS, plannedSeconds * (1 - JITTER + 2 * JITTER * random()));
}
