import { describe, expect, it } from 'vitest';
import { createHistoryTurns } from '../../../src/venues/walk-back.ts';

const signal = new AbortController().signal;

describe('createHistoryTurns', () => {
  it('refuses a turn when the wait for a quarter of the rate would be too long', async () => {
    // A host of one request in 25 seconds: the share is one in a hundred.
    const takeTurn = createHistoryTurns('v', 'https://venue.test', 0.04);
    await takeTurn(signal);
    await expect(takeTurn(signal)).rejects.toMatchObject({ code: 'rate_limited', retryable: true });
    const error = await takeTurn(signal).catch((thrown: unknown) => thrown);
    expect((error as { retryAfterMs: number }).retryAfterMs).toBeGreaterThan(90_000);
  });

  it('ends the wait when the signal fires', async () => {
    const takeTurn = createHistoryTurns('v', 'https://venue.test', 0.4);
    await takeTurn(signal);
    const controller = new AbortController();
    const waiting = takeTurn(controller.signal);
    controller.abort();
    await expect(waiting).rejects.toMatchObject({ code: 'aborted' });
    await expect(takeTurn(AbortSignal.abort())).rejects.toMatchObject({ code: 'aborted' });
  });
});
