import { setTimeout as delay } from 'node:timers/promises';

/** The limit of a wait in a test: a guard, and no promise of a time. A slow machine does not reach it. */
export const GUARD_MS = 300_000;

/**
 * Polls until the answer satisfies the condition, for state that only other processes can announce. On time-out it throws with the
 * last answer, so that a failure shows the actual state.
 */
export async function eventually<T>(
  ask: () => Promise<T>,
  satisfies: (answer: T) => boolean,
  options: { timeoutMs?: number; everyMs?: number } = {},
): Promise<T> {
  const { timeoutMs = GUARD_MS, everyMs = 100 } = options;
  const deadline = Date.now() + timeoutMs;
  for (;;) {
    const answer = await ask();
    if (satisfies(answer)) return answer;
    if (Date.now() > deadline) throw new Error(`not reached in ${timeoutMs} ms; last: ${JSON.stringify(answer)}`);
    await delay(everyMs);
  }
}
