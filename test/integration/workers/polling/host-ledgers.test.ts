import fc from 'fast-check';
import pino from 'pino';
import { beforeEach, describe, expect, it, vi } from 'vitest';
import { createMetrics } from '../../../../src/observe/metrics.ts';
import { createPresence } from '../../../../src/store/db/presence.ts';
import { type Queryable, sql } from '../../../../src/store/db/tx.ts';
import { createMemoryLedger, type RateLedger, type RateState } from '../../../../src/venues/http/rate-ledger.ts';
import { BudgetExceededError, createRequestBudget } from '../../../../src/venues/http/request-budget.ts';
import { createHostLedgers } from '../../../../workers/process/host-ledgers.ts';
import { useTestDatabase } from '../../../support/postgres/database.ts';

const CLEAR = sql('test_clear_budgets', 'TRUNCATE host_budget');
/** Lets time pass for the stored budgets. */
const SHIFT = sql(
  'test_shift_budgets',
  `UPDATE host_budget SET refilled_at = refilled_at - $1 * interval '1 millisecond',
     paused_until = paused_until - $1 * interval '1 millisecond', slowed_at = slowed_at - $1 * interval '1 millisecond',
     reserved = ARRAY(SELECT r.at - $1 FROM unnest(reserved) AS r (at))`,
);
const log = pino({ enabled: false });

const test = useTestDatabase();
beforeEach(() => test.db.query(CLEAR));

const termsOf = (perSecond: number, burst: number, client = 'v') => ({
  venue: 'v',
  host: 'venue.test',
  key: `venue.test#${client}`,
  perSecond,
  burst,
});

/** The ledger of one process. */
const ledgerOf = (perSecond: number, burst: number) =>
  createHostLedgers({ db: test.db, log }).open(termsOf(perSecond, burst));

describe('two processes', () => {
  it('together take no more turns than the rate allows', async () => {
    const [perSecond, burst] = [400, 5];
    const taken: number[] = [];
    const pollers = Array.from({ length: 2 }, async () => {
      const ledger = ledgerOf(perSecond, burst);
      await Promise.all(
        // Several takes of a process are in flight at once, so statements of both processes wait for one row.
        Array.from({ length: 3 }, async () => {
          for (let calls = 0; calls < 60; calls += 1) {
            const { granted, at } = await ledger.take(3, []);
            for (let turn = 0; turn < granted; turn += 1) taken.push(at);
          }
        }),
      );
    });
    await Promise.all(pollers);
    taken.sort((a, b) => a - b);
    expect(taken.length).toBeGreaterThan(burst);
    // The turns between any two moments, above those that refilled in between.
    const bursts = taken.flatMap((from, first) =>
      taken.slice(first).map((to, later) => later + 1 - ((to - from) * perSecond) / 1_000),
    );
    expect(bursts.reduce((most, one) => Math.max(most, one), 0)).toBeLessThanOrEqual(burst + 1e-3);
  });

  it('slow down once when requests of both are refused in one burst', async () => {
    const [one, other] = [ledgerOf(100, 10), ledgerOf(100, 10)];
    const { at } = await one.take(1, []);
    const { at: otherAt } = await other.take(1, []);
    await one.limited(at);
    expect(await other.limited(otherAt)).toMatchObject({ rate: 50 });
    const { at: laterAt } = await other.take(0, []);
    expect(await one.limited(laterAt)).toMatchObject({ rate: 25 });
  });

  it('pause together', async () => {
    const [one, other] = [ledgerOf(100, 10), ledgerOf(100, 10)];
    await one.pause(60_000);
    const { granted, waitMs } = await other.take(1, []);
    expect(granted).toBe(0);
    expect(waitMs).toBeGreaterThan(30_000);
  });
});

