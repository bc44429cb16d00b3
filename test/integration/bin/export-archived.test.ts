import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { mkdtemp, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ArchivedRows } from '../../../bin/export/archived-rows.ts';
import { WorkFolder } from '../../../bin/export/work-folder.ts';
import { openDuckdb } from '../../../src/archive/duckdb.ts';
import type { ExportKind } from '../../../src/domain/archive/exported.ts';
import { ARCHIVE_KIND_NAMES, type ArchiveKind, fileColumns } from '../../../src/domain/archive/kinds.ts';
import { checkSchema } from '../../../src/domain/archive/schema.ts';
import { INTERVALS } from '../../../src/domain/markets/candle.ts';
import type { TradeRecord } from '../../../src/domain/markets/market.ts';
import { decimal } from '../../../src/domain/values/decimal.ts';
import { readDueDays, switchArchiveOn } from '../../../src/store/archive/catalog.ts';
import { listPartitions, Partitions } from '../../../src/store/db/partitions.ts';
import { type Database, sql } from '../../../src/store/db/tx.ts';
import { type ExportRequest, exportPages } from '../../../src/store/series/export.ts';
import { writeTrades } from '../../../src/store/series/trades.ts';
import { archiveDay } from '../../../workers/jobs/archive-day.ts';
import { maintainStorage } from '../../../workers/jobs/maintain-storage.ts';
import { aStoredMarket } from '../../factories/stored-market.ts';
import { csvRows } from '../../support/csv.ts';
import { eventually } from '../../support/eventually.ts';
import { useTestDatabase } from '../../support/postgres/database.ts';
import { jobContext, testConfig, wakeRecorder } from '../workers/worker-harness.ts';
import { ODDSWIRE, oddswire } from './run-command.ts';

/** A database whose history moves to files, and one with the same writes that never archives. */
const archived = useTestDatabase();
const kept = useTestDatabase();

const NOW = Date.parse('2026-03-05T12:00:00Z');
const DAY_MS = 86_400_000;
/** The first day that stays in Postgres alone. */
const UNARCHIVED = Date.parse('2026-02-04T00:00:00Z');
/** The first days have many trades: several pages of an outcome. */
const MANY = 40_000;
const MARKETS = ['m1', 'm2', 'quiet'];
const IDS = ['quote " comma , ', ' space', 'line \r\n end', 'tab\t', '雨', 'bell \u0007', ''];

