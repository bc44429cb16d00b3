import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { FailedOutcome } from '../../../src/webhooks/attempt.ts';
import { decideRetry } from '../../../src/webhooks/retry-policy.ts';
import { ATTEMPT_ERROR_CODES } from '../../support/attempt-error-codes.ts';

const DEFAULT_SCHEDULE = [5, 30, 120, 600, 1800, 7200, 18000, 36000, 36000];
const NO_JITTER = () => 0.5;

function failed(more: Partial<FailedOutcome> = {}): FailedOutcome {
  return { kind: 'failed', errorCode: 'http_status', statusCode: 500, durationMs: 3, ...more };
}

function delayAfter(outcome: FailedOutcome, plannedSeconds: number, random: () => number): number {
  const decision = decideRetry({ outcome, attemptNumber: 1, schedule: [plannedSeconds], random });
  if (decision.state !== 'retry') throw new Error(`decided ${decision.state}`);
  return decision.delaySeconds;
}

describe('decideRetry', () => {
  const schedule = DEFAULT_SCHEDULE;

  it('delivers on a 2xx', () => {
    const outcome = {
      kind: 'delivered',
      statusCode: 204,
      durationMs: 1,
      responseExcerpt: new Uint8Array(),
      responseHeaders: { headers: [], removed: 0, omitted: 0 },
    } as const;
    expect(decideRetry({ outcome, attemptNumber: 1, schedule, random: NO_JITTER })).toEqual({ state: 'delivered' });
  });

  it('follows the schedule to its end: nine delays, ten attempts', () => {
    const decisions = DEFAULT_SCHEDULE.map((_, index) =>
      decideRetry({ outcome: failed(), attemptNumber: index + 1, schedule, random: NO_JITTER }),
    );
    expect(decisions).toEqual(DEFAULT_SCHEDULE.map((delaySeconds) => ({ state: 'retry', delaySeconds })));
    expect(decideRetry({ outcome: failed(), attemptNumber: 10, schedule, random: NO_JITTER })).toEqual({
      state: 'failed',
      reason: 'http_status',
    });
  });

  it('fails at once on 410 and requests a pause of the subscription', () => {
    const outcome = failed({ statusCode: 410 });
    expect(decideRetry({ outcome, attemptNumber: 1, schedule, random: NO_JITTER })).toEqual({
      state: 'failed',
      reason: 'gone',
      pauseSubscription: 'gone',
    });
  });

  it.each([400, 401, 404, 409, 429, 500, 503])('retries on %i', (statusCode) =>
    expect(decideRetry({ outcome: failed({ statusCode }), attemptNumber: 1, schedule, random: NO_JITTER }).state).toBe(
      'retry',
    ),
  );

  it.each(ATTEMPT_ERROR_CODES.filter((code) => code !== 'invalid_url'))('retries on %s', (errorCode) => {
    const outcome: FailedOutcome = { kind: 'failed', errorCode, durationMs: 3 };
    expect(decideRetry({ outcome, attemptNumber: 1, schedule, random: NO_JITTER }).state).toBe('retry');
  });

  it('fails at once for a malformed URL', () => {
    const outcome: FailedOutcome = { kind: 'failed', errorCode: 'invalid_url', durationMs: 0 };
    expect(decideRetry({ outcome, attemptNumber: 1, schedule, random: NO_JITTER })).toEqual({
      state: 'failed',
      reason: 'invalid_url',
    });
  });

  it('allows a blocked address three attempts, or fewer if the maximum is lower', () => {
    const outcome: FailedOutcome = { kind: 'failed', errorCode: 'blocked_address', durationMs: 0 };
    const state = (attemptNumber: number, maxAttempts = 10) =>
      decideRetry({ outcome, attemptNumber, schedule, maxAttempts, random: NO_JITTER }).state;
    expect([1, 2, 3, 4].map((attempt) => state(attempt))).toEqual(['retry', 'retry', 'failed', 'failed']);
    expect(state(1, 1)).toBe('failed');
  });

  it('shortens the schedule to maxAttempts and never extends it', () => {
    const state = (attemptNumber: number, maxAttempts: number) =>
      decideRetry({ outcome: failed(), attemptNumber, schedule: [1, 1], maxAttempts, random: NO_JITTER }).state;
    expect(state(1, 1)).toBe('failed');
    expect(state(1, 2)).toBe('retry');
    expect(state(2, 2)).toBe('failed');
    expect(state(3, 99)).toBe('failed');
  });
});

