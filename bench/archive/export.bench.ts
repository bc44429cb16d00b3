import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createWriteStream, readdirSync, readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { performance } from 'node:perf_hooks';
import { pipeline } from 'node:stream/promises';
import pg from 'pg';
import { to as copyTo } from 'pg-copy-streams';
import { afterAll, beforeAll, it } from 'vitest';
import { switchArchiveOn } from '../../src/store/archive/catalog.ts';
import { Partitions } from '../../src/store/db/partitions.ts';
import { sql } from '../../src/store/db/tx.ts';
import { aStoredMarket } from '../../test/factories/stored-market.ts';
import { jobContext, testConfig, wakeRecorder } from '../../test/integration/workers/worker-harness.ts';
import { createTestDatabase, type TestDatabase } from '../../test/support/postgres/database.ts';
import { archiveDay } from '../../workers/jobs/archive-day.ts';
import { maintainStorage } from '../../workers/jobs/maintain-storage.ts';
import { mib, percentile, sizeOf, whole } from '../support/numbers.ts';
import { note, report } from '../support/report.ts';

/** Trades of a month: BENCH_ROWS=5000000 for the figure of the documentation. */
const ROWS = sizeOf('BENCH_ROWS', 200_000);
const ROUNDS = sizeOf('BENCH_ROUNDS', 3);
/** A part of the measurements, for many rows: `BENCH_SOURCES=files BENCH_FORMATS=csv,parquet`. */
const FORMATS = process.env['BENCH_FORMATS']?.split(',') ?? ['csv', 'jsonl', 'parquet'];
const SOURCES = process.env['BENCH_SOURCES']?.split(',') ?? ['Postgres', 'files'];
const FILL_ROWS = 1_000_000;
const MARKETS = 500;
const DAYS = 28;
const START = '2026-02-01T00:00:00Z';
const SAMPLE_MS = 200;

const FILL = sql(
  'bench_fill_export',
  `INSERT INTO trade (token_id, ts, trade_id, price, size, side, ordinal, received_at)
   SELECT ($1::bigint[])[1 + n * 7919::bigint % $3::int], at, '0x' || md5(n::text) || md5((-n)::text), (1 + n % 999) / 1000.0,
     round((n * 7919::bigint % 1000003) / 1000.0 + n % 97 / 1000000.0, 6), CASE n % 2 WHEN 0 THEN 1 ELSE -1 END, n % 2, at + interval '2.000003 seconds'
   FROM (SELECT n, $2::timestamptz + n * (interval '${DAYS} days' / $4::int) AS at FROM generate_series($5::int, $6::int - 1) n) s`,
);
const ANALYZE = sql('bench_analyze_export', 'VACUUM ANALYZE');
const AGE_TOKENS = sql('bench_age_export', 'UPDATE token SET created_at = $1');
/** The baseline has its rows also when those of the archive are in files alone. */
const KEEP = sql('bench_keep_export', 'CREATE UNLOGGED TABLE bench_trade AS SELECT * FROM trade');
/** The columns of the export, in no order. */
const PLAIN = `SELECT m.venue, m.venue_market_id, k.mint, t.trade_id, t.ts, t.ts AS time, t.price, t.size, t.side, t.ordinal
  FROM market m JOIN outcome o ON o.market_id = m.id JOIN token k ON k.id = o.token_id JOIN bench_trade t ON t.token_id = k.id
  WHERE m.venue = 'polymarket'`;
const COPIES = {
  csv: `COPY (${PLAIN}) TO STDOUT (FORMAT csv)`,
  json: `COPY (SELECT row_to_json(p) FROM (${PLAIN}) p) TO STDOUT`,
} as const;
type Copied = keyof typeof COPIES;

let test: TestDatabase;
let dir = '';
let client: pg.Client;

beforeAll(async () => {
  test = await createTestDatabase();
  dir = await mkdtemp(join(tmpdir(), 'bench-export-'));
  client = new pg.Client({ connectionString: test.url });
  await client.connect();
  await switchArchiveOn(test.db, ['trades']);
  await new Partitions(test.db).ensure('trade', [Date.parse(START)]);
  const tokens: bigint[] = [];
  for (let n = 0; n < MARKETS; n += 1)
    tokens.push(...(await aStoredMarket(test.db)).outcomes.map((each) => each.tokenId));
  await test.db.query(AGE_TOKENS, [START]);
  // The notes of one statement need memory for each of its rows.
  for (let from = 0; from < ROWS; from += FILL_ROWS) {
    await test.db.query(FILL, [tokens, START, tokens.length, ROWS, from, Math.min(from + FILL_ROWS, ROWS)]);
  }
  await test.db.query(KEEP);
  await test.db.query(ANALYZE);
});
afterAll(async () => {
  await client.end();
  await test.drop();
  await rm(dir, { recursive: true, force: true });
});