const FILL_TRADES = sql(
  'test_export_seam_trades',
  `INSERT INTO trade (token_id, ts, trade_id, price, size, side, ordinal)
   SELECT (SELECT id FROM token WHERE mint = CASE WHEN n % 50 = 0 THEN 'm2:' ELSE 'm1:' END || CASE n % 2 WHEN 0 THEN 'yes' ELSE 'no' END),
     $1::timestamptz + (n / 3) * $3::interval, 't' || n, round(n % 97 / 97.0, (n % 19)::int), n % 13 + 0.5, (n % 3 - 1)::smallint, n % 2
   FROM generate_series(1, $2::int) AS n`,
);
const FILL_PRICES = sql(
  'test_export_seam_prices',
  `INSERT INTO price_history (token_id, received_at, as_of, price, bid, ask)
   SELECT (SELECT id FROM token WHERE mint = CASE n % 3 WHEN 0 THEN 'm2:yes' ELSE 'm1:no' END), $1::timestamptz + n * interval '7301 seconds',
     $1::timestamptz + n * interval '7300 seconds', n % 89 / 89.0, CASE n % 2 WHEN 0 THEN 0.10 END, NULL
   FROM generate_series(1, $2::int) AS n`,
);
const FILL_BOOKS = sql(
  'test_export_seam_books',
  `INSERT INTO book_history (token_id, received_at, as_of, bids, asks)
   SELECT (SELECT id FROM token WHERE mint = CASE n % 3 WHEN 0 THEN 'm2:yes' ELSE 'm1:no' END), $1::timestamptz + n * interval '7301 seconds',
     $1::timestamptz, jsonb_build_array(jsonb_build_array('0.3', n::text, 2)), '[]'
   FROM generate_series(1, $2::int) AS n`,
);
/** Its value never changes: retention carries it from partition to partition. */
const QUIET_PRICE = sql(
  'test_export_seam_quiet',
  `INSERT INTO price_history (token_id, received_at, as_of, price) SELECT id, $1, $1, 0.5 FROM token WHERE mint = 'quiet:yes'`,
);
const AGE_TOKENS = sql('test_export_age', 'UPDATE token SET created_at = $1');
const AGE_MARKETS = sql('test_export_age_markets', 'UPDATE market SET updated_at = $1');
const AGE_FILES = sql('test_export_age_files', `UPDATE archive_file SET made_at = made_at - interval '2 hours'`);
const CORRECTIONS = sql('test_export_corrections', 'SELECT count(*)::int AS count FROM archive_correction');
const NO_MARKS = sql('test_export_no_marks', `DELETE FROM mark WHERE stage = 'fold-candles'`);
const FIRST_FILE = sql(
  'test_export_first_file',
  `SELECT file, date::text AS date FROM archive_file WHERE kind = 'trades' AND superseded_at IS NULL AND file IS NOT NULL ORDER BY date LIMIT 1`,
);
const NO_CANDLES = sql('test_export_no_candles', 'DELETE FROM candle');
const FILL_CANDLES = sql(
  'test_export_candles',
  `INSERT INTO candle (token_id, interval_seconds, bucket, open, high, low, close, volume, notional, trades)
   SELECT t.id, s, b, b / s % 89 / 89.0, 0.90, 1e-25, 0.5, b % 7 + 0.1, 2, 1 + (b / s % 5)::int
   FROM token t CROSS JOIN unnest(ARRAY[60, 300, 900, 86400]) AS s
   CROSS JOIN LATERAL generate_series(extract(epoch FROM $1::timestamptz)::bigint, extract(epoch FROM $1::timestamptz)::bigint + 20 * 86400,
     greatest(86400, s * (7 + t.id % 3))) AS b
   UNION ALL
   SELECT t.id, s, b, 0.25, 0.5, 0.25, 0.5, 1, 2, 3 FROM token t CROSS JOIN unnest(ARRAY[60, 300, 900]) AS s
   CROSS JOIN LATERAL generate_series(extract(epoch FROM $1::timestamptz)::bigint + 4 * 86400 + s, extract(epoch FROM $1::timestamptz)::bigint + 5 * 86400 - s, s * 2) AS b
   ON CONFLICT DO NOTHING`,
);
/** As a fold of late trades leaves it: it counts, and not that of the file. */
const CHANGE_CANDLE = sql(
  'test_export_change_candle',
  `WITH allowed AS MATERIALIZED (SELECT set_config('oddswire.archived_candles', 'on', true))
   INSERT INTO candle SELECT id, 60, extract(epoch FROM $1::timestamptz)::bigint, 0.1, 0.2, 0.1, 0.2, 5, 6, 7 FROM token, allowed WHERE mint = 'm1:yes'
   ON CONFLICT (token_id, interval_seconds, bucket) DO UPDATE SET volume = 5, trades = 7, close = 0.2, open = 0.1, high = 0.2, low = 0.1, notional = 6`,
);
const FINER = sql(
  'test_export_finer',
  `SELECT count(*)::int AS count FROM candle WHERE interval_seconds < 900 AND bucket < extract(epoch FROM timestamptz '2026-02-01T00:00:00Z')`,
);
const SET_SCHEMA = sql('test_export_schema', 'UPDATE archive_file SET schema_version = $2 WHERE file = $1');

let dir = '';
let folder = '';
const START = Date.parse('2026-01-29T00:00:00Z');

const context = (nowMs = NOW) =>
  jobContext({
    db: archived.db,
    config: testConfig(archived.url, {
      ARCHIVE_DIR: dir,
      ARCHIVE_KEEP_DAYS: '20',
      RETENTION_PRICE_HISTORY_DAYS: '20',
      RETENTION_BOOK_HISTORY_DAYS: '20',
    }),
    producer: wakeRecorder(),
    now: () => nowMs,
  });

async function both(work: (db: Database) => Promise<unknown>): Promise<void> {
  await work(archived.db);
  await work(kept.db);
}

