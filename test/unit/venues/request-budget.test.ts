import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { BudgetExceededError, createRequestBudget } from '../../../src/venues/request-budget.ts';

const signal = new AbortController().signal;

describe('createRequestBudget', () => {
  beforeEach(() => {
    vi.useFakeTimers({ toFake: ['performance'] });
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  it('lets a burst through, then delays the next caller', async () => {
    const budget = createRequestBudget({ perSecond: 10, burst: 3 });
    for (let taken = 0; taken < 3; taken += 1) await budget.acquire(signal, 0);
    await expect(budget.acquire(signal, 0)).rejects.toMatchObject({ waitMs: 100 });
  });

  it('refills at its rate, and never beyond its burst', async () => {
    const budget = createRequestBudget({ perSecond: 10, burst: 2 });
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
    const budget = createRequestBudget({ perSecond: 10, burst: 1 });
    await budget.acquire(signal, 0);
    for (let refused = 0; refused < 5; refused += 1) {
      await expect(budget.acquire(signal, 50)).rejects.toMatchObject({ waitMs: 100 });
    }
  });

  it('gives no turn during a pause', async () => {
    const budget = createRequestBudget({ perSecond: 10, burst: 5 });
    budget.pause(2_000);
    budget.pause(1_000);
    await expect(budget.acquire(signal, 1_999)).rejects.toMatchObject({ waitMs: 2_000 });
    vi.advanceTimersByTime(2_000);
    await budget.acquire(signal, 0);
  });

  it('stops waiting when aborted', async () => {
    vi.useRealTimers();
    const budget = createRequestBudget({ perSecond: 0.01, burst: 1 });
    await budget.acquire(signal, 0);
    const controller = new AbortController();
    const waiting = budget.acquire(controller.signal, 1_000_000);
    controller.abort();
    await expect(waiting).rejects.toMatchObject({ name: 'AbortError' });
    await expect(budget.acquire(AbortSignal.abort(), 1_000_000)).rejects.toMatchObject({ name: 'AbortError' });
  });
});
