import { execFile, spawnSync } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ArchiveKind } from '../../../src/domain/archive/kinds.ts';
import { decimal } from '../../../src/domain/values/decimal.ts';
import { Partitions } from '../../../src/store/db/partitions.ts';
import { sql } from '../../../src/store/db/tx.ts';
import { archiveDay } from '../../../workers/jobs/archive-day.ts';
import { aStoredMarket } from '../../factories/stored-market.ts';
import { useTestDatabase } from '../../support/postgres/database.ts';
import { jobContext, testConfig } from '../workers/worker-harness.ts';

/** `.ci/run` installs the engines for this Python, so that CI skips nothing. */
const PYTHON = process.env['ENGINES_PYTHON'] ?? 'python3';
const mustRun = process.env['ENGINES_PYTHON'] !== undefined;
const hasEngines = () => spawnSync(PYTHON, ['-c', 'import duckdb, polars, pandas, pyarrow, chdb']).status === 0;
const REASON = 'skipped without the Python packages duckdb, polars, pandas, pyarrow and chdb';

const DATES = ['2026-03-05', '2026-03-06'];
const START = `${DATES[0]}T00:00:00Z`;
const ROWS = 30_000;

// Prices and sizes with all digits that a decimal column has, and rows over two days to the microsecond.
const FILL = [
  sql(
    'test_engine_trades',
    `INSERT INTO trade (token_id, ts, trade_id, price, size, side)
     SELECT $1, $2::timestamptz + n * interval '5.700013 seconds', 'trade ' || n, (n * 7919 % 999983)::numeric / 1000000,
       (n * 104729::bigint % 999999999989)::numeric / 1000000000000 + n * 1000003::bigint, CASE n % 3 WHEN 0 THEN 1 WHEN 1 THEN -1 END
     FROM generate_series(1, $3::int) AS n`,
  ),
  sql(
    'test_engine_prices',
    `INSERT INTO price_history (token_id, received_at, as_of, price, bid, ask)
     SELECT $1, $2::timestamptz + n * interval '5.7 seconds', $2::timestamptz, round(n::numeric / 999999999999999989 + 0.3, 18),
       CASE WHEN n % 2 = 0 THEN 0.123456789012345678 END, n::numeric / 1000000
     FROM generate_series(1, $3::int) AS n`,
  ),
  sql(
    'test_engine_candles',
    `INSERT INTO candle (token_id, interval_seconds, bucket, open, high, low, close, volume, notional, trades)
     SELECT $1, 60, extract(epoch FROM $2::timestamptz)::bigint + n * 60, 0.1, 0.9, 0.1, 0.000000000000000001 * n, n * 1.000000000001,
       n * 0.5, 3 FROM generate_series(0, least($3::int, 2879)) AS n`,
  ),
] as const;

const COLUMNS = {
  trades: { decimals: ['price', 'size', 'notional'], time: 'ts' },
  prices: { decimals: ['price', 'bid', 'ask'], time: 'received_at', history: true },
  candles: { decimals: ['close', 'volume', 'notional'], time: 'start' },
} as const satisfies Partial<Record<ArchiveKind, { decimals: readonly string[]; time: string; history?: true }>>;
type Kind = keyof typeof COLUMNS;

const SOURCE: Record<Kind, string> = {
  trades: 'SELECT price, size, price * size AS notional, ts FROM trade',
  prices: 'SELECT price, bid, ask, received_at FROM price_history',
  candles: 'SELECT close, volume, notional, to_timestamp(bucket) AS start FROM candle WHERE interval_seconds = 60',
};
const sumOf = (kind: Kind) => {
  const { decimals, time } = COLUMNS[kind];
  const micros = `(extract(epoch FROM ${time}) * 1000000)::bigint`;
  return sql(
    `test_engine_sum_${kind}`,
    `SELECT ARRAY[count(*)::text, ${decimals.map((name) => `sum(${name})::text`).join(', ')}, sum(${micros} % 86400000000)::text,
       min(${micros})::text, max(${micros})::text] AS sums FROM (${SOURCE[kind]}) s`,
  );
};

const test = useTestDatabase();
let dir = '';
let expected: Record<string, string[]> = {};

beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), 'archive-engines-'));
  const market = await aStoredMarket(test.db, { venue: 'kalshi', marketId: 'K-1' });
  const partitions = new Partitions(test.db);
  for (const table of ['trade', 'price_history'] as const) await partitions.ensure(table, [Date.parse(START)]);
  for (const statement of FILL) await test.db.query(statement, [market.outcomes[0]?.tokenId, START, ROWS]);
  const config = testConfig(test.url, { ARCHIVE_DIR: dir, VENUES: 'kalshi' });
  for (const kind of Object.keys(COLUMNS) as Kind[]) {
    for (const date of DATES)
      await archiveDay.run({ kind, venue: 'kalshi', date }, jobContext({ db: test.db, config }));
    const [row] = await test.db.query<{ sums: string[] }>(sumOf(kind));
    expected = { ...expected, [kind]: canonical(row?.sums ?? []) };
  }
});
afterAll(() => rm(dir, { recursive: true, force: true }));

/** Engines print zeros at the end of a decimal or not. */
function canonical(sums: readonly string[]): string[] {
  return sums.map((text) => decimal(text));
}

describe.skipIf(!mustRun && !hasEngines())('other engines', () => {
  it(`read the files with the sums of Postgres to the last digit (${REASON})`, async () => {
    const script = join(import.meta.dirname, 'engines.py');
    const { stdout } = await promisify(execFile)(PYTHON, [script, dir, JSON.stringify(COLUMNS)]);
    const read = JSON.parse(stdout) as Record<string, Record<Kind, string[]>>;
    expect(Object.keys(read)).toEqual(['DuckDB', 'Polars', 'pandas with pyarrow', 'chdb']);
    for (const [engine, kinds] of Object.entries(read)) {
      const found = Object.fromEntries(Object.entries(kinds).map(([kind, sums]) => [kind, canonical(sums)]));
      expect({ engine, ...found }).toEqual({ engine, ...expected });
    }
  });
});