async function archiveAll(kinds: readonly ArchiveKind[] = ['trades', 'prices', 'books']): Promise<void> {
  const pairs = kinds.map((kind) => ({ kind, venue: 'polymarket' }));
  for (;;) {
    const days = await readDueDays(archived.db, { pairs, afterHours: 1, limit: 200 });
    const past = days.filter(({ date }) => Date.parse(date) < UNARCHIVED);
    if (past.length === 0) return;
    for (const day of past) await archiveDay.run(day, context());
  }
}

/** Stores trades that arrive late. */
async function storeLate(trades: readonly Partial<TradeRecord>[]): Promise<void> {
  const records = trades.map((trade) => ({
    price: decimal('0.25'),
    size: decimal('3'),
    side: 'buy',
    ordinal: 1,
    ...trade,
  }));
  await both(async (db) => {
    await new Partitions(db).ensure(
      'trade',
      records.map(({ tsMs }) => tsMs ?? 0),
    );
    await db.transaction((tx) => writeTrades(tx, records as TradeRecord[], 'USDC'));
    await db.query(NO_MARKS);
  });
}

beforeAll(async () => {
  [dir, folder] = [await mkdtemp(join(tmpdir(), 'export-seam-')), await mkdtemp(join(tmpdir(), 'export-out-'))];
  await switchArchiveOn(archived.db, ARCHIVE_KIND_NAMES);
  for (const marketId of MARKETS) await both((db) => aStoredMarket(db, { marketId }));
  const start = new Date(START).toISOString();
  await both(async (db) => {
    await db.query(AGE_TOKENS, [start]);
    await db.query(AGE_MARKETS, [start]);
    const days = Array.from({ length: 36 }, (_, n) => START + n * DAY_MS);
    const partitions = new Partitions(db);
    for (const table of ['trade', 'price_history', 'book_history', 'observation'] as const)
      await partitions.ensure(table, days);
    await db.query(FILL_TRADES, [start, MANY, '13 seconds']);
    await db.query(FILL_TRADES, ['2026-02-03T00:00:00Z', 1_000, '5000 seconds']);
    await db.query(FILL_PRICES, [start, 300]);
    await db.query(FILL_BOOKS, [start, 300]);
    await db.query(QUIET_PRICE, [start]);
  });
  await storeLate([
    ...IDS.map((tradeId, n) => ({ outcomeId: 'm2:yes', tradeId, tsMs: START + n })),
    {
      outcomeId: 'm1:no',
      tradeId: 'huge',
      tsMs: START + 5,
      price: decimal(`0.${'1'.repeat(25)}`),
      size: decimal(`1${'0'.repeat(22)}`),
    },
    { outcomeId: 'm1:no', tradeId: 'no side', tsMs: START + 6, side: null },
  ] as Partial<TradeRecord>[]);
});
afterAll(async () => {
  await Promise.all([dir, folder].map((path) => rm(path, { recursive: true, force: true })));
});

const argsOf = (kind: ExportKind, ...more: string[]) => [
  ...['export', '--venue', 'polymarket', '--kind', kind, '--to', '2026-03-06'],
  ...more,
];
const ofArchived = (argv: readonly string[], environment: Record<string, string> = {}) =>
  oddswire(argv, { DATABASE_URL: archived.url, ARCHIVE_DIR: dir, ...environment });
const ofKept = (argv: readonly string[]) => oddswire(argv, { DATABASE_URL: kept.url });

/** Compares the standard output of both for one request. */
async function compare(argv: readonly string[]): Promise<void> {
  const [one, other] = await Promise.all([ofArchived(argv), ofKept(argv)]);
  expect([argv, one.code, one.stderr.includes('archive')]).toEqual([argv, 0, false]);
  expect(other.code).toBe(0);
  if (one.stdout !== other.stdout) expect([argv, one.stdout.split('\n')]).toEqual([argv, other.stdout.split('\n')]);
}

/** Compares the rows of both without a process of the command; returns their length. */
async function comparePages(asked: ExportRequest): Promise<number> {
  const [one, other] = await Promise.all([pagesOf(archived.db, asked), pagesOf(kept.db, asked)]);
  if (one !== other) expect([asked, one.split('\n')]).toEqual([asked, other.split('\n')]);
  return one.length;
}

