import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { createRequestBudget } from '../../../src/venues/request-budget.ts';

const signal = new AbortController().signal;
const now = () => performance.now();

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['performance', 'setTimeout', 'clearTimeout'] });
});
afterEach(() => {
  vi.useRealTimers();
});

/** A budget after a while of use at its full rate, so without spare turns. */
function budgetOf(perSecond: number, burst = 1) {
  vi.advanceTimersByTime(1_000);
  return createRequestBudget({ perSecond, burst });
}

/** One refusal of a request that is sent now. */
function refuse(budget: ReturnType<typeof createRequestBudget>) {
  vi.advanceTimersByTime(1);
  budget.limited(now());
}

describe('the request rate', () => {
  it('halves after a refusal, and gives the next turns at the new pace without a burst', async () => {
    const budget = budgetOf(10, 10);
    refuse(budget);
    expect(budget.perSecond()).toBe(5);
    await expect(budget.acquire(signal, 0)).rejects.toMatchObject({ waitMs: 200 });
  });

  it('halves once when a burst of requests is refused', () => {
    const budget = budgetOf(10);
    const sentAt = [now(), now() + 5, now() + 10];
    vi.advanceTimersByTime(50);
    for (const at of sentAt) budget.limited(at);
    expect(budget.perSecond()).toBe(5);
    refuse(budget);
    expect(budget.perSecond()).toBe(2.5);
  });

  it('does not rise when a request from before the last decrease succeeds', () => {
    const budget = budgetOf(10);
    const sentAt = now();
    refuse(budget);
    budget.succeeded(sentAt);
    expect(budget.perSecond()).toBe(5);
  });

  it('stops at a tenth of the configured rate', () => {
    const budget = budgetOf(10);
    for (let refused = 0; refused < 20; refused += 1) refuse(budget);
    expect(budget.perSecond()).toBe(1);
  });

  it('returns to the configured rate after a minute of successes at full pace', async () => {
    const budget = budgetOf(10);
    for (let refused = 0; refused < 20; refused += 1) refuse(budget);
    const endsAt = now() + 60_000;
    while (now() < endsAt) {
      const turn = budget.acquire(signal, 60_000);
      await vi.advanceTimersToNextTimerAsync();
      await turn;
      budget.succeeded(now());
    }
    expect(budget.perSecond()).toBe(10);
  });

  it('reports its start and each change with the previous rate', () => {
    const onRate = vi.fn();
    const budget = createRequestBudget({ perSecond: 10, burst: 1, onRate });
    refuse(budget);
    budget.succeeded(now() + 1);
    expect(onRate.mock.calls).toEqual([
      [10, 0],
      [5, 10],
      [expect.closeTo(5 + 10 / 60 / 5), 5],
    ]);
  });

  it('slows waiting callers down in their order', async () => {
    const budget = budgetOf(10);
    const given: string[] = [];
    await budget.acquire(signal, 0);
    for (const name of ['a', 'b']) void budget.acquire(signal, 60_000).then(() => given.push(name));
    refuse(budget);
    await vi.advanceTimersByTimeAsync(199);
    expect(given).toEqual([]);
    await vi.advanceTimersByTimeAsync(1);
    expect(given).toEqual(['a']);
    await vi.advanceTimersByTimeAsync(200);
    expect(given).toEqual(['a', 'b']);
  });

  it('refuses waiting callers at once when a slower rate or a pause makes them late', async () => {
    const budget = budgetOf(10);
    await budget.acquire(signal, 0);
    const late = budget.acquire(signal, 150);
    const slow = budget.acquire(signal, 1_000);
    const refused = expect(late).rejects.toMatchObject({ waitMs: 200 });
    refuse(budget);
    await refused;
    const paused = expect(slow).rejects.toMatchObject({ name: 'BudgetExceededError' });
    budget.pause(5_000);
    await paused;
  });

  it('gives one turn at the end of a pause, and the others at its pace', async () => {
    const budget = budgetOf(10, 10);
    budget.pause(1_000);
    let given = 0;
    for (let asked = 0; asked < 5; asked += 1) void budget.acquire(signal, 60_000).then(() => (given += 1));
    await vi.advanceTimersByTimeAsync(999);
    expect(given).toBe(0);
    await vi.advanceTimersByTimeAsync(1);
    expect(given).toBe(1);
    await vi.advanceTimersByTimeAsync(200);
    expect(given).toBe(3);
  });

  it('ends a pause after ten minutes when the venue asks for more', async () => {
    const budget = budgetOf(10);
    budget.pause(86_400_000);
    await expect(budget.acquire(signal, 0)).rejects.toMatchObject({ waitMs: 600_000 });
  });

  it('gives the turn of an aborted caller to the next one', async () => {
    const budget = budgetOf(10);
    await budget.acquire(signal, 0);
    const controller = new AbortController();
    const aborted = expect(budget.acquire(controller.signal, 60_000)).rejects.toMatchObject({ name: 'AbortError' });
    const next = budget.acquire(signal, 60_000);
    controller.abort();
    await aborted;
    await vi.advanceTimersByTimeAsync(100);
    await next;
    expect(now() % 1_000).toBe(100);
  });
});

