import { beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { decimal } from '../../../src/domain/values/decimal.ts';
import { newId } from '../../../src/domain/values/ids.ts';
import { createLogger } from '../../../src/observe/logger.ts';
import { backtest } from '../../../src/store/alerts/backtest/backtest.ts';
import {
  createBacktest,
  dueBacktests,
  endBacktestsOf,
  findBacktest,
  pruneBacktests,
  type StoredBacktest,
} from '../../../src/store/alerts/backtest/jobs.ts';
import { type BacktestRequest, JOB_LIMITS } from '../../../src/store/alerts/backtest/request.ts';
import { ensureTokens } from '../../../src/store/catalog/tokens.ts';
import { Partitions } from '../../../src/store/db/partitions.ts';
import { Database, type Statement, sql } from '../../../src/store/db/tx.ts';
import { runBacktestJob } from '../../../workers/jobs/run-backtest.ts';
import type { WorkerDeps } from '../../../workers/process/deps.ts';
import { reconcile } from '../../../workers/process/reconcile.ts';
import { startWorker } from '../../../workers/start-worker.ts';
import { anAccount } from '../../factories/alerts.ts';
import { useTestDatabase } from '../../support/postgres/database.ts';
import { capturedLog, jobContext, testConfig, until, wakeRecorder } from './worker-harness.ts';

const QUOTES = sql(
  'test_job_quotes',
  `INSERT INTO observation (token_id, received_at, venue_at, price)
   SELECT $1, to_timestamp($2 / 1000.0) + i * interval '20 milliseconds', now(), i % 7 FROM generate_series(0, $3::int - 1) i`,
);
const END_LEASE = sql(
  'test_end_backtest_lease',
  `UPDATE alert_backtest SET lease_until = now() - interval '1 second' WHERE pk = $1`,
);
const OF_PROCESS = sql(
  'test_backtest_of_process',
  `UPDATE alert_backtest SET lease_token = '77.' || lease_token WHERE pk = $1`,
);
const AGE = sql(
  'test_age_backtest',
  `UPDATE alert_backtest SET finished_at = now() - interval '25 hours' WHERE pk = $1`,
);

const ROWS = 70_000;
const startMs = Math.floor(Date.now() / 1_000) * 1_000 - 3_600_000;
const endMs = startMs + 3_600_000;

const test = useTestDatabase();
let accountId: bigint;
let request: BacktestRequest;
beforeAll(async () => {
  const partitions = new Partitions(test.db);
  for (const table of ['observation', 'price_history'] as const) await partitions.ensureAroundNow(table);
  const tokenMint = newId('req');
  const tokenId = (await ensureTokens(test.db, [tokenMint], 'USD')).get(tokenMint) ?? 0n;
  await test.db.query(QUOTES, [tokenId, startMs, ROWS]);
  const condition = { condition: 'crosses_above', threshold: decimal('6'), cooldownSeconds: 60 } as const;
  request = { tokenMint, scopeKey: null, ...condition, startMs, endMs };
});
beforeEach(async () => {
  accountId = await anAccount(test.db);
});

async function create(): Promise<StoredBacktest> {
  const made = await test.db.transaction((tx) => createBacktest(tx, accountId, request));
  if (made === null) throw new Error('too many');
  return made;
}
const read = ({ id }: StoredBacktest) => findBacktest(test.db, accountId, id);
const contextOf = (db: Database, fields: { stopping?: AbortSignal } = {}) =>
  jobContext({ db, config: testConfig(test.url), ...fields });
const runOn = (db: Database, { pk }: StoredBacktest) => runBacktestJob.run({ backtestPk: String(pk) }, contextOf(db));

/** Loses every statement from the given page on, as a death of the process does. */
class DyingDatabase extends Database {
  pagesLeft = Number.POSITIVE_INFINITY;

  override query<Row>(statement: Statement, values: readonly unknown[] = []): Promise<Row[]> {
    if (statement.name.startsWith('backtest_observation')) this.pagesLeft -= 1;
    if (this.pagesLeft < 0) return Promise.reject(Object.assign(new Error('gone'), { code: '57P01' }));
    return super.query<Row>(statement, values);
  }
}

describe('run-backtest', () => {
  it('stores the result of the backtest, once', async () => {
    const made = await create();
    expect(made).toMatchObject({ state: 'queued', progress: 0, result: null, error: null });
    expect(await runOn(test.db, made)).toMatchObject({ observations: ROWS });
    const done = await read(made);
    expect(done).toMatchObject({ state: 'done', progress: 1, error: null, finishedAt: expect.any(Date) });
    expect(done?.result).toEqual(await backtest(test.db, request, JOB_LIMITS));
    expect(done?.result?.firings.length).toBeGreaterThan(10);
    expect(await runOn(test.db, made)).toEqual({ skipped: 'ended or claimed' });
  });

  it('starts again in another process when its process dies in the middle', async () => {
    const made = await create();
    const dying = new DyingDatabase(test.db.dataSource);
    dying.pagesLeft = 2;
    await expect(runOn(dying, made)).rejects.toThrow('gone');
    const before = await read(made);
    expect(before).toMatchObject({ state: 'running', progress: expect.closeTo(20_000 / ROWS), result: null });
    expect(await dueBacktests(test.db, 10)).not.toContain(made.pk);
    expect(await runOn(test.db, made)).toEqual({ skipped: 'ended or claimed' });
    await test.db.query(END_LEASE, [made.pk]);
    expect(await dueBacktests(test.db, 10)).toContain(made.pk);
    await runOn(test.db, made);
    expect((await read(made))?.result).toEqual(await backtest(test.db, request, JOB_LIMITS));
  });

  it('stores the finished share while it runs', async () => {
    const made = await create();
    const shares: number[] = [];
    class WatchedDatabase extends Database {
      override async query<Row>(statement: Statement, values: readonly unknown[] = []): Promise<Row[]> {
        const rows = await super.query<Row>(statement, values);
        if (statement.name === 'advance_backtest') shares.push((await read(made))?.progress ?? -1);
        return rows;
      }
    }
    await runOn(new WatchedDatabase(test.db.dataSource), made);
    expect(shares.length).toBeGreaterThan(2);
    expect(shares).toEqual(shares.toSorted((a, b) => a - b));
    expect([shares[0], shares.at(-1)]).toEqual([0, 1]);
  });

  it('writes nothing when another process has taken over', async () => {
    const made = await create();
    class OvertakenDatabase extends Database {
      override async query<Row>(statement: Statement, values: readonly unknown[] = []): Promise<Row[]> {
        if (statement.name === 'finish_backtest') {
          await test.db.query(END_LEASE, [made.pk]);
          await runOn(test.db, made);
        }
        return super.query<Row>(statement, values);
      }
    }
    await runOn(new OvertakenDatabase(test.db.dataSource), made);
    expect(await read(made)).toMatchObject({ state: 'done', progress: 1 });
  });

  it('is due at once when its process has ended', async () => {
    const made = await create();
    const dying = new DyingDatabase(test.db.dataSource);
    dying.pagesLeft = 1;
    await expect(runOn(dying, made)).rejects.toThrow('gone');
    await test.db.query(OF_PROCESS, [made.pk]);
    expect(await endBacktestsOf(test.db, 77)).toBe(1);
    expect(await dueBacktests(test.db, 10)).toContain(made.pk);
  });

  it('logs the error of a failed release once, and leaves the backtest to the end of its lease', async () => {
    const made = await create();
    class UnreachableDatabase extends Database {
      override query<Row>(statement: Statement, values: readonly unknown[] = []): Promise<Row[]> {
        const isLost = statement.name.startsWith('backtest_observation') || statement.name === 'release_backtest';
        return isLost ? Promise.reject(new Error(statement.name)) : super.query<Row>(statement, values);
      }
    }
    const { log, lines } = capturedLog();
    const context = { ...contextOf(new UnreachableDatabase(test.db.dataSource)), log };
    await expect(runBacktestJob.run({ backtestPk: String(made.pk) }, context)).rejects.toThrow('backtest_observation');
    expect(lines.map((line) => JSON.parse(line))).toMatchObject([
      { backtestPk: String(made.pk), msg: expect.stringContaining('its lease'), err: { message: 'release_backtest' } },
    ]);
    expect(await dueBacktests(test.db, 10)).not.toContain(made.pk);
    await test.db.query(END_LEASE, [made.pk]);
    await runOn(test.db, made);
    expect((await read(made))?.state).toBe('done');
  });

  it('fails after three attempts that failed', async () => {
    const made = await create();
    class BrokenDatabase extends Database {
      override query<Row>(statement: Statement, values: readonly unknown[] = []): Promise<Row[]> {
        if (statement.name.startsWith('backtest_observation')) return Promise.reject(new Error('broken'));
        return super.query<Row>(statement, values);
      }
    }
    const broken = new BrokenDatabase(test.db.dataSource);
    for (let attempt = 1; attempt <= 3; attempt++) await expect(runOn(broken, made)).rejects.toThrow('broken');
    expect((await read(made))?.state).toBe('queued');
    expect(await runOn(broken, made)).toEqual({ skipped: 'ended or claimed' });
    expect(await read(made)).toMatchObject({ state: 'failed', error: 'attempts_failed', result: null });
  });

  it('returns its attempt when its process stops', async () => {
    const made = await create();
    const stopping = AbortSignal.abort(new Error('stop'));
    for (let stop = 1; stop <= 5; stop++) {
      const context = contextOf(test.db, { stopping });
      await expect(runBacktestJob.run({ backtestPk: String(made.pk) }, context)).rejects.toThrow('stop');
    }
    expect((await read(made))?.state).toBe('queued');
    await runOn(test.db, made);
    expect((await read(made))?.state).toBe('done');
  });
});

describe('the reconcile timer of an aggregator', () => {
  it('wakes a backtest whose wake-up was lost', async () => {
    await create();
    const producer = wakeRecorder();
    const backend = { restore: async () => false } as WorkerDeps['backend'];
    // Schedules need queues, which this test does not have; the other steps run all the same.
    await reconcile('aggregator', { ...contextOf(test.db), producer, backend }).catch(() => undefined);
    expect(producer.woken).toContain('run-backtest');
  });
});

describe('an aggregator', () => {
  it('runs the backtests that wait at its start, with its queues in Postgres', async () => {
    const made = await create();
    const config = testConfig(test.url, { METRICS_PORT: '0' });
    const log = createLogger({ process: 'test', level: 'silent' });
    const worker = await startWorker('aggregator', config, log, new AbortController().signal);
    try {
      const done = await until(
        () => read(made),
        (found) => found?.finishedAt !== null,
      );
      expect(done).toMatchObject({ state: 'done', result: { observations: ROWS } });
    } finally {
      await worker.stop();
    }
  });
});

describe('pruneBacktests', () => {
  it('deletes a backtest a day after its end', async () => {
    const [old, young] = [await create(), await create()];
    for (const made of [old, young]) await runOn(test.db, made);
    await test.db.query(AGE, [old.pk]);
    expect(await pruneBacktests(test.db)).toBe(1);
    expect(await read(old)).toBeNull();
    expect(await read(young)).not.toBeNull();
  });
});

describe('createBacktest', () => {
  it('refuses a fourth open backtest of an account, also for concurrent requests', async () => {
    const made = await Promise.all(
      Array.from({ length: 6 }, () => test.db.transaction((tx) => createBacktest(tx, accountId, request))),
    );
    expect(made.filter((one) => one !== null).length).toBe(3);
  });
});
