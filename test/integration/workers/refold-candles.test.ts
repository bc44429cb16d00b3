import { beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { INTERVAL_SECONDS } from '../../../src/domain/markets/candle.ts';
import type { TradeRecord } from '../../../src/domain/markets/market.ts';
import { decimal } from '../../../src/domain/values/decimal.ts';
import { TradeOrder0008 } from '../../../src/store/db/migrations/0008-trade-order.ts';
import { Partitions } from '../../../src/store/db/partitions.ts';
import { sql } from '../../../src/store/db/tx.ts';
import { insertMarks } from '../../../src/store/marks/marks.ts';
import { isRefoldDue, refoldPiece, refoldProgress } from '../../../src/store/series/candle-refold.ts';
import { foldCandles } from '../../../src/store/series/candles.ts';
import { writeTrades } from '../../../src/store/series/trades.ts';
import { refoldCandlesJob } from '../../../workers/jobs/refold-candles.ts';
import type { WorkerDeps } from '../../../workers/process/deps.ts';
import { reconcile } from '../../../workers/process/reconcile.ts';
import { gaugesOf } from '../../../workers/process/role-gauges.ts';
import { wrongCandles } from '../../e2e/oracle.ts';
import { drain } from '../../support/drain.ts';
import { useTestDatabase } from '../../support/postgres/database.ts';
import { capturedLog, jobContext, LosableDatabase, testConfig, wakeRecorder } from './worker-harness.ts';

/** Two months, so that outcomes have trades in two partitions. */
const START_MS = Date.UTC(2026, 4, 31, 23, 30);
const OUTCOMES = 5;
const MINUTES = 60;
/** Sweeps of three levels in every third minute. */
const TIED_MINUTES = (OUTCOMES * MINUTES) / 3;
const PIECE = 37;

const run = (name: string, text: string) => test.db.query(sql(name, text));
const INTERVALS = Object.values(INTERVAL_SECONDS).map((seconds) => `(${seconds})`);
/** The candles of the previous version, folded in the order `(ts, trade_id)`. */
const FOLD_BY_ID = `UPDATE candle c SET open = f.open, close = f.close FROM (
  SELECT token_id, i.seconds, floor(extract(epoch FROM ts) / i.seconds)::bigint * i.seconds AS bucket,
    (array_agg(price ORDER BY ts, trade_id))[1] AS open, (array_agg(price ORDER BY ts DESC, trade_id DESC))[1] AS close
  FROM trade CROSS JOIN (VALUES ${INTERVALS.join(', ')}) AS i (seconds) GROUP BY 1, 2, 3) f
  WHERE (c.token_id, c.interval_seconds, c.bucket) = (f.token_id, f.seconds, f.bucket)`;

const test = useTestDatabase();
beforeAll(async () => {
  const partitions = new Partitions(test.db);
  const trades: TradeRecord[] = [];
  for (let minute = 0; minute < MINUTES; minute += 1) {
    for (let outcome = 0; outcome < OUTCOMES; outcome += 1) {
      const tsMs = START_MS + minute * 60_000 + 1_000;
      const levels = minute % 3 === 0 ? ['0.3', '0.1', '0.2'] : ['0.4'];
      for (const [n, price] of levels.entries()) {
        const side = outcome % 2 === 0 ? 'buy' : 'sell';
        // The ids order the levels 1, 0, 2, so neither end is the end of the sweep.
        const tradeId = `m${minute}-${[1, 0, 2][n]}`;
        trades.push({ tradeId, outcomeId: `o${outcome}`, tsMs, price: decimal(price), size: decimal('1'), side });
      }
    }
  }
  await partitions.ensure(
    'trade',
    trades.map(({ tsMs }) => tsMs),
  );
  await test.db.transaction((tx) => writeTrades(tx, trades, 'USD'));
  await fold();
});
beforeEach(async () => {
  await run('refold_test_clear', 'TRUNCATE mark, candle_refold');
  await run('refold_test_old_order', FOLD_BY_ID);
  await run(
    'refold_test_passes',
    `INSERT INTO candle_refold (pass, due_at) VALUES (1, now()), (2, now() + interval '1 day')`,
  );
});

async function fold(): Promise<void> {
  await drain(test.db, 'fold-candles', { limit: 100_000, order: 'oldest' }, foldCandles);
}

/** Marks by outcome and minute. */
async function marks(): Promise<string[]> {
  const rows = await run(
    'refold_test_marks',
    `SELECT key || ' ' || detail AS mark FROM mark WHERE stage = 'fold-candles'`,
  );
  return (rows as { mark: string }[]).map(({ mark }) => mark);
}

/** Runs pieces until none is due. Returns their trades. */
async function refoldAll(db = test.db): Promise<number> {
  let trades = 0;
  for (let piece = await refoldPiece(db, PIECE); piece !== null; piece = await refoldPiece(db, PIECE))
    trades += piece.trades;
  return trades;
}

const makeDue = () => run('refold_test_due', 'UPDATE candle_refold SET due_at = now()');
const context = () => jobContext({ db: test.db, config: testConfig(test.url) });

describe('the refold of candles', () => {
  it('marks each differing minute once, in pieces, and the fold corrects every interval', async () => {
    expect(await wrongCandles(test.db)).not.toEqual([]);
    expect(await refoldAll()).toBe(OUTCOMES * MINUTES + 2 * TIED_MINUTES);
    const marked = await marks();
    expect(marked).toHaveLength(TIED_MINUTES);
    expect(new Set(marked).size).toBe(TIED_MINUTES);
    await fold();
    expect(await wrongCandles(test.db)).toEqual([]);
    expect(await refoldProgress(test.db)).toMatchObject([
      { pass: 1, isFinished: true, minutes: TIED_MINUTES, outcomesDone: OUTCOMES, outcomes: OUTCOMES },
      { pass: 2, isFinished: false, minutes: 0, outcomesDone: 0 },
    ]);
  });

  it('loses and repeats nothing when each piece is killed before its commit', async () => {
    const db = new LosableDatabase(test.db.dataSource);
    db.loseAtCommit = (transaction) => transaction % 2 === 1;
    let kills = 0;
    for (;;) {
      try {
        if ((await refoldPiece(db, PIECE)) === null) break;
      } catch {
        kills += 1;
      }
    }
    expect(kills).toBeGreaterThan(5);
    const marked = await marks();
    expect([marked.length, new Set(marked).size]).toEqual([TIED_MINUTES, TIED_MINUTES]);
  });

  it('gives each piece to one process when several run at the same time', async () => {
    const processes = Array.from({ length: 4 }, async () => {
      while (await isRefoldDue(test.db)) await refoldPiece(test.db, PIECE);
    });
    await Promise.all(processes);
    const marked = await marks();
    expect([marked.length, new Set(marked).size]).toEqual([TIED_MINUTES, TIED_MINUTES]);
    const [first] = await refoldProgress(test.db);
    expect(first?.trades).toBe(OUTCOMES * MINUTES + 2 * TIED_MINUTES);
  });

  it('corrects in the second pass the minutes that an old aggregator folded after the first', async () => {
    await refoldAll();
    await fold();
    await run('refold_test_old_order', FOLD_BY_ID);
    expect(await isRefoldDue(test.db)).toBe(false);
    await makeDue();
    expect(await isRefoldDue(test.db)).toBe(true);
    await refoldAll();
    await fold();
    expect(await wrongCandles(test.db)).toEqual([]);
    expect(await isRefoldDue(test.db)).toBe(false);
    expect(await refoldAll()).toBe(0);
  });

  it('marks nothing in a second pass when all candles are correct', async () => {
    await refoldAll();
    await fold();
    await makeDue();
    await refoldAll();
    expect(await marks()).toEqual([]);
  });
});

describe('the job refold-candles', () => {
  it('runs a pass, wakes the stage and logs the progress of each pass', async () => {
    const producer = wakeRecorder();
    const { log, lines } = capturedLog();
    expect(await refoldCandlesJob.run({}, { ...context(), producer, log })).toMatchObject({ minutes: TIED_MINUTES });
    expect(producer.woken).toContain('fold-candles');
    const line = JSON.parse(lines.find((each) => each.includes('stored candles compared')) ?? '{}') as {
      passes: object[];
    };
    expect(line.passes).toMatchObject([{ pass: 1, isFinished: true, minutes: TIED_MINUTES }, { isFinished: false }]);
    expect(await refoldCandlesJob.run({}, { ...context(), producer, log })).toMatchObject({ pieces: 0 });
    expect(lines).toHaveLength(1);
  });

  it('pauses the pass while many minutes are pending, and when the process stops', async () => {
    const waiting = Array.from({ length: 20_000 }, (_, n) => ({ key: 1n, detail: BigInt(n * 60) }));
    await insertMarks(test.db, 'fold-candles', waiting);
    expect(await refoldCandlesJob.run({}, context())).toMatchObject({ pieces: 0 });
    await run('refold_test_clear_marks', 'TRUNCATE mark');
    const stopped = jobContext({ db: test.db, config: testConfig(test.url), deadline: AbortSignal.abort() });
    expect(await refoldCandlesJob.run({}, stopped)).toMatchObject({ pieces: 0 });
    expect(await refoldCandlesJob.run({}, context())).toMatchObject({ pieces: 1 });
  });

  it('is woken by the reconcile timer of an aggregator while a pass is due, and its progress is measured', async () => {
    const backend = { restore: async () => false } as WorkerDeps['backend'];
    const woken = async () => {
      const producer = wakeRecorder();
      const queue = { getJobScheduler: async () => undefined, upsertJobScheduler: async () => undefined };
      producer.queue = () => queue as unknown as ReturnType<typeof producer.queue>;
      await reconcile('aggregator', { ...context(), producer, backend });
      return producer.woken.includes('refold-candles');
    };
    const shares = async () => {
      const deps = context();
      deps.metrics.collectors.add(...gaugesOf('aggregator', deps).filter(({ name }) => name === 'refold'));
      const text = await deps.metrics.text();
      return [...text.matchAll(/^candle_refold_progress_ratio\{pass="(\d)".*\} (\S+)$/gm)].map(([, pass, share]) => [
        pass,
        Number(share),
      ]);
    };
    // The piece ends within the second outcome.
    await refoldPiece(test.db, 150);
    expect(await woken()).toBe(true);
    const [[, first] = [], second] = await shares();
    expect(first).toBeGreaterThan(0);
    expect(first).toBeLessThan(1);
    expect(second).toEqual(['2', 0]);
    await refoldAll();
    expect(await woken()).toBe(false);
    expect(await shares()).toEqual([
      ['1', 1],
      ['2', 0],
    ]);
  });
});

describe('migration 0008', () => {
  it('plans two passes, a day apart, when the database has candles, and none when it has not', async () => {
    const migration = new TradeOrder0008();
    const migrated = async () => {
      const runner = test.db.dataSource.createQueryRunner();
      try {
        await runner.startTransaction();
        await runner.query('DELETE FROM candle WHERE token_id > $1', [0]);
        await migration.down(runner);
        await migration.up(runner);
        const none = (await runner.query('SELECT pass FROM candle_refold')) as unknown[];
        await runner.query('INSERT INTO candle SELECT 1, 60, 0, 0.5, 0.5, 0.5, 0.5, 1, 0.5, 1');
        await migration.down(runner);
        await migration.up(runner);
        // A process of the previous version does not set the new column.
        await runner.query(
          `INSERT INTO trade (token_id, ts, trade_id, price, size, side) VALUES (1, $1, 'old', 0.5, 1, 1)`,
          [new Date(START_MS)],
        );
        const [old] = (await runner.query(`SELECT ordinal FROM trade WHERE trade_id = 'old'`)) as { ordinal: number }[];
        const planned = (await runner.query(
          'SELECT pass, extract(epoch FROM due_at - now())::int AS seconds FROM candle_refold ORDER BY pass',
        )) as unknown[];
        return { none, planned, old };
      } finally {
        await runner.rollbackTransaction();
        await runner.release();
      }
    };
    expect(await migrated()).toEqual({
      none: [],
      planned: [
        { pass: 1, seconds: 0 },
        { pass: 2, seconds: 86_400 },
      ],
      old: { ordinal: 0 },
    });
  });
});
