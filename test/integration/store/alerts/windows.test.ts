import fc from 'fast-check';
import { afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { decimal } from '../../../../src/domain/values/decimal.ts';
import { createAlert, type NewAlert } from '../../../../src/store/alerts/alerts.ts';
import { findByProbes } from '../../../../src/store/alerts/probes.ts';
import { WindowMemory } from '../../../../src/store/alerts/windows.ts';
import { Partitions } from '../../../../src/store/db/partitions.ts';
import { type Queryable, sql } from '../../../../src/store/db/tx.ts';
import { anAccount } from '../../../factories/alerts.ts';
import { aStoredMarket } from '../../../factories/stored-market.ts';
import { createTestDatabase, useTestDatabase } from '../../../support/postgres/database.ts';

const OBSERVE = sql(
  'test_observe_window',
  `INSERT INTO observation (token_id, received_at, venue_at, price, size)
   VALUES ($1, to_timestamp($2::float8 / 1000), now(), $3, $4)`,
);

const QUOTE = sql(
  'test_quote_window',
  `INSERT INTO price_history (token_id, received_at, as_of, price) VALUES ($1, to_timestamp($2::float8 / 1000), now(), $3)`,
);

const DAY_MS = 86_400_000;
const START_MS = Date.now() - DAY_MS / 2;

const test = useTestDatabase();
let accountId: bigint;
beforeAll(async () => {
  const partitions = new Partitions(test.db);
  for (const table of ['observation', 'price_history'] as const)
    await partitions.ensure(table, [START_MS - DAY_MS, START_MS, Date.now()]);
  accountId = await anAccount(test.db);
});

const RULES: readonly Omit<NewAlert, 'target'>[] = [60, 300, 900].flatMap((windowSeconds) => [
  { condition: 'change', unit: 'absolute', windowSeconds },
  { condition: 'change', unit: 'percent', windowSeconds },
  { condition: 'volume', windowSeconds },
]);
/** Beyond the usual prices, because the least one decides whether a window is read. */
const THRESHOLDS: Record<string, number[]> = {
  absolute: [0.08, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4],
  percent: [15, 20, 40, 60, 80, 100, 150],
  volume: [5, 20, 40, 80],
};

/** An outcome with rules, and the names of these by their keys. */
async function anOutcome(): Promise<{ tokenId: bigint; nameOf: Map<bigint, string> }> {
  const { outcomes } = await aStoredMarket(test.db, {});
  const [{ tokenId, outcomeId } = { tokenId: 0n, outcomeId: '' }] = outcomes;
  const nameOf = new Map<bigint, string>();
  await test.db.transaction(async (tx) => {
    for (const rule of RULES) {
      for (const threshold of THRESHOLDS[rule.unit ?? 'volume'] ?? []) {
        const target = decimal(String(threshold));
        const made = await createAlert(tx, accountId, { ...rule, tokenMint: outcomeId, target });
        if (made.outcome !== 'created') throw new Error(made.outcome);
        nameOf.set(made.alert.pk, `${rule.condition} ${rule.unit} ${rule.windowSeconds} ${threshold}`);
      }
    }
  });
  return { tokenId, nameOf };
}

const step = fc.record({
  afterMs: fc.constantFrom(0, 0, 1, 900, 3_000, 5_000, 20_000, 100_000),
  /** Seldom far from the others, so that one observation decides. */
  price: fc.oneof(
    { weight: 5, arbitrary: fc.integer({ min: 49, max: 51 }) },
    { weight: 1, arbitrary: fc.integer({ min: 20, max: 80 }) },
  ),
  size: fc.integer({ min: 0, max: 11 }).map((n) => (n === 0 ? 40 : null)),
  /** The process that evaluates; none: the observation waits. */
  process: fc.constantFrom(null, 0, 1),
  restarts: fc.integer({ min: 0, max: 9 }).map((n) => n === 0),
});

describe('findByProbes with the windows of former evaluations', () => {
  it('finds the rules that it finds without, for two processes in turn', async () => {
    let known = 0;
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 50, maxLength: 60, size: 'max' }), async (steps) => {
        const { tokenId, nameOf } = await anOutcome();
        const namesOf = (found: { alertPk: bigint }[]) => found.map(({ alertPk }) => nameOf.get(alertPk)).sort();
        const memories = [new WindowMemory(), new WindowMemory()];
        let nowMs = START_MS;
        await test.db.query(OBSERVE, [tokenId, START_MS - DAY_MS, '0.5', null]);
        let sinceMs = Number.POSITIVE_INFINITY;
        for (const { afterMs, price, size, process, restarts } of steps) {
          nowMs += afterMs;
          await test.db.query(OBSERVE, [tokenId, nowMs, price / 100, size]);
          sinceMs = Math.min(sinceMs, nowMs);
          if (process === null) continue;
          if (restarts) memories[process] = new WindowMemory();
          const memory = memories[process] ?? new WindowMemory();
          const since = new Map([[tokenId, sinceMs]]);
          const windows = await memory.windowsOf(test.db);
          if (windows.find(tokenId, sinceMs - 900_000, 900)) known += 1;
          const expected = namesOf(await findByProbes(test.db, since, new WindowMemory()));
          const found = namesOf(await findByProbes(test.db, since, memory));
          // An older trade that it reads again may name rules on volumes, which the evaluation then rejects.
          expect(found.filter((name) => name?.startsWith('change') || expected.includes(name))).toEqual(expected);
          sinceMs = Number.POSITIVE_INFINITY;
        }
      }),
      { numRuns: 12, seed: 7, endOnFailure: true },
    );
    expect(known).toBeGreaterThan(50);
  });

  it('reads an observation of the last evaluated millisecond that another process evaluated', async () => {
    const { tokenId, nameOf } = await anOutcome();
    const own = new WindowMemory();
    const observe = (atMs: number, price: string) => test.db.query(OBSERVE, [tokenId, atMs, price, null]);
    const find = (atMs: number, memory: WindowMemory) => findByProbes(test.db, new Map([[tokenId, atMs]]), memory);
    await observe(START_MS - DAY_MS, '0.5');
    await observe(START_MS, '0.5');
    expect(await find(START_MS, own)).toEqual([]);
    await observe(START_MS, '0.7');
    await find(START_MS, new WindowMemory());
    await observe(START_MS + 10_000, '0.5');
    const found = (await find(START_MS + 10_000, own)).map(({ alertPk }) => nameOf.get(alertPk));
    expect(found).toContain('change absolute 60 0.2');
  });

  it('reads a window again when no observation precedes it, because a quote that was no observation may', async () => {
    const { tokenId, nameOf } = await anOutcome();
    const own = new WindowMemory();
    const quote = (atMs: number, price: string) => test.db.query(QUOTE, [tokenId, atMs, price]);
    const observe = (atMs: number, price: string) => test.db.query(OBSERVE, [tokenId, atMs, price, null]);
    const find = (atMs: number) => findByProbes(test.db, new Map([[tokenId, atMs]]), own);
    await quote(START_MS - 2_000_000, '0.5');
    await quote(START_MS - 800_000, '0.9');
    await observe(START_MS, '0.5');
    await find(START_MS);
    await observe(START_MS + 150_000, '0.5');
    const found = (await find(START_MS + 150_000)).map(({ alertPk }) => nameOf.get(alertPk));
    expect(found).toContain('change absolute 900 0.4');
  });
});