describe('turns that a process reserved', () => {
  const signal = new AbortController().signal;
  const UNAWARE = sql(
    'test_slow_budget_of_former_release',
    `UPDATE host_budget SET slowed_at = clock_timestamp(), rate = rate / 2, tokens = 0`,
  );

  /** No turn refills during a test. */
  const RARE = 0.01;

  /** A budget with reserved turns, in a process with a presence. */
  async function reserving(perSecond = RARE) {
    const ledgers = createHostLedgers({ db: test.db, log });
    const presence = createPresence({ databaseUrl: test.url, log });
    const ledger = ledgers.open(termsOf(perSecond, 10));
    const slowed = new Promise<void>((resolve) => ledger.onSlowed?.(resolve));
    const budget = createRequestBudget(ledger, perSecond);
    await presence.register({}, async () => undefined, [ledgers.listen]);
    for (let asked = 0; asked < 3; asked += 1) await budget.acquire(signal, 0);
    await budget.acquire(signal, 5_000);
    return { budget, presence, slowed };
  }

  it.each([
    [
      'another process is refused',
      async () => {
        const other = ledgerOf(RARE, 10);
        const { at } = await other.take(0, []);
        await other.limited(at);
      },
    ],
    ['another process is asked for a pause', () => ledgerOf(RARE, 10).pause(60_000)],
    ['a process of the former release is refused', () => test.db.query(UNAWARE)],
  ])('are not used after %s', async (_, slow) => {
    const { budget, presence, slowed } = await reserving();
    try {
      await slow();
      await slowed;
      await expect(budget.acquire(signal, 0)).rejects.toBeInstanceOf(BudgetExceededError);
    } finally {
      await presence.close();
    }
  });

  it('are not used after the loss of the session that hears of slower budgets', async () => {
    const { budget, presence } = await reserving();
    await presence.close();
    await test.db.query(UNAWARE);
    await expect(budget.acquire(signal, 0)).rejects.toBeInstanceOf(BudgetExceededError);
  });

  it('leave half of a burst to other processes, and are free for them after their time', async () => {
    const { presence } = await reserving(10);
    await presence.close();
    await test.db.query(SHIFT, [1_000]);
    const other = ledgerOf(10, 10);
    const { granted } = await other.take(10, []);
    expect(granted).toBeGreaterThanOrEqual(5);
    expect(granted).toBeLessThan(10);
    await test.db.query(SHIFT, [6_000]);
    expect((await other.take(10, [])).granted).toBe(10);
  });
});

describe('a process that starts again', () => {
  it('continues at the slowed rate, without a burst', async () => {
    const before = ledgerOf(0.1, 10);
    const { at } = await before.take(1, []);
    await before.limited(at);
    expect(await ledgerOf(0.1, 10).take(10, [])).toMatchObject({ granted: 0, rate: 0.05 });
  });

  it('replaces a ceiling that was changed', async () => {
    await ledgerOf(10, 1).take(1, []);
    expect(await ledgerOf(4, 1).take(0, [])).toMatchObject({ rate: 4 });
  });

  it('and one that runs on create a budget that a crash of the server deleted', async () => {
    const ledger = ledgerOf(10, 2);
    await ledger.take(2, []);
    await test.db.query(CLEAR);
    expect(await ledger.take(1, [])).toMatchObject({ granted: 1, rate: 10 });
  });
});

describe('the ledgers in memory and in Postgres', () => {
  const step = fc.oneof(
    {
      weight: 4,
      arbitrary: fc.record({ kind: fc.constant('wait' as const), value: fc.integer({ min: 1, max: 3_000 }) }),
    },
    { weight: 8, arbitrary: fc.record({ kind: fc.constant('take' as const), value: fc.integer({ min: 0, max: 12 }) }) },
    {
      weight: 8,
      arbitrary: fc.record({ kind: fc.constant('reserve' as const), value: fc.integer({ min: 0, max: 12 }) }),
    },
    { weight: 3, arbitrary: fc.record({ kind: fc.constant('limit' as const), value: fc.integer({ min: 0, max: 3 }) }) },
    {
      weight: 1,
      arbitrary: fc.record({ kind: fc.constant('pause' as const), value: fc.integer({ min: 1, max: 900_000 }) }),
    },
  );

  it('agree after any sequence of changes', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 1, max: 400 }).map((tenths) => tenths / 10),
        fc.integer({ min: 1, max: 40 }),
        fc.array(step, { minLength: 5, maxLength: 40 }),
        async (perSecond, burst, steps) => {
          await test.db.query(CLEAR);
          const { open, listen } = createHostLedgers({ db: test.db, log });
          listen.onReady?.();
          const postgres = open(termsOf(perSecond, burst));
          const { at: startedAt } = await postgres.take(0, []);
          let passedMs = 0;
          let nowMs = 0;
          /** A time of the database as milliseconds since the start. Postgres has whole microseconds. */
          const sinceStart = (at: number) =>
            (Math.round(at * 1_000) - Math.round(startedAt * 1_000)) / 1_000 + passedMs;
          let storedAt = startedAt;
          const atDatabase = (ms: number) => ms - passedMs + startedAt;
          const memory = createMemoryLedger({ perSecond, burst }, () => nowMs);
          const takes: number[] = [];
          /** The takes with the last reserves, by the clocks of the database and of the memory. */
          let reserves: { stored: number; memory: number }[] = [];
          let answered: number[] = [];
          /** Repeats a change of the stored budget in memory, at the same moment. */
          async function both<T extends RateState>(
            run: (of: RateLedger, toMoment: (ms: number) => number, side: 'stored' | 'memory') => Promise<T>,
          ) {
            const { at, ...stored } = await run(postgres, atDatabase, 'stored');
            nowMs = sinceStart(at);
            storedAt = at;
            const { at: _, ...expected } = await run(memory, (ms) => ms, 'memory');
            expect(stored).toMatchObject({
              ...expected,
              rate: expect.closeTo(expected.rate, 6),
              waitMs: expect.closeTo(expected.waitMs, 1),
            });
            return stored;
          }
          for (const { kind, value } of steps) {
            if (kind === 'wait') {
              await test.db.query(SHIFT, [value]);
              passedMs += value;
              reserves = reserves.map(({ stored, memory: at }) => ({ stored: stored - value, memory: at }));
            }
            if (kind === 'take') {
              const { granted } = await both((of, at) => of.take(value, answered.map(at)));
              answered = granted > 0 ? [nowMs] : [];
              if (granted > 0) takes.push(nowMs);
            }
            if (kind === 'reserve') {
              const ended = reserves.shift();
              const agoMs = ended ? Math.min(value * 100, nowMs - ended.memory) : 0;
              const { reserved } = await both((of, _, side) =>
                of.take(1, [], {
                  most: value,
                  ...(ended && { ended: { at: ended[side], agoMs } }),
                }),
              );
              if (reserved > 0) reserves.push({ stored: storedAt, memory: nowMs });
            }
            if (kind === 'limit') await both((of, at) => of.limited(at(takes.at(-1 - value) ?? -1)));
            if (kind === 'pause') await both((of) => of.pause(value));
          }
        },
      ),
      {
        numRuns: 40,
        // The burst as a multiple of the rate is a little less than 4.
        examples: [
          [
            6.3,
            4,
            [
              { kind: 'reserve' as const, value: 0 },
              { kind: 'reserve' as const, value: 2 },
            ],
          ],
        ],
      },
    );
  });
});

