import { describe, expect, it } from 'vitest';
import type { Attempt, Delivery } from '../../../api/pages/console/answers.ts';
import { deliveryVerdict, verdictText } from '../../../api/pages/console/deliveries/verdict.ts';
import { ATTEMPT_ERROR_CODES } from '../../support/attempt-error-codes.ts';
import { textOf } from '../../support/html-text.ts';

const NOW = Date.parse('2026-03-01T12:00:00.000Z');
const ANSWERING: readonly string[] = ['http_status', 'redirect'];

function delivery(
  fields: Partial<Delivery> & Pick<Delivery, 'status'>,
  failures: readonly Partial<Attempt>[] = [],
): Parameters<typeof deliveryVerdict>[0] {
  const attemptLog = failures.map((failure, index) => ({
    attempt: index + 1,
    startedAt: new Date(NOW - 60_000).toISOString(),
    durationMs: 5,
    outcome: 'failed' as const,
    ...failure,
  }));
  const { errorCode: lastError, statusCode: lastStatusCode } = attemptLog.at(-1) ?? {};
  return {
    id: 'dlv_1',
    eventId: 'evt_1',
    eventType: 'price_alert',
    attempts: failures.length,
    createdAt: new Date(NOW - 90_000).toISOString(),
    ...(lastError !== undefined && { lastError }),
    ...(lastStatusCode !== undefined && { lastStatusCode }),
    ...fields,
    attemptLog,
  };
}

const said = (given: ReturnType<typeof delivery>) =>
  textOf(verdictText(deliveryVerdict(given, NOW)).toString()).replaceAll(' .', '.');
const answered = (statusCode: number) => ({ errorCode: 'http_status', statusCode });
const IN_4_MINUTES = new Date(NOW + 4 * 60_000).toISOString();

describe('deliveryVerdict', () => {
  it('counts the last attempts with the same failure, and names the next one', () => {
    const failures = [{ errorCode: 'timeout' }, answered(500), answered(500), answered(500)];
    expect(said(delivery({ status: 'pending', nextAttemptAt: IN_4_MINUTES }, failures))).toBe(
      'Your receiver answered 500 in the last 3 attempts. The next attempt is in 4 min. ' +
        'Look at the log of your receiver at the time of the attempt.',
    );
  });

  it.each([
    [[answered(404)], 'the only attempt'],
    [[answered(404), answered(404)], 'all 2 attempts'],
    [[answered(500), answered(404)], 'the last attempt'],
    [[answered(404), { outcome: 'delivered' as const }, answered(404)], 'the last attempt'],
  ])('states how many attempts failed alike: case %#', (failures, words) => {
    expect(said(delivery({ status: 'failed' }, failures))).toContain(
      `answered 404 in ${words}. No further attempt follows.`,
    );
  });

  it.each(ATTEMPT_ERROR_CODES)('has a reason and a next step for %s', (errorCode) => {
    const failure = { errorCode, ...(ANSWERING.includes(errorCode) && { statusCode: 302 }) };
    const { tone, advice } = deliveryVerdict(delivery({ status: 'failed' }, [failure]), NOW);
    expect([tone, typeof advice]).toEqual(['bad', 'string']);
    const text = said(delivery({ status: 'failed' }, [failure]));
    expect(text).toMatch(/^Your receiver (?!was not called)/);
    expect(text).toMatch(/Then press Send again\.$/);
    expect(text).not.toContain('undefined');
  });

  it.each([400, 401, 403, 404, 405, 410, 413, 422, 429, 500, 503])('has advice for the status %i', (status) => {
    expect(deliveryVerdict(delivery({ status: 'failed' }, [answered(status)]), NOW).advice?.length).toBeGreaterThan(20);
  });

  it('never shows an unknown error as a success, nor as a fault of the receiver', () => {
    const given = delivery({ status: 'failed', lastError: 'made_up', attempts: 1 });
    expect(deliveryVerdict(given, NOW).tone).toBe('bad');
    expect(said(given)).toContain('was not called: made_up');
  });

  it.each([
    [
      delivery({ status: 'pending', nextAttemptAt: IN_4_MINUTES }),
      'idle',
      'No attempt yet. The next attempt is in 4 min.',
    ],
    [
      delivery({ status: 'pending', nextAttemptAt: new Date(NOW - 1).toISOString() }),
      'idle',
      'The next attempt is due now.',
    ],
    [delivery({ status: 'pending' }), 'idle', 'waits for an earlier one of its key'],
    [
      delivery({ status: 'pending', lastError: 'internal_error', nextAttemptAt: IN_4_MINUTES }),
      'warn',
      'could not make the attempt: a fault on its side. The next attempt is in 4 min.',
    ],
    [delivery({ status: 'pending', attempts: 2, nextAttemptAt: IN_4_MINUTES }), 'idle', 'sent again'],
    [
      delivery({ status: 'delivered', lastStatusCode: 204, deliveredAt: new Date(NOW - 60_000).toISOString() }),
      'good',
      'accepted the event with 204, 30 s after the event was stored.',
    ],
    [delivery({ status: 'cancelled' }), 'warn', 'was cancelled, because the webhook was paused.'],
    [
      delivery({ status: 'cancelled' }, [{ errorCode: 'timeout' }]),
      'warn',
      'Before that, your receiver did not answer',
    ],
    [
      delivery({ status: 'failed', skipped: true }, [answered(500)]),
      'bad',
      'Later events of its key were sent without it.',
    ],
  ] as const)('states the case %#', (given, tone, words) => {
    expect(deliveryVerdict(given, NOW).tone).toBe(tone);
    expect(said(given)).toContain(words);
  });
});
