import { afterEach, describe, expect, it, vi } from 'vitest';
import { DatabaseClock } from '../../../../src/store/db/database-clock.ts';
import { sql } from '../../../../src/store/db/tx.ts';
import { useTestDatabase } from '../../../support/postgres/database.ts';

const HOUR_MS = 3_600_000;
const NOW = sql('test_now', 'SELECT extract(epoch FROM clock_timestamp())::float8 * 1000 AS at_ms');

describe('DatabaseClock', () => {
  const database = useTestDatabase({ poolSize: 2 });
  afterEach(() => {
    vi.useRealTimers();
  });

  /** The difference between this clock and the database clock, which is read before and after it. */
  async function distanceMs(clock: DatabaseClock): Promise<number> {
    const [before] = await database.db.query<{ atMs: number }>(NOW);
    const shown = clock.now();
    const [after] = await database.db.query<{ atMs: number }>(NOW);
    return Math.max((before?.atMs ?? 0) - shown, shown - (after?.atMs ?? 0));
  }

  it('returns database time when the process clock is an hour off', async () => {
    vi.useFakeTimers({ toFake: ['Date'], now: Date.now() - HOUR_MS });
    const clock = new DatabaseClock(database.db);
    expect(await distanceMs(clock)).toBeGreaterThan(HOUR_MS / 2);
    await clock.read();
    expect(await distanceMs(clock)).toBeLessThan(HOUR_MS / 100);
  });

  it('returns database time when the process clock is set', async () => {
    const clock = new DatabaseClock(database.db);
    await clock.read();
    vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + HOUR_MS });
    expect(await distanceMs(clock)).toBeLessThan(HOUR_MS / 100);
  });

  it('runs one statement at a time', async () => {
    const clock = new DatabaseClock(database.db);
    const first = clock.read();
    expect(clock.read()).toBe(first);
    await first;
    const next = clock.read();
    expect(next).not.toBe(first);
    await next;
  });
});