describe('a retry delay', () => {
  it('varies by a fifth in both directions and is at least a second', () => {
    expect(delayAfter(failed(), 100, () => 0)).toBeCloseTo(80);
    expect(delayAfter(failed(), 100, () => 0.5)).toBeCloseTo(100);
    expect(delayAfter(failed(), 100, () => 0.999999)).toBeCloseTo(120, 3);
    expect(delayAfter(failed(), 1, () => 0)).toBe(1);
    expect(delayAfter(failed(), 0, () => 0.9)).toBe(1);
  });

  it.each([
    [60, 5, 60],
    [2, 5, 5],
    [0, 5, 5],
    [3600, 5, 3600],
    [9999, 5, 3600],
    [1e9, 5, 3600],
    [9999, 7200, 9999],
    [1e9, 7200, 14400],
    [12.5, 5, 12.5],
  ])('follows a Retry-After of %d on a planned %d s: %d s', (retryAfterSeconds, planned, expected) => {
    for (const statusCode of [429, 503]) {
      expect(delayAfter(failed({ statusCode, retryAfterSeconds }), planned, () => 0)).toBeCloseTo(expected);
    }
  });

  it('follows the plan without a Retry-After, even on 429 and 503', () => {
    for (const statusCode of [429, 503]) expect(delayAfter(failed({ statusCode }), 5, NO_JITTER)).toBe(5);
  });

  it('uses Retry-After on 429 and 503 only', () => {
    for (const statusCode of [500, 502, 504, 404, 301]) {
      expect(delayAfter(failed({ statusCode, retryAfterSeconds: 1000 }), 5, NO_JITTER)).toBe(5);
    }
  });

  const delays = fc.double({ min: 0, max: 50_000, noNaN: true });
  const random = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true });

  it('law: is within a fifth of the plan and at least one second', () => {
    fc.assert(
      fc.property(delays, random, (planned, r) => {
        const delay = delayAfter(failed(), planned, () => r);
        expect(delay).toBeGreaterThanOrEqual(Math.max(1, planned * 0.8 - 1e-9));
        expect(delay).toBeLessThanOrEqual(Math.max(1, planned * 1.2 + 1e-9));
      }),
    );
  });

  it('law: is never shorter than Retry-After up to its cap, nor longer than a fifth beyond it', () => {
    fc.assert(
      fc.property(delays, delays, random, (planned, retryAfterSeconds, r) => {
        const delay = delayAfter(failed({ statusCode: 429, retryAfterSeconds }), planned, () => r);
        const cap = Math.max(2 * planned, 3600);
        expect(delay).toBeGreaterThanOrEqual(Math.min(retryAfterSeconds, cap));
        expect(delay).toBeGreaterThanOrEqual(planned);
        expect(delay).toBeLessThanOrEqual(
          Math.max(1, Math.max(planned, Math.min(retryAfterSeconds, cap)) * 1.2) + 1e-6,
        );
      }),
    );
  });

  it('law: ends a delivery that always fails after exactly its attempts', () => {
    const outcomes = fc.record({
      errorCode: fc.constantFrom(...ATTEMPT_ERROR_CODES),
      statusCode: fc.constantFrom(301, 404, 410, 429, 500, 503),
      retryAfterSeconds: delays,
    });
    fc.assert(
      fc.property(
        fc.array(delays, { maxLength: 12 }),
        fc.integer({ min: 1, max: 15 }),
        outcomes,
        random,
        (...drawn) => {
          const [schedule, maxAttempts, details, r] = drawn;
          const outcome = failed(details);
          let attemptNumber = 1;
          const next = () => decideRetry({ outcome, attemptNumber, schedule, maxAttempts, random: () => r });
          while (next().state === 'retry') attemptNumber += 1;
          expect(next().state).toBe('failed');
          const gone = details.statusCode === 410 || details.errorCode === 'invalid_url';
          const blocked = details.errorCode === 'blocked_address' ? 3 : Number.POSITIVE_INFINITY;
          expect(attemptNumber).toBe(gone ? 1 : Math.min(schedule.length + 1, maxAttempts, blocked));
        },
      ),
    );
  });
});
