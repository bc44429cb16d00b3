import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { performance } from 'node:perf_hooks';
import { Writable } from 'node:stream';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { ArchiveFolder } from '../../api/reads/archive-folder.ts';
import { ArchiveHistory } from '../../api/reads/archive-history.ts';
import { makeDay } from '../../src/archive/make-day.ts';
import { ArchiveReader } from '../../src/archive/reader.ts';
import { createLogger } from '../../src/observe/logger.ts';
import { isPartitionArchived, isPartitionUnchanged } from '../../src/store/archive/catalog.ts';
import { copyRows } from '../../src/store/archive/copy.ts';
import { moveSeam, Partitions } from '../../src/store/db/partitions.ts';
import { sql } from '../../src/store/db/tx.ts';
import { readMarketTrades } from '../../src/store/series/market-series.ts';
import { retirePartitions } from '../../src/store/series/retention.ts';
import { aStoredMarket } from '../../test/factories/stored-market.ts';
import { createTestDatabase, type TestDatabase } from '../../test/support/postgres/database.ts';
import { mib, percentile, sizeOf, whole } from '../support/numbers.ts';
import { note, report } from '../support/report.ts';
import { databaseBytes, runLarge, settle, storingTrades } from '../support/stored-trades.ts';

/** Trades of the month: BENCH_ROWS=5000000 for the published figure. */
const ROWS = sizeOf('BENCH_ROWS', 100_000);
const READS = sizeOf('BENCH_READS', 200);
const MARKETS = 500;
const DAYS = 31;
const START_MS = Date.UTC(2026, 2, 1);
const DAY_MS = 86_400_000;
const RANGE = { start: START_MS / 1000, end: (START_MS + DAYS * DAY_MS) / 1000 };

/** Without the candles of archived intervals, which cost more than the trades: BENCH_CANDLES=coarse, for a month of 50,000,000 trades. */
const IS_COARSE = process.env['BENCH_CANDLES'] === 'coarse';

const MADE = `SELECT ($1::bigint[])[1 + n % $3::int] AS token_id, $2::timestamptz + n / $3::int * (interval '1 day' / (1 + $4::int / $3::int)) AS ts,
     '0x' || md5(n::text) AS trade_id, (1 + n % 999) / 1000.0 AS price, round((n * 7919::bigint % 1000003) / 1000.0, 6) AS size,
     CASE n % 2 WHEN 0 THEN 1 ELSE -1 END::smallint AS side
   FROM generate_series(0, $4::int - 1) n`;
const FILL = IS_COARSE
  ? sql(
      'bench_fill_month_coarsely',
      `WITH made AS (${MADE}),
         stored AS (
           INSERT INTO trade (token_id, ts, trade_id, price, size, side)
           SELECT token_id, ts, trade_id, price, size, side FROM made ORDER BY 1, 2)
       INSERT INTO candle (token_id, interval_seconds, bucket, open, high, low, close, volume, notional, trades)
       SELECT t, 86400, extract(epoch FROM $2::timestamptz)::bigint, 0.5, 0.5, 0.5, 0.5, 1, 1, 1 FROM unnest($1::bigint[]) t`,
    )
  : storingTrades('bench_fill_month', MADE);

let test: TestDatabase;
let dir = '';
let reader: ArchiveReader;
const log = createLogger({ process: 'test', level: 'silent' });

beforeAll(async () => {
  test = await createTestDatabase();
  dir = await mkdtemp(join(tmpdir(), 'bench-archived-'));
  reader = new ArchiveReader(dir);
  await new Partitions(test.db).ensure('trade', [START_MS]);
  const tokens: bigint[] = [];
  for (let n = 0; n < MARKETS; n += 1)
    tokens.push(...(await aStoredMarket(test.db, { marketId: `m${n}` })).outcomes.map(({ tokenId }) => tokenId));
  for (let day = 0; day < DAYS; day += 1) {
    const at = new Date(START_MS + day * DAY_MS).toISOString();
    await runLarge(test.db, FILL, [tokens, at, tokens.length, Math.floor(ROWS / DAYS)]);
  }
  await settle(test.db);
});
afterAll(async () => {
  await reader.close();
  await test.drop();
  await rm(dir, { recursive: true, force: true });
});

const MOVE_CANDLES = sql('bench_move_candles', `UPDATE archive_seam SET until = $1 WHERE kind = 'candles'`);
/** Rows of a table are overwritten; the size shows what is left of them only afterwards. */
const VACUUM_CANDLES = sql('bench_vacuum_candles', 'VACUUM (FULL) candle');

