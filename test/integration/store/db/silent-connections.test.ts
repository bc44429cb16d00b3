import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createLogger } from '../../../../src/observe/logger.ts';
import { createDataSource, poolUse } from '../../../../src/store/db/data-source.ts';
import { Database, isDatabaseUnavailable, sql } from '../../../../src/store/db/tx.ts';
import { useTestDatabase } from '../../../support/postgres/database.ts';
import { startTcpProxy, type TcpProxy } from '../../../support/processes/tcp-proxy.ts';

const SILENCE_MS = 600;
const ONE = sql('silent_one', 'SELECT 1 AS one');
const LOCK = sql('silent_lock', 'SELECT pg_advisory_xact_lock($1)');
const SLEEP = sql('silent_sleep', 'SELECT pg_sleep($1)');

const test = useTestDatabase();
let network: TcpProxy;
let db: Database;
let lines: Record<string, unknown>[];
beforeEach(async () => {
  lines = [];
  network = await startTcpProxy(test.url);
  const log = createLogger({
    process: 'test',
    level: 'warn',
    destination: { write: (line: string) => lines.push(JSON.parse(line) as Record<string, unknown>) },
  });
  const source = createDataSource({
    databaseUrl: network.url,
    poolSize: 4,
    silenceMs: SILENCE_MS,
    applicationName: 'silent',
    log,
  });
  await source.initialize();
  db = new Database(source);
});
afterEach(async () => {
  await db.dataSource.destroy();
  await network.close();
});

/** Opens this many connections, which are idle afterwards. */
async function openAll(count: number): Promise<void> {
  await Promise.all(Array.from({ length: count }, () => db.query(SLEEP, [0.05])));
}

const error = (work: Promise<unknown>): Promise<unknown> =>
  work.then(
    () => 'answered',
    (thrown: unknown) => thrown,
  );

describe('the watch of silent connections', () => {
  it('fails pending statements and transactions, and closes idle connections', async () => {
    await openAll(4);
    network.forsake();
    const thrown = await Promise.all([
      error(db.query(ONE)),
      error(db.transaction((tx) => tx.query(ONE))),
      error(db.transaction(() => Promise.resolve())),
    ]);
    for (const each of thrown) {
      expect(each).toMatchObject({ message: expect.stringContaining('did not answer for 0.6 s') });
      expect(isDatabaseUnavailable(each)).toBe(true);
    }
    // The fourth connection was idle and is closed too, so no later statement waits for it.
    expect(await db.query(ONE)).toEqual([{ one: 1 }]);
    expect(lines.filter(({ msg }) => String(msg).includes('does not answer'))).toEqual([
      expect.objectContaining({ level: 'warn', connections: 4, limitMs: SILENCE_MS }),
    ]);
  });

  it('keeps a connection whose statement runs', async () => {
    await openAll(1);
    network.forsake();
    const [lost, slow] = await Promise.all([error(db.query(ONE)), db.query(SLEEP, [2 * (SILENCE_MS / 1000)])]);
    expect(isDatabaseUnavailable(lost)).toBe(true);
    expect(slow).toEqual([{ pgSleep: '' }]);
    expect(lines.filter(({ msg }) => String(msg).includes('does not answer'))).toMatchObject([{ connections: 1 }]);
  });

  it('keeps a statement that runs or waits for a lock, for any duration', async () => {
    await openAll(3);
    const locked = db.transaction(async (tx) => {
      await tx.query(LOCK, [1]);
      await tx.query(SLEEP, [3 * (SILENCE_MS / 1000)]);
    });
    const waiting = db.transaction((tx) => tx.query(LOCK, [1]));
    await locked;
    await waiting;
    expect(lines).toEqual([]);
  });

  it('keeps a connection that answers in time', async () => {
    network.hold();
    const asked = db.query(ONE);
    await delay(SILENCE_MS / 2);
    network.resume();
    expect(await asked).toEqual([{ one: 1 }]);
    expect(lines).toEqual([]);
  });

  it('ignores silence while this process was stopped', async () => {
    await openAll(2);
    const asked = db.query(SLEEP, [0.3]);
    // One check sees a pending statement; its answer arrives before the next check.
    await delay(SILENCE_MS / 5);
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 2 * SILENCE_MS);
    expect(await asked).toEqual([{ pgSleep: '' }]);
    expect(lines).toEqual([]);
  });

  it('ignores a silent connection without a pending statement', async () => {
    await openAll(3);
    await delay(3 * SILENCE_MS);
    expect(poolUse(db.dataSource).open).toBe(3);
    expect(await db.query(ONE)).toEqual([{ one: 1 }]);
    expect(lines).toEqual([]);
  });
});
