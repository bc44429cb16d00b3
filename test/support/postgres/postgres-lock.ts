import { setTimeout as delay } from 'node:timers/promises';
import { type Database, sql } from '../../../src/store/db/tx.ts';

const WAITERS = sql(
  'test_waiters',
  `SELECT count(*)::int AS waiting FROM pg_locks WHERE NOT granted AND locktype = 'advisory'
     AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`,
);

/** Resolves when `count` backends of this database wait for an advisory lock: the test has reached its interleaving. */
export async function advisoryWaiters(db: Database, count: number): Promise<void> {
  for (;;) {
    const [row] = await db.query<{ waiting: number }>(WAITERS);
    if ((row?.waiting ?? 0) >= count) return;
    await delay(5);
  }
}