async function secondsOf(work: () => Promise<unknown>): Promise<number> {
  const fromMs = performance.now();
  await work();
  return (performance.now() - fromMs) / 1000;
}

/** Copies the rows to a file, and returns the seconds. */
async function copySeconds(form: Copied): Promise<number> {
  const out = join(dir, `plain.${form}`);
  const seconds = await secondsOf(() => pipeline(client.query(copyTo(COPIES[form])), createWriteStream(out)));
  await rm(out);
  return seconds;
}

const mean = (samples: readonly number[]) => samples.reduce((sum, each) => sum + each, 0) / samples.length;

const peaks = { command: 0, duckdb: 0 };

/** Runs the command, and notes the peaks of the memory of its process and of that of DuckDB. */
async function exported(format: string): Promise<void> {
  const out = join(dir, `export.${format}`);
  const child = spawn(
    process.execPath,
    [
      resolve('dist/bin/oddswire.js'),
      'export',
      '--venue',
      'polymarket',
      '--kind',
      'trades',
      '--format',
      format,
      '--out',
      out,
    ],
    {
      env: { PATH: process.env['PATH'], DATABASE_URL: test.url, ARCHIVE_DIR: dir },
      stdio: ['ignore', 'ignore', 'pipe'],
    },
  );
  let complaint = '';
  child.stderr.on('data', (text: Buffer) => {
    complaint += text.toString();
  });
  const timer = setInterval(() => samplePeaks(child.pid ?? 0), SAMPLE_MS);
  const [code] = (await once(child, 'exit')) as [number];
  clearInterval(timer);
  if (code !== 0 || !complaint.includes(`${whole(ROWS)} trades`)) throw new Error(`${code}: ${complaint}`);
  await rm(out);
}

/** The kernel keeps the peak of each process. */
function samplePeaks(pid: number): void {
  const peakOf = (id: number | string) => {
    const [, found] = /VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${id}/status`, 'utf8')) ?? [];
    return Number(found ?? 0) * 1024;
  };
  try {
    peaks.command = Math.max(peaks.command, peakOf(pid));
    for (const id of readdirSync(`/proc/${pid}/task`)) {
      for (const each of readFileSync(`/proc/${pid}/task/${id}/children`, 'utf8').split(' ').filter(Boolean))
        peaks.duckdb = Math.max(peaks.duckdb, peakOf(each));
    }
  } catch {
    // The process has ended, or the system has no such files.
  }
}

/** Each round copies before and after the export, so that other work of the machine meets both. */
async function measure(title: string): Promise<void> {
  for (const format of FORMATS) {
    const baselines: readonly Copied[] = format === 'jsonl' ? ['csv', 'json'] : ['csv'];
    const seconds: number[] = [];
    const copied: Record<Copied, number[]> = { csv: [], json: [] };
    const copyAll = async () => {
      for (const form of baselines) copied[form].push(await copySeconds(form));
    };
    await copyAll();
    for (let round = 0; round < ROUNDS; round += 1) {
      seconds.push(await secondsOf(() => exported(format)));
      await copyAll();
    }
    report(
      baselines.map((form) => ({
        title: `export of ${whole(ROWS)} trades from ${title} as ${format}`,
        measured: `${whole(ROWS / percentile(seconds, 0.5))} rows/s`,
        baseline: `COPY … TO a file of the same rows as ${form} ${whole(ROWS / mean(copied[form]))} rows/s`,
        ratio: mean(copied[form]) / percentile(seconds, 0.5),
        goal: { atLeast: 0.5 },
      })),
    );
  }
  note(`peak memory: ${mib(peaks.command)} of the command, ${mib(peaks.duckdb)} of DuckDB`);
}

it('exports trades from Postgres and from files, against a plain COPY of the same rows', async () => {
  if (SOURCES.includes('Postgres')) await measure('Postgres');
  const context = jobContext({
    db: test.db,
    config: testConfig(test.url, { ARCHIVE_DIR: dir, ARCHIVE_KEEP_DAYS: '7' }),
    producer: wakeRecorder(),
    now: () => Date.parse('2026-06-01T00:00:00Z'),
  });
  for (let day = 0; day < DAYS; day += 1) {
    const date = new Date(Date.parse(START) + day * 86_400_000).toISOString().slice(0, 10);
    await archiveDay.run({ kind: 'trades', venue: 'polymarket', date }, context);
  }
  await maintainStorage.run({}, context);
  if (SOURCES.includes('files')) await measure('files');
});
