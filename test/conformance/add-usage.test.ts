import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { AddUsage, UsageEntry } from '../../src/domain/values/usage.ts';
import { createLogger } from '../../src/observe/logger.ts';
import { createQueueBackend } from '../../src/queues/backend.ts';
import { addRateUsage } from '../../src/store/accounts/rate-usage.ts';
import { sql } from '../../src/store/db/tx.ts';
import { createTestDatabase } from '../support/postgres/database.ts';
import { untilBlocked } from '../support/postgres/postgres-lock.ts';
import { startTestRedis } from '../support/redis/redis.ts';

const START_MS = 1_800_000_000_000;
const requests = (subject: bigint, used: number, windowStartMs = START_MS): UsageEntry => ({
  kind: 'requests',
  subject,
  windowStartMs,
  used,
});

interface Store {
  add: AddUsage;
  close(): Promise<void>;
}

async function onPostgres(): Promise<Store> {
  const { db, drop } = await createTestDatabase();
  return { add: (entries) => addRateUsage(db, entries), close: drop };
}

async function onRedis(): Promise<Store | null> {
  const redis = await startTestRedis();
  if (redis === null) return null;
  const log = createLogger({ process: 'test', level: 'silent' });
  const prefix = `usage${process.pid}`;
  const backend = createQueueBackend({ databaseUrl: 'postgres://none', redisUrl: redis.url, prefix, workers: 0, log });
  await backend.migrate();
  if (!backend.addUsage) throw new Error('the Redis backend counts usage');
  return {
    add: backend.addUsage,
    async close() {
      await backend.close();
      await redis.stop();
    },
  };
}

describe.each([
  ['Postgres', onPostgres],
  ['Redis', onRedis],
])('usage counted in %s', (_name, open) => {
  let store: Store | null;
  beforeAll(async () => {
    store = await open();
  });
  afterAll(() => store?.close());

  it('adds up per account, kind and window, and is returned in the order of the request', async ({ skip }) => {
    if (!store) return skip();
    const { add } = store;
    expect(await add([])).toEqual([]);
    expect(await add([requests(7n, 2), { ...requests(3n, 1), kind: 'cold_reads' }, requests(3n, 5)])).toEqual([
      2, 1, 5,
    ]);
    expect(await add([requests(3n, 1), requests(7n, 3)])).toEqual([6, 5]);
    expect(await add([requests(3n, 4, START_MS + 60_000)])).toEqual([4]);
    expect(await add([{ ...requests(3n, 1), kind: 'cold_reads' }])).toEqual([2]);
  });

  it('excludes usage of past windows from the present one', async ({ skip }) => {
    if (!store) return skip();
    const { add } = store;
    await add([requests(9n, 1, START_MS + 60_000)]);
    const [late] = await add([requests(9n, 100)]);
    expect([null, 100]).toContain(late);
    expect(await add([requests(9n, 1, START_MS + 60_000)])).toEqual([2]);
  });

  it('includes every account when many processes add at once', async ({ skip }) => {
    if (!store) return skip();
    const { add } = store;
    const accounts = Array.from({ length: 50 }, (_, i) => BigInt(1_000 + i));
    await Promise.all(
      Array.from({ length: 8 }, (_, i) =>
        add((i % 2 === 0 ? accounts : [...accounts].reverse()).map((account) => requests(account, 1))),
      ),
    );
    expect(await add(accounts.map((account) => requests(account, 1)))).toEqual(accounts.map(() => 9));
  });
});

it('usage counted by two processes for the same accounts in opposite order is complete', async () => {
  const { db, drop } = await createTestDatabase();
  try {
    const accounts = [1n, 2n, 3n];
    const add = (ids: readonly bigint[]) =>
      addRateUsage(
        db,
        ids.map((id) => requests(id, 1)),
      );
    await add(accounts);
    const inFlight: Promise<unknown>[] = [];
    await db.transaction(async (tx) => {
      // While the middle row is locked, each process takes the rows before it in its own order.
      await tx.query(sql('test_hold_usage', 'SELECT 1 FROM rate_usage WHERE account_id = 2 FOR UPDATE'));
      inFlight.push(add(accounts), add([...accounts].reverse()));
      await untilBlocked(db, 2);
    });
    await Promise.all(inFlight);
    expect(await add(accounts)).toEqual([4, 4, 4]);
  } finally {
    await drop();
  }
});
