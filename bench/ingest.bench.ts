import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import pg from 'pg';
import { from as copyFrom } from 'pg-copy-streams';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { decimal } from '../src/domain/decimal.ts';
import type { TradeRecord } from '../src/domain/market.ts';
import { foldCandles } from '../src/store/candles.ts';
import { waitingShards } from '../src/store/marks.ts';
import { Partitions } from '../src/store/partitions.ts';
import { workShard } from '../src/store/stage.ts';
import { writeTrades } from '../src/store/trades.ts';
import { sql } from '../src/store/tx.ts';
import { createTestDatabase, type TestDatabase } from '../test/support/database.ts';
import { printFigures, whole } from './table.ts';

/** BENCH_TRADES=10000000 for the figure of the design; the default is a quick look. */
const TRADES = Number(process.env['BENCH_TRADES'] ?? 100_000);
const OUTCOMES = 500;
const BATCH = 2_000;
const START_MS = Date.UTC(2026, 5, 1);

let test: TestDatabase;
beforeAll(async () => {
  test = await createTestDatabase();
});
afterAll(() => test.drop());

/** A tape as a poller sees it: about one trade per outcome and minute, in time order. */
function tape(from: number, count: number): TradeRecord[] {
  return Array.from({ length: count }, (_, index) => {
    const n = from + index;
    return {
      tradeId: `t${n.toString(36).padStart(12, '0')}`,
      outcomeId: `outcome-${(n * 7919) % OUTCOMES}`,
      tsMs: START_MS + Math.floor((n / OUTCOMES) * 60_000),
      price: decimal(((n * 31) % 9_999) / 10_000 + 0.0001),
      size: decimal(((n * 17) % 100_000) / 100 + 0.01),
      side: n % 2 === 0 ? 'buy' : 'sell',
    };
  });
}

/** The same tape in COPY's words, a batch at a time: ten million rows fit in no process. */
function* copyRows(): Generator<string> {
  for (let done = 0; done < TRADES; done += BATCH) {
    yield tape(done, Math.min(BATCH, TRADES - done))
      .map(({ tsMs, tradeId, price, size }, index) => {
        const token = (done + index) % OUTCOMES;
        return `${token}\t${new Date(tsMs).toISOString()}\t${tradeId}\t${price}\t${size}\t1\n`;
      })
      .join('');
  }
}

/** The aggregator's part: folds what is marked, all shards in turn, until the writer is done and nothing is left. */
async function foldUntil(isWritten: () => boolean): Promise<void> {
  for (;;) {
    const isLast = isWritten();
    const shards = await waitingShards(test.db, 'fold-candles');
    if (shards.length === 0 && isLast) return;
    for (const shard of shards) {
      await workShard(test.db, 'fold-candles', shard, { limit: 2_000, order: 'newest' }, foldCandles);
    }
  }
}

it('trades with all candles, against plain COPY into the same table', async () => {
  const partitions = new Partitions(test.db);
  await partitions.ensure('trade', [START_MS, START_MS + (TRADES / OUTCOMES) * 60_000]);
  await partitions.ensureAroundNow('observation');

  const startedMs = performance.now();
  let isWritten = false;
  const folding = foldUntil(() => isWritten);
  const writtenAtMs: number[] = [];
  for (let done = 0; done < TRADES; done += BATCH) {
    await test.db.transaction((tx) => writeTrades(tx, tape(done, Math.min(BATCH, TRADES - done)), 'USD'));
    writtenAtMs.push(performance.now());
  }
  isWritten = true;
  await folding;
  const ingestSeconds = (performance.now() - startedMs) / 1000;

  const client = new pg.Client({ connectionString: test.url });
  await client.connect();
  const [size] = (await client.query<{ bytes: string }>('SELECT pg_database_size(current_database()) AS bytes')).rows;
  await client.query('CREATE TABLE copied (LIKE trade INCLUDING ALL)');
  const copyStartedMs = performance.now();
  await pipeline(Readable.from(copyRows()), client.query(copyFrom('COPY copied FROM STDIN')));
  const copySeconds = (performance.now() - copyStartedMs) / 1000;
  await client.end();

  const [stored] = await test.db.query<{ trades: number; candles: number }>(
    sql(
      'bench_stored',
      'SELECT (SELECT count(*)::int FROM trade) AS trades, (SELECT count(*)::int FROM candle) AS candles',
    ),
  );
  expect(stored?.trades).toBe(TRADES);
  const ratio = copySeconds / ingestSeconds;
  printFigures([
    {
      what: `ingest of ${whole(TRADES)} trades over ${OUTCOMES} outcomes, ${whole(stored?.candles ?? 0)} candles`,
      measured: `${whole(TRADES / ingestSeconds)} trades/s`,
      baseline: `COPY ${whole(TRADES / copySeconds)} rows/s`,
      ratio: ratio.toFixed(2),
      goal: '>= 0.25',
    },
  ]);
  const tenth = Math.floor(writtenAtMs.length / 10);
  const [first, last] = [writtenAtMs.slice(0, tenth + 1), writtenAtMs.slice(-tenth - 1)].map(
    (times) => (tenth * BATCH * 1000) / ((times.at(-1) ?? 0) - (times[0] ?? 0)),
  );
  console.log(`writer alone: first tenth ${whole(first ?? 0)} trades/s, last tenth ${whole(last ?? 0)} trades/s`);
  console.log(`database size: ${whole(Number(size?.bytes ?? 0) / 1_048_576)} MiB`);
});