describe('WindowMemory', () => {
  const prices = { fromMs: 1_000, untilMs: 61_000, low: 0.4, high: 0.6 };

  it('knows a window that begins within the known prices, and not long after their begin', async () => {
    const windows = await new WindowMemory().windowsOf(test.db);
    windows.keep(1n, prices);
    expect(windows.find(1n, 999, 60)).toBeUndefined();
    expect(windows.find(1n, 16_000, 60)).toBe(prices);
    expect(windows.find(1n, 16_001, 60)).toBeUndefined();
    expect(windows.find(2n, 16_000, 60)).toBeUndefined();
  });

  it('forgets the windows of another database', async () => {
    const other = await createTestDatabase();
    try {
      const memory = new WindowMemory();
      const windows = await memory.windowsOf(test.db);
      expect(await memory.windowsOf(test.db)).toBe(windows);
      expect(await memory.windowsOf(other.db)).not.toBe(windows);
    } finally {
      await other.drop();
    }
  });

  describe('with the clock of a database', () => {
    beforeEach(() => void vi.useFakeTimers({ toFake: ['performance'] }));
    afterEach(() => void vi.useRealTimers());

    /** A database whose clock is ahead by `aheadMs`. It reads the clock after `beforeMs`, and its answer arrives after `behindMs`. */
    const clock = (aheadMs: number, beforeMs = 0, behindMs = 0): Queryable => ({
      async query<Row>() {
        vi.advanceTimersByTime(beforeMs);
        const nowMs = performance.now() + aheadMs;
        vi.advanceTimersByTime(behindMs);
        return [{ origin: 'one', nowMs }] as Row[];
      },
    });

    it('forgets the windows when the clock was set back', async () => {
      const memory = new WindowMemory();
      const windows = await memory.windowsOf(clock(0));
      expect(await memory.windowsOf(clock(60_000))).toBe(windows);
      expect(await memory.windowsOf(clock(59_500))).toBe(windows);
      // Steps back add up.
      expect(await memory.windowsOf(clock(58_800))).not.toBe(windows);
    });

    it('keeps the windows when an answer was late', async () => {
      const memory = new WindowMemory();
      const windows = await memory.windowsOf(clock(0));
      expect(await memory.windowsOf(clock(0, 5_000, 0))).toBe(windows);
      expect(await memory.windowsOf(clock(0))).toBe(windows);
      expect(await memory.windowsOf(clock(0, 0, 5_000))).toBe(windows);
      expect(await memory.windowsOf(clock(0))).toBe(windows);
    });
  });
});