async function compareAll(): Promise<void> {
  for (const kind of ['trades', 'prices', 'books'] as const) {
    await compare(argsOf(kind, '--out', '-'));
    expect(await comparePages({ ...request(kind), format: 'jsonl' })).toBeGreaterThan(1_000);
    await comparePages({ ...request(kind), marketId: 'm2' });
    await comparePages({ ...request(kind), marketId: 'quiet', range: range('2026-01-31', '2026-03-06') });
    for (const [from, to] of [
      ['2026-01-30T11:00Z', '2026-02-02'],
      ['2026-01-30', '2026-01-31T00:00:01Z'],
      ['2026-02-01', '2026-02-21'],
    ] as const)
      await comparePages({ ...request(kind), range: range(from, to) });
  }
}

const range = (from: string, to: string) => ({ start: Date.parse(from) / 1_000, end: Date.parse(to) / 1_000 });

const request = (kind: ExportKind): ExportRequest => ({
  ...{ kind, format: 'csv', venue: 'polymarket', intervals: INTERVALS, decimalFormat: 'number' },
  range: { start: 0, end: Math.floor(NOW / 1_000) },
});

async function pagesOf(db: Database, asked: ExportRequest, between?: (page: number) => Promise<void>): Promise<string> {
  const work = await WorkFolder.temporary();
  const rows = new ArchivedRows({ db, folder: dir, work });
  let [text, page] = ['', 0];
  try {
    for await (const { text: lines } of exportPages(db, asked, null, (place) => rows.open(asked, place))) {
      text += lines;
      await between?.(page);
      page += 1;
    }
  } finally {
    await work.remove();
  }
  return text;
}

