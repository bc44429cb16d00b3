import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createLogger } from '../../../../src/observe/logger.ts';
import { type Arrivals, announceArrival, createArrivals } from '../../../../src/store/catalog/arrivals.ts';
import { sql } from '../../../../src/store/db/tx.ts';
import { eventually } from '../../../support/eventually.ts';
import { useTestDatabase } from '../../../support/postgres/database.ts';
import { startTcpProxy } from '../../api/server/tcp-proxy.ts';

const LISTENERS = sql(
  'test_listeners',
  `SELECT count(*)::int AS n FROM pg_stat_activity
   WHERE application_name = 'oddswire-arrivals' AND datname = current_database()`,
);
const LONG_MS = 20_000;
const log = createLogger({ process: 'test', level: 'silent' });

const test = useTestDatabase();
let arrivals: Arrivals;
beforeAll(async () => {
  arrivals = createArrivals(test.url, log);
  await arrivals.ready();
});
afterAll(() => arrivals.close());

const announce = (...keys: Parameters<typeof announceArrival>[1][]) =>
  test.db.transaction(async (tx) => {
    for (const key of keys) await announceArrival(tx, key);
  });

describe('createArrivals', () => {
  it('resolves all waiters of an announced key, and no other waiters', async () => {
    const both = Promise.all([arrivals.waitFor('book:1', LONG_MS), arrivals.waitFor('book:1', LONG_MS)]);
    const stop = new AbortController();
    const other = arrivals.waitFor('book:2', LONG_MS, stop.signal);
    await announce('book:1', 'history:2');
    expect(await both).toEqual([true, true]);
    stop.abort();
    expect(await other).toBe(false);
  });

  it('resolves at the commit, and not when the transaction rolls back', async () => {
    const waiting = arrivals.waitFor('book:3', LONG_MS);
    const failed = test.db.transaction(async (tx) => {
      await announceArrival(tx, 'book:3');
      throw new Error('lost');
    });
    await expect(failed).rejects.toThrow('lost');
    const committed: string[] = [];
    await test.db.transaction(async (tx) => {
      await announceArrival(tx, 'book:3');
      await announceArrival(test.db, 'book:4');
      committed.push('notified');
    });
    expect([await waiting, committed]).toEqual([true, ['notified']]);
  });

  it('resolves at the timeout, or at once for an aborted waiter', async () => {
    expect(await arrivals.waitFor('book:5', 10)).toBe(false);
    expect(await arrivals.waitFor('book:5', LONG_MS, AbortSignal.abort())).toBe(false);
  });

  it('listens again when the connection was lost and temporarily refused', async () => {
    const proxy = await startTcpProxy(test.url);
    const behind = createArrivals(proxy.url, log);
    try {
      await behind.ready();
      await proxy.cut();
      expect(await behind.waitFor('book:6', 150)).toBe(false);
      await proxy.reopen();
      await eventually(
        async () => (await test.db.query<{ n: number }>(LISTENERS))[0]?.n,
        (n) => n === 2,
      );
      // A new connection may not listen yet, so the test announces until a waiter resolves.
      let heard: boolean | undefined;
      void behind.waitFor('book:6', LONG_MS).then((isHeard) => {
        heard = isHeard;
      });
      await eventually(
        async () => {
          await announce('book:6');
          return heard;
        },
        (answer) => answer !== undefined,
        { everyMs: 20 },
      );
      expect(heard).toBe(true);
    } finally {
      await behind.close();
      await proxy.cut();
    }
  });

  it('ends every wait and leaves no connection on close, also without a database', async () => {
    const own = createArrivals(test.url, log);
    await own.ready();
    const waiting = own.waitFor('book:7', LONG_MS);
    await own.close();
    expect([await waiting, await own.waitFor('book:7', LONG_MS)]).toEqual([false, false]);
    await eventually(
      async () => (await test.db.query<{ n: number }>(LISTENERS))[0]?.n,
      (n) => n === 1,
    );
    const nowhere = createArrivals('postgres://nobody@127.0.0.1:1/none', log);
    expect(await nowhere.waitFor('book:8', 20)).toBe(false);
    await nowhere.close();
    await nowhere.ready();
  });
});
