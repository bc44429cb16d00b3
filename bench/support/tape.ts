import { EventEmitter, once } from 'node:events';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import pg from 'pg';
import { from as copyFrom } from 'pg-copy-streams';
import type { TradeRecord } from '../../src/domain/markets/market.ts';
import { decimal } from '../../src/domain/values/decimal.ts';
import { LANES } from '../../src/queues/jobs.ts';
import { ensureTokens } from '../../src/store/catalog/tokens.ts';
import { Partitions } from '../../src/store/db/partitions.ts';
import { type Database, sql } from '../../src/store/db/tx.ts';
import { writeTrades } from '../../src/store/series/trades.ts';
import { jobContext, testConfig } from '../../test/integration/workers/worker-harness.ts';
import { foldCandlesJob } from '../../workers/jobs/fold-candles.ts';
import type { JobContext } from '../../workers/process/define.ts';
import { runLarge, settle, storingTrades } from './stored-trades.ts';

export const OUTCOMES = 500;
/** Trades of one transaction, as a poller's page. */
export const BATCH = 2_000;
/** Midnight: a day's trades fold into whole candles. */
const START_MS = Date.UTC(2026, 5, 1);
/** One trade per outcome and minute. */
const MS_PER_TRADE = 60_000 / OUTCOMES;
const DAY_MS = 86_400_000;
const TRADES_PER_DAY = DAY_MS / MS_PER_TRADE;

/** A part of the tape: `count` trades from number `from`. */
export interface Stretch {
  from: number;
  count: number;
}

const outcomeIdOf = (outcome: number) => `outcome-${outcome}`;

/** A tape as a poller sees it, in time order. HISTORY below creates the same in SQL. */
export function tape({ from, count }: Stretch): TradeRecord[] {
  return Array.from({ length: count }, (_, index) => {
    const n = from + index;
    return {
      tradeId: `t${n.toString(16).padStart(12, '0')}`,
      outcomeId: outcomeIdOf((n * 7919) % OUTCOMES),
      tsMs: START_MS + n * MS_PER_TRADE,
      price: decimal((((n * 31) % 9_999) + 1) / 10_000),
      size: decimal((((n * 17) % 100_000) + 1) / 100),
      side: n % 2 === 0 ? 'buy' : 'sell',
    };
  });
}

/** The tape in batches, because a process cannot hold ten million rows. */
function* batches({ from, count }: Stretch): Generator<TradeRecord[]> {
  for (let done = 0; done < count; done += BATCH) {
    yield tape({ from: from + done, count: Math.min(BATCH, count - done) });
  }
}

/** Creates the partitions of a stretch of the tape and of the present. */
export async function preparePartitions(db: Database, { from, count }: Stretch): Promise<void> {
  const partitions = new Partitions(db);
  const days = Math.ceil((count * MS_PER_TRADE) / DAY_MS);
  const moments = Array.from({ length: days + 1 }, (_, day) => START_MS + from * MS_PER_TRADE + day * DAY_MS);
  await partitions.ensure('trade', moments);
  await partitions.ensureAroundNow('observation');
}

/** $1: token ids by outcome; trades $2 to $3. */
const HISTORY = storingTrades(
  'bench_tape',
  `SELECT ($1::bigint[])[1 + n * 7919 % ${OUTCOMES}] AS token_id,
     to_timestamp(${START_MS / 1000}) + n * ${MS_PER_TRADE} * interval '1 millisecond' AS ts,
     't' || lpad(to_hex(n), 12, '0') AS trade_id, (n * 31 % 9999 + 1) / 10000::numeric AS price,
     (n * 17 % 100000 + 1) / 100::numeric AS size, CASE WHEN n % 2 = 0 THEN 1 ELSE -1 END AS side
   FROM generate_series($2::bigint, $3::bigint) n`,
);

/** Stores the first trades of the tape and their candles in SQL, day by day on two connections, as an old history. */
export async function storeTape(db: Database, count: number): Promise<void> {
  await preparePartitions(db, { from: 0, count });
  const outcomeIds = Array.from({ length: OUTCOMES }, (_, outcome) => outcomeIdOf(outcome));
  const tokens = await ensureTokens(db, outcomeIds, 'USD');
  const tokenIds = outcomeIds.map((outcomeId) => tokens.get(outcomeId));
  let next = 0;
  const storeDays = async () => {
    while (next < count) {
      const from = next;
      next += TRADES_PER_DAY;
      await runLarge(db, HISTORY, [tokenIds, from, Math.min(next, count) - 1]);
    }
  };
  await Promise.all([storeDays(), storeDays()]);
  await settle(db);
}