describe('oddswire export across the seam of the archive', () => {
  it('has every row once when partitions are dropped between two pages', async () => {
    await archiveAll();
    const [trades, prices] = await Promise.all([
      pagesOf(archived.db, request('trades'), async (page) => {
        if (page === 1) await maintainStorage.run({}, context());
      }),
      pagesOf(kept.db, request('prices')),
    ]);
    expect((await listPartitions(archived.db, 'trade')).map(({ name }) => name)).not.toContain('trade_202601');
    expect((await listPartitions(archived.db, 'price_history')).map(({ name }) => name)).not.toContain(
      'price_history_202601',
    );
    expect(trades === (await pagesOf(kept.db, request('trades')))).toBe(true);
    expect(prices === (await pagesOf(archived.db, request('prices')))).toBe(true);
  });

  it('writes the bytes of a database that never archived', async () => {
    await compareAll();
  });

  it('writes these bytes when it is killed again and again', async () => {
    const [file, whole] = [join(folder, 'killed.csv'), join(folder, 'whole.csv')];
    const environment = { DATABASE_URL: archived.url, ARCHIVE_DIR: dir };
    const state = `${file}.part.json`;
    const rowsOf = () => (existsSync(state) ? (JSON.parse(readFileSync(state, 'utf8')) as { rows: number }).rows : 0);
    for (const kill of [1, 2]) {
      const before = rowsOf();
      const child = spawn(process.execPath, [ODDSWIRE, ...argsOf('trades', '--out', file)], {
        env: { PATH: process.env['PATH'], ...environment },
        stdio: 'ignore',
      });
      const ended = once(child, 'exit');
      await eventually(async () => child.exitCode !== null || rowsOf() > before, Boolean, { everyMs: 2 });
      child.kill('SIGKILL');
      await ended;
      expect([kill, existsSync(`${file}.part`), existsSync(file)]).toEqual([kill, true, false]);
    }
    expect((await ofArchived(argsOf('trades', '--out', file))).stderr).toContain('continues');
    expect((await ofKept(argsOf('trades', '--out', whole))).code).toBe(0);
    expect(readFileSync(file).equals(readFileSync(whole))).toBe(true);
    expect(readdirSync(folder).sort()).toEqual(['killed.csv', 'whole.csv']);
  });

  it('has late trades of a dropped day before and after their file has them, and when that happens between two pages', async () => {
    await storeLate([
      { outcomeId: 'm1:no', tradeId: 'late', tsMs: START + 3_600_000 },
      { outcomeId: 'm2:yes', tradeId: 'late', tsMs: START + DAY_MS },
      // The file has it.
      { outcomeId: 'm2:yes', tradeId: ' space', tsMs: START + 1 },
      { outcomeId: 'quiet:no', tradeId: 'only', tsMs: START + 2 * DAY_MS },
    ] as Partial<TradeRecord>[]);
    expect(await archived.db.query(CORRECTIONS)).not.toEqual([{ count: 0 }]);
    await comparePages({ ...request('trades'), format: 'jsonl' });
    await comparePages({ ...request('trades'), marketId: 'quiet' });
    await archived.db.query(AGE_FILES);
    const during = await pagesOf(archived.db, request('trades'), async (page) => {
      if (page === 1) await archiveAll();
    });
    expect(await archived.db.query(CORRECTIONS)).toEqual([{ count: 0 }]);
    expect(during === (await pagesOf(kept.db, request('trades')))).toBe(true);
    await compare(argsOf('trades', '--out', '-'));
  });

  it('writes Parquet with the columns of the archive, exact digits and the version of the schema', async () => {
    for (const kind of ['trades', 'prices', 'books', 'candles'] as const) {
      const file = join(folder, `${kind}.parquet`);
      const made = await ofArchived(argsOf(kind, '--format', 'parquet', '--out', file));
      expect([made.code, made.stderr]).toEqual([0, expect.stringMatching(`(^|\n)[\\d,]+ ${kind}\n$`)]);
      const bytes = await readFile(file);
      expect(checkSchema(bytes.subarray(-8 - bytes.readUInt32LE(bytes.length - 8)))).toBe(1);
      const limits = { folders: [`${folder}/`], spillFolder: '', memoryMb: 256, threads: 1 };
      const duckdb = await openDuckdb(limits, new AbortController().signal);
      try {
        // A revision of a file updates candles, which the other database does not fold here.
        const lines = kind === 'candles' ? ofArchived : ofKept;
        const [csv, rows] = [csvRows((await lines(argsOf(kind, '--out', '-'))).stdout), `read_parquet('${file}')`];
        const columns = await duckdb.run(`DESCRIBE SELECT * FROM ${rows}`);
        expect(columns.map((row) => row['column_name'])).toEqual(fileColumns(kind).map(({ name }) => name));
        const values = { trades: 'size', prices: 'price', books: 'bids', candles: 'open' }[kind];
        const text = kind === 'books' ? 'bids' : `coalesce(rtrim(rtrim(${values}::VARCHAR, '0'), '.'), ${values}_text)`;
        const found = await duckdb.run(`SELECT market_id, outcome_id, ${text} AS value FROM ${rows}`);
        const sorted = (list: readonly (string | null | undefined)[][]) => list.map((each) => each.join(' ')).sort();
        expect(
          sorted(found.map((row) => [String(row['market_id']), String(row['outcome_id']), String(row['value'])])),
        ).toEqual(sorted(csv.map((row) => [row['market_id'], row['outcome_id'], row[values]])));
        if (kind === 'trades') {
          const order = await duckdb.run(
            `SELECT count(*) AS n FROM (SELECT *, lag((market_id, ts)) OVER () AS before FROM ${rows}) WHERE before > (market_id, ts)`,
          );
          expect(Number(order[0]?.['n'])).toBe(0);
        }
      } finally {
        await duckdb.close();
      }
      rmSync(file);
    }
    expect(readdirSync(folder).filter((name) => !name.endsWith('.csv'))).toEqual([]);
    const streamed = await ofArchived(argsOf('trades', '--format', 'parquet', '--out', '-'));
    expect([streamed.code, streamed.stderr.includes('--format parquet needs a file')]).toEqual([2, true]);
  });

  it('has candles of files and of Postgres in the order of their length, and those that changed since', async () => {
    await both(async (db) => {
      await db.query(NO_CANDLES);
      await db.query(FILL_CANDLES, [new Date(START).toISOString()]);
    });
    await archiveAll(['candles']);
    await maintainStorage.run({}, context(Date.parse('2026-04-05T12:00:00Z')));
    await compare(argsOf('candles', '--out', '-'));
    await archiveAll(['candles']);
    expect(await archived.db.query(FINER)).toEqual([{ count: 0 }]);
    await both((db) => db.query(CHANGE_CANDLE, ['2026-01-30T05:01:00Z']));
    await compare(argsOf('candles', '--out', '-'));
    for (const chosen of [
      { format: 'jsonl' },
      { marketId: 'm1', range: range('2026-01-30', '2026-03-06'), intervals: ['1m'] },
      { intervals: ['15m'] },
      { range: range('2026-02-01', '2026-03-06'), intervals: ['5m'] },
    ] as const) {
      expect(await comparePages({ ...request('candles'), ...chosen })).toBeGreaterThan(100);
    }
    const parquet = join(folder, 'finer.parquet');
    const made = await ofArchived(argsOf('candles', '--format', 'parquet', '--out', parquet));
    const rows = csvRows((await ofKept(argsOf('candles', '--out', '-'))).stdout).length;
    expect([made.code, made.stderr]).toEqual([0, expect.stringContaining(`${rows.toLocaleString('en-US')} candles\n`)]);
    rmSync(parquet);
  });

  it('starts a Parquet file again when it was killed', async () => {
    const [file, work] = [join(folder, 'again.parquet'), join(folder, 'again.parquet.part.work')];
    const child = spawn(process.execPath, [ODDSWIRE, ...argsOf('trades', '--format', 'parquet', '--out', file)], {
      env: { PATH: process.env['PATH'], DATABASE_URL: archived.url, ARCHIVE_DIR: dir },
      stdio: 'ignore',
    });
    const ended = once(child, 'exit');
    await eventually(async () => child.exitCode !== null || existsSync(work), Boolean, { everyMs: 2 });
    child.kill('SIGKILL');
    await ended;
    expect([existsSync(work), existsSync(file)]).toEqual([true, false]);
    expect((await ofArchived(argsOf('trades', '--format', 'parquet', '--out', file))).code).toBe(0);
    expect(readdirSync(folder).filter((name) => name.startsWith('again'))).toEqual(['again.parquet']);
    rmSync(file);
  });

  it('ends with an error before its output begins when it cannot read a file', async () => {
    const failure = async (environment: Record<string, string> = {}, ...more: string[]) => {
      const { code, stdout, stderr } = await ofArchived(argsOf('trades', ...more, '--out', '-'), environment);
      return [code, stdout, stderr.trim().split('\n').at(-1)];
    };
    const [file] = await archived.db.query<{ file: string; date: string }>(FIRST_FILE);
    const place = join(dir, 'trades', 'venue=polymarket', `date=${file?.date}`, String(file?.file));
    const bytes = await readFile(place);
    await rename(place, `${place}.away`);
    expect(await failure()).toEqual([1, '', expect.stringContaining(`the file is missing: ${file?.file}`)]);
    await writeFile(place, bytes.subarray(0, bytes.length - 1));
    expect(await failure()).toEqual([1, '', expect.stringContaining('the file has another size than in the catalog')]);
    const changed = Buffer.from(bytes);
    changed[100] = (changed[100] ?? 0) ^ 1;
    await writeFile(place, changed);
    expect(await failure()).toEqual([1, '', expect.stringContaining('another sha256 than in the catalog')]);
    // Days behind it are exported.
    expect((await failure({}, '--from', '2026-01-30'))[0]).toBe(0);
    await rename(`${place}.away`, place);
    await archived.db.query(SET_SCHEMA, [file?.file, 99]);
    expect(await failure()).toEqual([1, '', expect.stringContaining('the columns of a newer release')]);
    await archived.db.query(SET_SCHEMA, [file?.file, 1]);
    const off = await oddswire(argsOf('trades', '--out', '-'), { DATABASE_URL: archived.url });
    expect([off.code, off.stdout, off.stderr.includes('set ARCHIVE_DIR')]).toEqual([1, '', true]);
    const without = join(folder, 'without.cjs');
    await writeFile(
      without,
      `const { Module } = require('node:module'); const found = Module._resolveFilename;
       Module._resolveFilename = function (name, ...rest) { if (name.startsWith('@duckdb/')) throw new Error('gone'); return found.call(this, name, ...rest); };`,
    );
    const environment = { NODE_OPTIONS: `--require ${without}` };
    expect(await failure(environment)).toEqual([1, '', expect.stringContaining('@duckdb/node-api')]);
    const parquet = await ofArchived(
      argsOf('trades', '--format', 'parquet', '--out', join(folder, 'x.parquet')),
      environment,
    );
    expect([
      parquet.code,
      parquet.stderr.includes('--format parquet needs the optional packages @duckdb/node-api'),
    ]).toEqual([1, true]);
    expect(existsSync(join(folder, 'x.parquet'))).toBe(false);
  });
});
