import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { createMemoryLedger, type RateLedger } from '../../../src/venues/http/rate-ledger.ts';
import { BudgetExceededError, createRequestBudget } from '../../../src/venues/http/request-budget.ts';

const signal = new AbortController().signal;
const open = (perSecond: number, burst: number) =>
  createRequestBudget(createMemoryLedger({ perSecond, burst }), perSecond, burst);

describe('createRequestBudget', () => {
  beforeEach(() => {
    vi.useFakeTimers({ toFake: ['performance'] });
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  it('lets a burst through, then delays the next caller', async () => {
    const budget = open(10, 3);
    for (let taken = 0; taken < 3; taken += 1) await budget.acquire(signal, 0);
    await expect(budget.acquire(signal, 0)).rejects.toMatchObject({ waitMs: 100 });
  });

  it('refills at its rate, and never beyond its burst', async () => {
    const budget = open(10, 2);
    await budget.acquire(signal, 0);
    await budget.acquire(signal, 0);
    vi.advanceTimersByTime(100);
    await budget.acquire(signal, 0);
    await expect(budget.acquire(signal, 0)).rejects.toBeInstanceOf(BudgetExceededError);
    vi.advanceTimersByTime(60_000);
    await budget.acquire(signal, 0);
    await budget.acquire(signal, 0);
    await expect(budget.acquire(signal, 0)).rejects.toBeInstanceOf(BudgetExceededError);
  });

  it('takes nothing when it refuses', async () => {
    const budget = open(10, 1);
    await budget.acquire(signal, 0);
    for (let refused = 0; refused < 5; refused += 1) {
      await expect(budget.acquire(signal, 50)).rejects.toMatchObject({ waitMs: 100 });
    }
  });

  it('gives no turn during a pause', async () => {
    const budget = open(10, 5);
    await budget.pause(2_000);
    await budget.pause(1_000);
    await expect(budget.acquire(signal, 1_999)).rejects.toMatchObject({ waitMs: 2_000 });
    vi.advanceTimersByTime(2_000);
    await budget.acquire(signal, 0);
  });

  it('stops waiting when aborted', async () => {
    vi.useRealTimers();
    const budget = open(0.01, 1);
    await budget.acquire(signal, 0);
    const controller = new AbortController();
    const waiting = budget.acquire(controller.signal, 1_000_000);
    controller.abort();
    await expect(waiting).rejects.toMatchObject({ name: 'AbortError' });
    await expect(budget.acquire(AbortSignal.abort(), 1_000_000)).rejects.toMatchObject({ name: 'AbortError' });
  });
});

describe('the calls of a ledger', () => {
  /** A ledger in memory that records the calls, and fails while `isAway`. */
  function spied(perSecond: number, burst: number) {
    const calls: string[] = [];
    const state = { isAway: false, slow: (): void => undefined };
    const memory = createMemoryLedger({ perSecond, burst });
    const call = <T>(name: string, run: () => Promise<T>) => {
      calls.push(name);
      return state.isAway ? Promise.reject(new Error('connect ECONNREFUSED')) : run();
    };
    const ledger: RateLedger = {
      take: (turns, ...of) => call(`take ${turns}`, () => memory.take(turns, ...of)),
      limited: (takenAt) => call('limited', () => memory.limited(takenAt)),
      pause: (ms) => call('pause', () => memory.pause(ms)),
      onSlowed: (listener) => {
        state.slow = listener;
      },
    };
    return { budget: createRequestBudget(ledger, perSecond, burst), memory, calls, state };
  }
  afterEach(() => {
    vi.useRealTimers();
  });
  const unavailable = { name: 'BudgetUnavailableError', message: 'the request budget is unavailable' };

  it('take the turns of a quarter second together on a fast host', async () => {
    const { budget, calls } = spied(40, 40);
    await Promise.all(Array.from({ length: 25 }, () => budget.acquire(new AbortController().signal, 0)));
    // The first caller does not wait for others.
    expect(calls).toEqual(['take 1', 'take 10', 'take 10', 'take 4']);
  });

  it('take two turns at a time on a slow host', async () => {
    const { budget, calls } = spied(3, 4);
    await Promise.all(Array.from({ length: 4 }, () => budget.acquire(signal, 0)));
    expect(calls).toEqual(['take 1', 'take 2', 'take 1']);
  });

  /** A host of three requests per second and two at once, whose turns are used up, and the times of the next callers, milliseconds from now. */
  async function usedUp(callers: readonly { maxWaitMs: number }[]) {
    vi.useFakeTimers({ toFake: ['performance', 'setTimeout', 'clearTimeout'] });
    const { budget, calls, memory } = spied(3, 2);
    for (let taken = 0; taken < 2; taken += 1) await budget.acquire(signal, 0);
    calls.length = 0;
    const startedMs = performance.now();
    const given: number[] = [];
    const waiting = callers.map(async ({ maxWaitMs }) => {
      await budget.acquire(signal, maxWaitMs);
      given.push(Math.floor((performance.now() - startedMs) / 10) * 10);
    });
    return { calls, memory, given, all: () => Promise.all(waiting) };
  }

  it('wait for two turns while callers wait for more', async () => {
    const { calls, given, all } = await usedUp(Array.from({ length: 6 }, () => ({ maxWaitMs: 10_000 })));
    await vi.advanceTimersByTimeAsync(2_010);
    await all();
    expect(calls).toEqual(['take 2', 'take 2', 'take 2']);
    // The pace stays that of the host.
    expect(given).toEqual([660, 660, 1_330, 1_330, 2_000, 2_000]);
  });

  it('wait for one turn when its caller cannot wait for the other', async () => {
    const { given, all } = await usedUp([{ maxWaitMs: 340 }, { maxWaitMs: 10_000 }]);
    await vi.advanceTimersByTimeAsync(700);
    await all();
    expect(given).toEqual([330, 660]);
  });

  it('wait for one turn when another process could take the turn that its caller needs', async () => {
    const { memory, given, all } = await usedUp([{ maxWaitMs: 600 }, { maxWaitMs: 10_000 }]);
    await vi.advanceTimersByTimeAsync(400);
    await memory.take(1, []);
    await vi.advanceTimersByTimeAsync(1_000);
    await all();
    expect(given).toEqual([330, 660]);
  });

  it('wait for one turn at the end of a pause', async () => {
    vi.useFakeTimers({ toFake: ['performance', 'setTimeout', 'clearTimeout'] });
    const { budget, calls } = spied(3, 2);
    await budget.pause(1_000);
    calls.length = 0;
    const waiting = [1, 2, 3].map(() => budget.acquire(signal, 10_000));
    await vi.advanceTimersByTimeAsync(1_100);
    expect(calls).toEqual(['take 2']);
    await Promise.race(waiting);
    await vi.advanceTimersByTimeAsync(700);
    await Promise.all(waiting);
    expect(calls).toEqual(['take 2', 'take 2']);
  });

  it('wait for one turn after the bucket had no room for two', async () => {
    const { calls, memory, given, all } = await usedUp(Array.from({ length: 3 }, () => ({ maxWaitMs: 10_000 })));
    await vi.advanceTimersByTimeAsync(660);
    // Another process was faster.
    await memory.take(1, []);
    await vi.advanceTimersByTimeAsync(1_000);
    await all();
    expect(calls).toEqual(['take 2', 'take 2', 'take 1']);
    expect(given).toEqual([660, 1_000, 1_330]);
  });

  it('reserve turns for as many callers as came in the last seconds, at most half of a burst', async () => {
    vi.useFakeTimers({ toFake: ['performance'] });
    const { budget, calls, memory } = spied(10, 10);
    for (let asked = 0; asked < 5; asked += 1) {
      await budget.acquire(signal, 0);
      vi.advanceTimersByTime(1_000);
    }
    // The second take reserves a turn, and the fourth caller finds two callers of the last seconds.
    expect(calls).toEqual(['take 1', 'take 1', 'take 1']);
    for (let asked = 0; asked < 60; asked += 1) {
      await budget.acquire(signal, 0);
      vi.advanceTimersByTime(200);
    }
    // Five reserved turns and one of the caller.
    expect(calls).toHaveLength(13);
    expect((await memory.take(10, [])).granted).toBeGreaterThanOrEqual(5);
  });

  it('use no reserved turn after five seconds, after a slower rate and after a pause', async () => {
    vi.useFakeTimers({ toFake: ['performance'] });
    const { budget, calls, state } = spied(10, 10);
    const fill = async () => {
      calls.length = 0;
      for (let asked = 0; asked < 3; asked += 1) await budget.acquire(signal, 0);
      expect(calls).toEqual(['take 1', 'take 1']);
    };
    const spoilers = [
      () => vi.advanceTimersByTime(5_000),
      () => state.slow(),
      async () => {
        await budget.pause(1_000);
        vi.advanceTimersByTime(1_000);
      },
    ];
    for (const spoil of spoilers) {
      vi.advanceTimersByTime(60_000);
      await fill();
      await budget.acquire(signal, 0);
      calls.length = 0;
      await spoil();
      await budget.acquire(signal, 0);
      expect(calls).toContain('take 1');
    }
  });

  it('reserve nothing while the rate is slowed', async () => {
    vi.useFakeTimers({ toFake: ['performance'] });
    const { budget, calls } = spied(10, 10);
    await budget.limited(await budget.acquire(signal, 0));
    calls.length = 0;
    for (let asked = 0; asked < 4; asked += 1) {
      vi.advanceTimersByTime(1_000);
      await budget.acquire(signal, 0);
    }
    expect(calls).toEqual(['take 1', 'take 1', 'take 1', 'take 1']);
  });

  it('take no turn for a caller that waits for a known pause', async () => {
    const { budget, calls } = spied(10, 10);
    await budget.pause(60_000);
    await expect(budget.acquire(signal, 1_000)).rejects.toBeInstanceOf(BudgetExceededError);
    expect(calls).toEqual(['pause']);
  });

  it('fail the callers while the ledger does not answer, and serve later ones', async () => {
    const { budget, state } = spied(10, 10);
    state.isAway = true;
    const failing = [budget.acquire(signal, 1_000), budget.acquire(signal, 1_000)];
    for (const call of failing) await expect(call).rejects.toMatchObject(unavailable);
    state.isAway = false;
    await budget.acquire(signal, 0);
  });

  it('report a refusal later when the ledger did not answer', async () => {
    const { budget, memory, state } = spied(10, 10);
    const takenAt = await budget.acquire(signal, 0);
    state.isAway = true;
    await budget.limited(takenAt);
    await expect(budget.acquire(signal, 0)).rejects.toMatchObject(unavailable);
    state.isAway = false;
    await expect(budget.acquire(signal, 0)).rejects.toBeInstanceOf(BudgetExceededError);
    expect(await memory.take(0, [])).toMatchObject({ rate: 5 });
  });

  it('keep a pause in this process when the ledger did not answer', async () => {
    const { budget, calls, state } = spied(10, 10);
    state.isAway = true;
    await budget.pause(60_000);
    state.isAway = false;
    await expect(budget.acquire(signal, 1_000)).rejects.toBeInstanceOf(BudgetExceededError);
    expect(calls).toEqual(['pause']);
  });

  it('keep a pause in this process when a take of before it is answered later', async () => {
    const { budget, calls, state } = spied(10, 10);
    const taken = budget.acquire(signal, 0);
    state.isAway = true;
    await Promise.all([budget.pause(60_000), taken]);
    state.isAway = false;
    await expect(budget.acquire(signal, 1_000)).rejects.toBeInstanceOf(BudgetExceededError);
    expect(calls).toEqual(['take 1', 'pause']);
  });

  it('leave the turn of a caller that aborted to the next caller', async () => {
    const { budget, calls } = spied(0.01, 1);
    const controller = new AbortController();
    const aborted = budget.acquire(controller.signal, 0);
    controller.abort();
    await expect(aborted).rejects.toMatchObject({ name: 'AbortError' });
    await budget.acquire(signal, 0);
    expect(calls).toEqual(['take 1']);
  });

  it('leave no turn of a caller that aborted to a caller after a slower rate of another process', async () => {
    const { budget, calls, state } = spied(10, 2);
    const controller = new AbortController();
    const aborted = budget.acquire(controller.signal, 0);
    controller.abort();
    await expect(aborted).rejects.toMatchObject({ name: 'AbortError' });
    // The take ends after its caller.
    await vi.waitFor(() => expect(calls).toEqual(['take 1']));
    state.slow();
    await budget.acquire(signal, 0);
    expect(calls).toEqual(['take 1', 'take 1']);
  });
});