/** The aggregator's part for one lane: a job for each wake-up by the writer, at most one at a time. */
async function foldLane(lane: number, writer: TapeWriter, context: JobContext): Promise<void> {
  for (;;) {
    const { batchesWritten, isDone } = writer;
    await foldCandlesJob.run({ lane }, context);
    if (isDone) return;
    if (writer.batchesWritten === batchesWritten && !writer.isDone) await once(writer, 'wake-up');
  }
}

/** Writes a stretch of the tape as pollers do. Emits `wake-up` after each batch and at the end. */
class TapeWriter extends EventEmitter {
  batchesWritten = 0;
  isDone = false;

  /** When each batch was committed, on `performance.now()`'s clock. */
  async write(db: Database, stretch: Stretch): Promise<number[]> {
    const writtenAtMs: number[] = [];
    try {
      for (const batch of batches(stretch)) {
        await db.transaction((tx) => writeTrades(tx, batch, 'USD'));
        writtenAtMs.push(performance.now());
        this.batchesWritten += 1;
        this.emit('wake-up');
      }
      return writtenAtMs;
    } finally {
      this.isDone = true;
      this.emit('wake-up');
    }
  }
}

/** Writes a stretch of the tape without folding it. */
export async function writeTape(db: Database, stretch: Stretch): Promise<void> {
  await new TapeWriter().write(db, stretch);
}

/** Writes and folds a stretch: seconds until all of its candles exist, and the commit time of each batch. */
export async function ingest(db: Database, stretch: Stretch): Promise<{ seconds: number; writtenAtMs: number[] }> {
  const startedMs = performance.now();
  const writer = new TapeWriter();
  const context = jobContext({ db, config: testConfig('postgres://bench.invalid/bench') });
  const folding = Array.from({ length: LANES }, (_, lane) => foldLane(lane, writer, context));
  const [writtenAtMs] = await Promise.all([writer.write(db, stretch), ...folding]);
  return { seconds: (performance.now() - startedMs) / 1_000, writtenAtMs };
}

function* copyRows(stretch: Stretch): Generator<string> {
  for (const batch of batches(stretch)) {
    yield batch
      .map(({ outcomeId, tsMs, tradeId, price, size, side }) => {
        const token = outcomeId.slice(outcomeIdOf(0).length - 1);
        return `${token}\t${new Date(tsMs).toISOString()}\t${tradeId}\t${price}\t${size}\t${side === 'buy' ? 1 : -1}\n`;
      })
      .join('');
  }
}

/** The physical limit of ingest: COPY of the same stretch into an empty table like `trade`, with its indexes; seconds. */
export async function copyTape(databaseUrl: string, stretch: Stretch): Promise<number> {
  const client = new pg.Client({ connectionString: databaseUrl });
  await client.connect();
  try {
    await client.query('CREATE TABLE copied (LIKE trade INCLUDING ALL)');
    const startedMs = performance.now();
    await pipeline(
      Readable.from(copyRows(stretch)),
      client.query(copyFrom('COPY copied (token_id, ts, trade_id, price, size, side) FROM STDIN')),
    );
    const seconds = (performance.now() - startedMs) / 1_000;
    await client.query('DROP TABLE copied');
    return seconds;
  } finally {
    await client.end();
  }
}

const COUNTS = sql(
  'bench_stored',
  `SELECT (SELECT count(*)::int FROM trade) AS trades, (SELECT count(*)::int FROM candle) AS candles,
     (SELECT array_agg(DISTINCT trades) FROM (
        SELECT sum(trades)::int AS trades FROM candle GROUP BY interval_seconds) AS s) AS "folded"`,
);

/** The numbers of stored trades and candles; `folded` is `[trades]` when the candles of each interval contain every trade. */
export async function storedCounts(db: Database): Promise<{ trades: number; candles: number; folded: number[] }> {
  const [counts] = await db.query<{ trades: number; candles: number; folded: number[] }>(COUNTS);
  return counts ?? { trades: 0, candles: 0, folded: [] };
}