describe('an outage of the database', () => {
  it('fails each change, and is logged once', async () => {
    const lines: string[] = [];
    const spy = pino({}, { write: (line: string) => void lines.push(line) });
    let isAway = true;
    const db: Queryable = {
      query: (...of) => (isAway ? Promise.reject(new Error('connect ECONNREFUSED')) : test.db.query(...of)),
    };
    const ledgers = createHostLedgers({ db, log: spy });
    const [one, other] = [ledgers.open(termsOf(10, 1)), ledgers.open(termsOf(10, 1, 'w'))];
    const changes = [() => one.take(1, []), () => other.take(1, []), () => one.limited(1), () => one.pause(1)];
    for (const change of changes) await expect(change()).rejects.toThrow('ECONNREFUSED');
    isAway = false;
    await one.take(1, []);
    await other.take(1, []);
    expect(lines.map((line) => JSON.parse(line).level)).toEqual([40, 30]);
    expect(lines[0]).toContain('request budgets unavailable');
    expect(lines[1]).toContain('request budgets available again');
  });

  it('fails a change after five seconds when the database is silent', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    try {
      const db: Queryable = { query: () => new Promise(() => undefined) };
      const failed = expect(createHostLedgers({ db, log }).open(termsOf(10, 1)).take(1, [])).rejects.toThrow(
        'did not answer in 5000 ms',
      );
      await vi.advanceTimersByTimeAsync(5_000);
      await failed;
    } finally {
      vi.useRealTimers();
    }
  });
});

describe('the metric venue_request_rate', () => {
  it('shows the shared rates of the clients of a host as a sum, the same in each process', async () => {
    const processes = Array.from({ length: 2 }, () => {
      const ledgers = createHostLedgers({ db: test.db, log });
      const metrics = createMetrics('poller', { ofNode: false });
      metrics.collectors.add(ledgers.gauge(metrics));
      const trades = ledgers.open(termsOf(6, 6, 'trades'));
      ledgers.open(termsOf(4, 4, 'wallets'));
      ledgers.open({ ...termsOf(1.5, 1, 'v-history'), isShare: true });
      return { ledgers, metrics, trades };
    });
    const shown = () =>
      Promise.all(
        processes.map(async ({ ledgers, metrics }) => {
          await ledgers.gauge(metrics).read();
          return (await metrics.venueRequestRate.get()).values.map(({ labels, value }) => ({ ...labels, value }));
        }),
      );
    const sample = (value: number) => [{ venue: 'v', host: 'venue.test', value }];
    expect(await shown()).toEqual([sample(10), sample(10)]);
    const [first] = processes;
    const { at = 0 } = (await first?.trades.take(1, [])) ?? {};
    await first?.trades.limited(at);
    expect(await shown()).toEqual([sample(7), sample(7)]);
  });
});