interface Occupied {
  bytes: number;
  /** The time in which a logical backup reads the tables of the history. */
  dumpMs: number;
}

async function occupied(): Promise<Occupied> {
  const fromMs = performance.now();
  for (const table of ['trade', 'candle']) {
    const nowhere = new Writable({ write: (_chunk, _encoding, done) => done() });
    await test.db.transaction((tx) => copyRows(tx, `COPY (SELECT * FROM ${table}) TO STDOUT`, [nowhere]));
  }
  return { dumpMs: performance.now() - fromMs, bytes: await databaseBytes(test.db) };
}

/** Makes the files of all days. Returns their bytes. */
async function makeAll(kind: 'trades' | 'candles'): Promise<number> {
  const signal = new AbortController().signal;
  let bytes = 0;
  for (let day = 0; day < DAYS; day += 1) {
    const date = new Date(START_MS + day * DAY_MS).toISOString().slice(0, 10);
    const made = await makeDay(
      { kind, venue: 'polymarket', date },
      { db: test.db, dir, log, signal, tag: String(day) },
    );
    bytes += Number(made['bytes'] ?? 0);
  }
  return bytes;
}

/** Milliseconds of the first page of the month of one market after another. */
async function readAll(history: ArchiveHistory): Promise<number[]> {
  const durations: number[] = [];
  for (let n = 0; n < READS; n += 1) {
    const query = { range: RANGE, direction: 'desc', limit: 100 } as const;
    const fromMs = performance.now();
    const read = await readMarketTrades(
      test.db,
      { venues: ['polymarket'], marketId: `m${(n * 7919) % MARKETS}` },
      query,
    );
    if (!read) throw new TypeError('the market is stored');
    const rows = await history.withPast(read, { ...query, outcomeId: undefined });
    durations.push(performance.now() - fromMs);
    expect(rows.length).toBeGreaterThan(Math.min(100, ROWS / MARKETS / 2));
  }
  return durations;
}

it('reads the first page of an archived month of one market, against the same read from Postgres', async () => {
  const history = new ArchiveHistory({ db: test.db, folder: new ArchiveFolder(dir, log), reader, log });
  await readAll(history);
  const stored = await readAll(history);
  const before = await occupied();
  const files = await makeAll('trades');
  const { dropped } = await retirePartitions({
    db: test.db,
    partitions: new Partitions(test.db),
    table: 'trade',
    beforeMs: START_MS + DAYS * DAY_MS,
    archive: {
      has: (tx, partition) => isPartitionArchived(tx, 'trades', partition),
      isUnchanged: (tx, partition) => isPartitionUnchanged(tx, 'trades', partition),
      moveSeam: (tx, untilMs) => moveSeam(tx, 'trades', untilMs),
    },
  });
  expect(dropped).toHaveLength(1);
  const [first = Number.NaN] = await readAll(history);
  const archived = await readAll(history);
  const [p95, baseline] = [percentile(archived, 0.95), percentile(stored, 0.95)];
  report([
    {
      title: `first page of an archived month of one market, ${whole(ROWS)} trades in ${DAYS} files`,
      measured: `p50 ${percentile(archived, 0.5).toFixed(1)} ms, p95 ${p95.toFixed(1)} ms`,
      baseline: `from Postgres p50 ${percentile(stored, 0.5).toFixed(1)} ms, p95 ${baseline.toFixed(1)} ms`,
      ratio: baseline / p95,
      goal: { atMost: 100, of: { name: 'p95', value: p95, unit: 'ms' } },
    },
  ]);
  note(`the very first read, which opens DuckDB and compares the first file with its sha256: ${first.toFixed(0)} ms`);
  const afterTrades = await occupied();
  const line = (what: string, { bytes, dumpMs }: Occupied) =>
    `${what}: ${mib(bytes)}, all rows copied out in ${(dumpMs / 1000).toFixed(1)} s`;
  note(line('database before the drop', before));
  note(line(`without the trades, ${mib(files)} in files`, afterTrades));
  if (IS_COARSE) return;
  const candleFiles = await makeAll('candles');
  await test.db.query(MOVE_CANDLES, [new Date(START_MS + DAYS * DAY_MS).toISOString()]);
  const fromMs = performance.now();
  await makeAll('candles');
  const droppedMs = performance.now() - fromMs;
  await test.db.query(VACUUM_CANDLES);
  const afterCandles = await occupied();
  note(line(`without candles of 1m and 5m, ${mib(candleFiles)} in files`, afterCandles));
  note(`candles dropped and compared with their files in ${(droppedMs / 1000).toFixed(1)} s`);
});
