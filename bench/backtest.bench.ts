import { performance } from 'node:perf_hooks';
import { afterAll, beforeAll, it } from 'vitest';
import { decimal } from '../src/domain/values/decimal.ts';
import { DAY_MS } from '../src/domain/values/durations.ts';
import { backtest } from '../src/store/alerts/backtest/backtest.ts';
import { ANSWER_LIMITS, type BacktestRequest } from '../src/store/alerts/backtest/request.ts';
import { ensureTokens } from '../src/store/catalog/tokens.ts';
import { Partitions } from '../src/store/db/partitions.ts';
import { sql } from '../src/store/db/tx.ts';
import { createTestDatabase, type TestDatabase } from '../test/support/postgres/database.ts';
import type { Figure } from './support/figure.ts';
import { sizeOf } from './support/numbers.ts';
import { report } from './support/report.ts';

/** One observation per second for seven days. */
const OBSERVATIONS = sizeOf('BENCH_OBSERVATIONS', 604_800);
const DAYS = 7;
const ROUNDS = sizeOf('BENCH_ROUNDS', 5);
const MINT = 'bench-busy-outcome';

/** Two quotes and a trade in turns; the price walks between 0.3 and 0.7. */
const OBSERVE = sql(
  'bench_observe',
  `INSERT INTO observation (token_id, received_at, venue_at, price, bid, ask, size)
   SELECT $1, at, at, price, CASE WHEN i % 3 > 0 THEN price - 0.01 END, CASE WHEN i % 3 > 0 THEN price + 0.01 END,
     CASE WHEN i % 3 = 0 THEN (i % 977) / 4.0 + 1 END
   FROM (SELECT i, $2::timestamptz + i * $4::float8 * interval '1 millisecond' AS at,
           round((0.5 + 0.2 * sin(i / 5000.0) + (i % 7) * 0.001)::numeric, 3) AS price
         FROM generate_series(0, $3::int - 1) i) o`,
);
const READ = sql(
  'bench_read_observations',
  `SELECT n, received_at, price, bid, ask, size FROM observation
   WHERE token_id = $1 AND received_at >= $2::timestamptz AND received_at < $3::timestamptz ORDER BY received_at, n`,
);
const ANALYZE = sql('bench_backtest_analyze', 'VACUUM ANALYZE observation');

const KINDS: readonly (Pick<BacktestRequest, 'condition'> & Partial<BacktestRequest>)[] = [
  { condition: 'above', threshold: decimal('0.69') },
  { condition: 'crosses_above', threshold: decimal('0.6') },
  { condition: 'spread', direction: 'at_least', threshold: decimal('0.03') },
  { condition: 'change', unit: 'percent', threshold: decimal('50'), windowSeconds: 3_600 },
  { condition: 'trade', threshold: decimal('170') },
  { condition: 'volume', threshold: decimal('50000'), windowSeconds: 3_600 },
  { condition: 'volume', threshold: decimal('3'), windowSeconds: 3_600, windows: 24 },
];

let test: TestDatabase;
let tokenId: bigint;
const endMs = Math.floor(Date.now() / 1_000) * 1_000;
const startMs = endMs - DAYS * DAY_MS;

beforeAll(async () => {
  test = await createTestDatabase();
  const partitions = new Partitions(test.db);
  await partitions.ensure(
    'observation',
    Array.from({ length: DAYS + 2 }, (_, day) => startMs + (day - 1) * DAY_MS),
  );
  tokenId = (await ensureTokens(test.db, [MINT], 'USD')).get(MINT) ?? 0n;
  await test.db.query(OBSERVE, [
    tokenId,
    new Date(startMs).toISOString(),
    OBSERVATIONS,
    (DAYS * DAY_MS) / OBSERVATIONS,
  ]);
  await test.db.query(ANALYZE);
});
afterAll(() => test.drop());

/** The median duration, milliseconds. */
async function median(work: () => Promise<unknown>): Promise<number> {
  const taken: number[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    const fromMs = performance.now();
    await work();
    taken.push(performance.now() - fromMs);
  }
  return taken.sort((a, b) => a - b)[Math.floor(ROUNDS / 2)] ?? Number.NaN;
}

it('backtests seven days of a busy outcome', async () => {
  const moments = [new Date(startMs).toISOString(), new Date(endMs).toISOString()];
  const plainMs = await median(() => test.db.query(READ, [tokenId, ...moments]));
  const figures: Figure[] = [];
  for (const kind of KINDS) {
    let fired = 0;
    const ms = await median(async () => {
      const request = { ...kind, tokenMint: MINT, scopeKey: null, cooldownSeconds: 3_600, startMs, endMs };
      const result = await backtest(test.db, request, ANSWER_LIMITS);
      if (result?.observations !== OBSERVATIONS) throw new Error(`${result?.observations} observations`);
      fired = result.fired;
    });
    const name = `${kind.condition}${kind.windows === undefined ? '' : ' of the mean'}`;
    figures.push({
      title: `backtest of ${name}, ${OBSERVATIONS} observations`,
      measured: `${Math.round(ms)} ms, ${fired} firings`,
      baseline: `${Math.round(plainMs)} ms for a plain read of the rows`,
      ratio: ms / plainMs,
      goal: { atMost: 1_000, of: { name: 'duration', value: ms, unit: 'ms' } },
    });
  }
  report(figures);
});
