import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { performance } from 'node:perf_hooks';
import { Writable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import pg from 'pg';
import { to as copyTo } from 'pg-copy-streams';
import { afterAll, beforeAll, it } from 'vitest';
import { Partitions } from '../../src/store/db/partitions.ts';
import { sql } from '../../src/store/db/tx.ts';
import { aStoredMarket } from '../../test/factories/stored-market.ts';
import { jobContext, testConfig, wakeRecorder } from '../../test/integration/workers/worker-harness.ts';
import { createTestDatabase, type TestDatabase } from '../../test/support/postgres/database.ts';
import { archiveDay } from '../../workers/jobs/archive-day.ts';
import { mib, percentile, sizeOf, whole } from '../support/numbers.ts';
import { note, report } from '../support/report.ts';

/** Trades of the day: BENCH_ROWS=2000000 for a busy venue. */
const ROWS = sizeOf('BENCH_ROWS', 200_000);
const ROUNDS = sizeOf('BENCH_ROUNDS', 3);
const MARKETS = 500;
const DATE = '2026-03-05';
const START = `${DATE}T00:00:00Z`;

/** Prices of tenths of a cent, sizes of six digits behind the point: the identities and the products hardly compress. */
const FILL = sql(
  'bench_fill_archive',
  `INSERT INTO trade (token_id, ts, trade_id, price, size, side, ordinal, received_at)
   SELECT ($1::bigint[])[1 + n * 7919::bigint % $3::int], at, '0x' || md5(n::text) || md5((-n)::text), (1 + n % 999) / 1000.0,
     round((n * 7919::bigint % 1000003) / 1000.0 + n % 97 / 1000000.0, 6), CASE n % 2 WHEN 0 THEN 1 ELSE -1 END, n % 2, at + interval '2.000003 seconds'
   FROM (SELECT n, $2::timestamptz + n * (interval '86399 seconds' / $4::int) AS at FROM generate_series(0, $4::int - 1) n) s`,
);
const ANALYZE = sql('bench_analyze_archive', 'VACUUM ANALYZE');
const FORGET = sql('bench_forget_archive', 'DELETE FROM archive_file');
/** The same rows and columns, in no order. */
const PLAIN = `COPY (
  SELECT m.venue_market_id, k.mint, t.ts, t.trade_id, t.price, t.size, t.price * t.size, t.side, t.ordinal, t.received_at
  FROM market m JOIN outcome o ON o.market_id = m.id JOIN token k ON k.id = o.token_id JOIN trade t ON t.token_id = k.id
  WHERE m.venue = 'polymarket' AND t.ts >= '${START}' AND t.ts < '${START}'::timestamptz + interval '1 day') TO STDOUT (FORMAT csv)`;

let test: TestDatabase;
let dir = '';
let client: pg.Client;

beforeAll(async () => {
  test = await createTestDatabase();
  dir = await mkdtemp(join(tmpdir(), 'bench-archive-'));
  client = new pg.Client({ connectionString: test.url });
  await client.connect();
  await new Partitions(test.db).ensure('trade', [Date.parse(START)]);
  const tokens: bigint[] = [];
  for (let n = 0; n < MARKETS; n += 1)
    tokens.push(...(await aStoredMarket(test.db)).outcomes.map((each) => each.tokenId));
  await test.db.query(FILL, [tokens, START, tokens.length, ROWS]);
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

async function plainCopy(): Promise<void> {
  const sink = new Writable({ write: (_chunk, _encoding, done) => done() });
  await pipeline(client.query(copyTo(PLAIN)), sink);
}

it('archives a day of trades with its verification, against a plain COPY of the same rows', async () => {
  const context = jobContext({
    db: test.db,
    config: testConfig(test.url, { ARCHIVE_DIR: dir }),
    producer: wakeRecorder(),
  });
  const ratios: number[] = [];
  const [copied, archived]: [number[], number[]] = [[], []];
  for (let round = 0; round < ROUNDS; round += 1) {
    await test.db.query(FORGET);
    copied.push(await secondsOf(plainCopy));
    const seconds = await secondsOf(async () => {
      const made = await archiveDay.run({ kind: 'trades', venue: 'polymarket', date: DATE }, context);
      if (made['rows'] !== ROWS) throw new Error(`the file has ${String(made['rows'])} of ${ROWS} rows`);
    });
    archived.push(seconds);
    ratios.push((copied.at(-1) ?? Number.NaN) / seconds);
  }
  report([
    {
      title: `archive of a day of ${whole(ROWS)} trades, read back by two readers`,
      measured: `${whole(ROWS / percentile(archived, 0.5))} rows/s`,
      baseline: `COPY … TO of the same rows ${whole(ROWS / percentile(copied, 0.5))} rows/s`,
      ratio: percentile(ratios, 0.5),
      goal: { atLeast: 0.25 },
    },
  ]);
  note(`memory of the process that archives, at its peak: ${mib(process.resourceUsage().maxRSS * 1024)}`);
});
