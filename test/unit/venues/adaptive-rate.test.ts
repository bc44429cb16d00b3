import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { createMemoryLedger, type RateLedger } from '../../../src/venues/http/rate-ledger.ts';
import { createRequestBudget } from '../../../src/venues/http/request-budget.ts';

type RequestBudget = ReturnType<typeof createRequestBudget>;

const signal = new AbortController().signal;
const now = () => performance.now();

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['performance', 'setTimeout', 'clearTimeout'] });
});
afterEach(() => {
  vi.useRealTimers();
});

function open(perSecond: number, burst = 1) {
  vi.advanceTimersByTime(1_000);
  const ledger = createMemoryLedger({ perSecond, burst });
  return { budget: createRequestBudget(ledger, perSecond, burst), ledger };
}

/** The present rate of a ledger. */
const rateOf = async (ledger: RateLedger) => (await ledger.take(0, [])).rate;

/** One refusal of a request whose turn is taken now. */
function refuse(budget: RequestBudget): Promise<void> {
  vi.advanceTimersByTime(1);
  return budget.limited(now());
}

/** One turn, after its wait. */
async function turn(budget: RequestBudget): Promise<number> {
  const given = budget.acquire(signal, 60_000);
  await vi.runAllTimersAsync();
  return given;
}

describe('the request rate', () => {
  it('halves after a refusal, and gives the next turns at the new pace without a burst', async () => {
    const { budget, ledger } = open(10, 10);
    await refuse(budget);
    expect(await rateOf(ledger)).toBe(5);
    await expect(budget.acquire(signal, 0)).rejects.toMatchObject({ waitMs: 200 });
  });

  it('halves once when a burst of requests is refused', async () => {
    const { budget, ledger } = open(10);
    const takenAt = [now(), now() + 5, now() + 10];
    vi.advanceTimersByTime(50);
    for (const at of takenAt) await budget.limited(at);
    expect(await rateOf(ledger)).toBe(5);
    await refuse(budget);
    expect(await rateOf(ledger)).toBe(2.5);
  });

  it('does not rise when a request from before the last decrease succeeds', async () => {
    const { budget, ledger } = open(10);
    const takenAt = await turn(budget);
    await refuse(budget);
    budget.succeeded(takenAt);
    budget.succeeded(await turn(budget));
    await turn(budget);
    expect(await rateOf(ledger)).toBeCloseTo(Math.sqrt(5 ** 2 + (2 * 10) / 60));
  });

  it('stops at a tenth of the configured rate', async () => {
    const { budget, ledger } = open(10);
    for (let refused = 0; refused < 20; refused += 1) await refuse(budget);
    expect(await rateOf(ledger)).toBe(1);
  });

  it('returns to the configured rate after a minute of successes at full pace', async () => {
    const { budget, ledger } = open(10);
    for (let refused = 0; refused < 20; refused += 1) await refuse(budget);
    const endsAt = now() + 60_000;
    while (now() < endsAt) {
      const given = budget.acquire(signal, 60_000);
      await vi.advanceTimersToNextTimerAsync();
      budget.succeeded(await given);
    }
    expect(await rateOf(ledger)).toBe(10);
  });

  it('is the same when successes are reported together and one by one', async () => {
    const { ledger: together } = open(10);
    const { ledger: single } = open(10);
    vi.advanceTimersByTime(1);
    for (const ledger of [together, single]) await ledger.limited(now());
    vi.advanceTimersByTime(1);
    const successes = [now(), now(), now()];
    await together.take(0, successes);
    for (const at of successes) await single.take(0, [at]);
    expect(await rateOf(together)).toBeGreaterThan(5);
    expect(await rateOf(single)).toBeCloseTo(await rateOf(together), 9);
  });

  it('slows waiting callers down in their order', async () => {
    const { budget } = open(10);
    const given: string[] = [];
    await budget.acquire(signal, 0);
    for (const name of ['a', 'b']) void budget.acquire(signal, 60_000).then(() => given.push(name));
    await refuse(budget);
    await vi.advanceTimersByTimeAsync(199);
    expect(given).toEqual([]);
    await vi.advanceTimersByTimeAsync(1);
    expect(given).toEqual(['a']);
    await vi.advanceTimersByTimeAsync(200);
    expect(given).toEqual(['a', 'b']);
  });

  it('refuses waiting callers at once when a slower rate or a pause makes them late', async () => {
    const { budget } = open(10);
    await budget.acquire(signal, 0);
    const late = budget.acquire(signal, 150);
    const slow = budget.acquire(signal, 1_000);
    const refused = expect(late).rejects.toMatchObject({ waitMs: 200 });
    await refuse(budget);
    await refused;
    const paused = expect(slow).rejects.toMatchObject({ name: 'BudgetExceededError' });
    await budget.pause(5_000);
    await paused;
  });

  it('gives one turn at the end of a pause, and the others at its pace', async () => {
    const { budget } = open(10, 10);
    await budget.pause(1_000);
    let given = 0;
    for (let asked = 0; asked < 5; asked += 1) void budget.acquire(signal, 60_000).then(() => (given += 1));
    await vi.advanceTimersByTimeAsync(999);
    expect(given).toBe(0);
    await vi.advanceTimersByTimeAsync(1);
    expect(given).toBe(1);
    // The next two come together.
    await vi.advanceTimersByTimeAsync(201);
    expect(given).toBe(3);
  });

  it('ends a pause after ten minutes when the venue asks for more', async () => {
    const { budget } = open(10);
    await budget.pause(86_400_000);
    await expect(budget.acquire(signal, 0)).rejects.toMatchObject({ waitMs: 600_000 });
  });

  it('gives the turn of an aborted caller to the next one', async () => {
    const { budget } = open(10);
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

  /** Clients of one ledger, which learn of the slower rates and pauses of the others. */
  function openShared(perSecond: number, burst: number, clients: number) {
    vi.advanceTimersByTime(1_000);
    const ledger = createMemoryLedger({ perSecond, burst });
    const listeners: (() => void)[] = [];
    async function told<T>(change: Promise<T>): Promise<T> {
      const changed = await change;
      for (const listener of listeners) listener();
      return changed;
    }
    const shared: RateLedger = {
      take: ledger.take,
      limited: (takenAt) => told(ledger.limited(takenAt)),
      pause: (ms) => told(ledger.pause(ms)),
      onSlowed: (listener) => void listeners.push(listener),
    };
    const budgets = Array.from({ length: clients }, () => createRequestBudget(shared, perSecond, burst));
    return { ledger, budgetOf: (place: number) => budgets[place % clients] as RequestBudget };
  }

  it('stays between floor and ceiling, gives all clients no more turns than the ceiling allows, and answers every caller', async () => {
    const rates = fc.integer({ min: 1, max: 400 }).map((tenths) => tenths / 10);
    await fc.assert(
      fc.asyncProperty(
        rates,
        fc.integer({ min: 1, max: 8 }),
        fc.integer({ min: 1, max: 3 }),
        fc.array(fc.tuple(step, fc.nat(2)), { maxLength: 80 }),
        async (ceiling, burst, clients, steps) => {
          const { budgetOf, ledger } = openShared(ceiling, burst, clients);
          const turns: { at: number; pausedUntil: number; latestAt: number }[] = [];
          const refusals: string[] = [];
          const callers: Promise<unknown>[] = [];
          let pausedUntil = 0;
          for (const [{ kind, ms }, place] of steps) {
            const budget = budgetOf(place);
            if (kind === 'wait') await vi.advanceTimersByTimeAsync(ms);
            if (kind === 'succeed') budget.succeeded(now() - ms);
            if (kind === 'limit') await budget.limited(now() - ms);
            if (kind === 'pause') {
              await budget.pause(ms);
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
            expect(await rateOf(ledger)).toBeLessThanOrEqual(ceiling);
            expect(await rateOf(ledger)).toBeGreaterThanOrEqual(ceiling / 10);
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