describe('the request rate under any sequence of events', () => {
  const step = fc.oneof(
    { weight: 4, arbitrary: fc.record({ kind: fc.constant('wait' as const), ms: fc.integer({ min: 1, max: 400 }) }) },
    { weight: 6, arbitrary: fc.record({ kind: fc.constant('ask' as const), ms: fc.integer({ min: 0, max: 3_000 }) }) },
    {
      weight: 3,
      arbitrary: fc.record({ kind: fc.constant('succeed' as const), ms: fc.integer({ min: 0, max: 500 }) }),
    },
    { weight: 1, arbitrary: fc.record({ kind: fc.constant('limit' as const), ms: fc.integer({ min: 0, max: 500 }) }) },
    {
      weight: 1,
      arbitrary: fc.record({ kind: fc.constant('pause' as const), ms: fc.integer({ min: 1, max: 2_000 }) }),
    },
  );

  it('stays between floor and ceiling, gives no more turns than the ceiling allows, and answers every caller', async () => {
    const rates = fc.integer({ min: 1, max: 400 }).map((tenths) => tenths / 10);
    await fc.assert(
      fc.asyncProperty(
        rates,
        fc.integer({ min: 1, max: 8 }),
        fc.array(step, { maxLength: 80 }),
        async (ceiling, burst, steps) => {
          const budget = createRequestBudget({ perSecond: ceiling, burst });
          const turns: { at: number; pausedUntil: number; latestAt: number }[] = [];
          const refusals: string[] = [];
          const callers: Promise<unknown>[] = [];
          let pausedUntil = 0;
          for (const { kind, ms } of steps) {
            if (kind === 'wait') await vi.advanceTimersByTimeAsync(ms);
            if (kind === 'succeed') budget.succeeded(now() - ms);
            if (kind === 'limit') budget.limited(now() - ms);
            if (kind === 'pause') {
              budget.pause(ms);
              pausedUntil = Math.max(pausedUntil, now() + ms);
            }
            if (kind === 'ask') {
              const latestAt = now() + ms;
              const given = () => {
                turns.push({ at: now(), pausedUntil, latestAt });
              };
              const refused = (error: Error) => {
                refusals.push(error.name);
              };
              callers.push(budget.acquire(signal, ms).then(given, refused));
            }
            // Lets an immediate turn be recorded before the next event.
            await vi.advanceTimersByTimeAsync(0);
            expect(budget.perSecond()).toBeLessThanOrEqual(ceiling);
            expect(budget.perSecond()).toBeGreaterThanOrEqual(ceiling / 10);
          }
          await vi.advanceTimersByTimeAsync(20_000);
          await Promise.all(callers);
          expect(turns.length + refusals.length).toBe(callers.length);
          for (const name of refusals) expect(name).toBe('BudgetExceededError');
          for (const { at, pausedUntil: pauseEnd, latestAt } of turns) {
            expect(at).toBeGreaterThanOrEqual(pauseEnd);
            // Timers have whole milliseconds.
            expect(at).toBeLessThanOrEqual(latestAt + 1);
          }
          for (let first = 0; first < turns.length; first += 1) {
            for (let last = first; last < turns.length; last += 1) {
              const allowed = burst + (((turns[last]?.at ?? 0) - (turns[first]?.at ?? 0)) * ceiling) / 1_000;
              expect(last - first + 1).toBeLessThanOrEqual(allowed + 1e-6);
            }
          }
        },
      ),
      { numRuns: 150 },
    );
  });
});
