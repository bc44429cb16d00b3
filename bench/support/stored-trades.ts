import { INTERVAL_SECONDS } from '../../src/domain/markets/candle.ts';
import { type Database, type Statement, sql } from '../../src/store/db/tx.ts';
import { CLOSE_PRICE, OPEN_PRICE } from '../../src/store/series/trade-order.ts';

const CANDLE = 'token_id, interval_seconds, bucket, open, high, low, close, volume, notional, trades';

/**
 * A statement that stores trades and their candles of all intervals, each folded from the one below, with the same rows as writing and
 * folding them batch by batch. `made` is a SELECT of `token_id, ts, trade_id, price, size, side` with one or more whole days
 * of each token, because a candle is written once.
 */
export function storingTrades(name: string, made: string): Statement {
  const [minute, ...coarser] = Object.values(INTERVAL_SECONDS);
  const levels = coarser.map((seconds, index) => {
    const below = index === 0 ? minute : coarser[index - 1];
    return `level_${seconds} AS MATERIALIZED (
       SELECT token_id, ${seconds} AS interval_seconds, bucket - bucket % ${seconds} AS bucket,
         (array_agg(open ORDER BY bucket))[1] AS open, max(high) AS high, min(low) AS low,
         (array_agg(close ORDER BY bucket DESC))[1] AS close, sum(volume) AS volume, sum(notional) AS notional,
         sum(trades)::int AS trades
       FROM level_${below} GROUP BY 1, 3)`;
  });
  return sql(
    name,
    `WITH made AS MATERIALIZED (SELECT *, 0 AS ordinal FROM (${made}) m),
     stored AS (
       INSERT INTO trade (token_id, ts, trade_id, price, size, side)
       SELECT token_id, ts, trade_id, price, size, side FROM made),
     level_${minute} AS MATERIALIZED (
       SELECT token_id, ${minute} AS interval_seconds, floor(extract(epoch FROM ts) / ${minute})::bigint * ${minute} AS bucket,
         ${OPEN_PRICE} AS open, max(price) AS high, min(price) AS low,
         ${CLOSE_PRICE} AS close, sum(size) AS volume,
         sum(price * size) AS notional, count(*)::int AS trades
       FROM made GROUP BY 1, 3),
     ${levels.join(',\n     ')}
     INSERT INTO candle (${CANDLE})
     ${Object.values(INTERVAL_SECONDS)
       .map((seconds) => `SELECT ${CANDLE} FROM level_${seconds}`)
       .join(' UNION ALL ')}`,
  );
}

const MORE_MEMORY = sql('bench_more_memory', `SET LOCAL work_mem = '512MB'`);

/** Runs a statement that sorts and groups millions of rows. */
export async function runLarge(db: Database, statement: Statement, values: readonly unknown[]): Promise<void> {
  await db.transaction(async (tx) => {
    await tx.query(MORE_MEMORY);
    await tx.query(statement, values);
  });
}

const VACUUM = sql('bench_vacuum', 'VACUUM (ANALYZE)');
const CHECKPOINT = sql('bench_checkpoint', 'CHECKPOINT');

/** Vacuums and checkpoints the new rows before the measurement. */
export async function settle(db: Database): Promise<void> {
  await db.query(VACUUM);
  await db.query(CHECKPOINT);
}

const DATABASE_SIZE = sql('bench_size', 'SELECT pg_database_size(current_database()) AS bytes');

/** Bytes on disk. */
export async function databaseBytes(db: Database): Promise<number> {
  const [size] = await db.query<{ bytes: bigint }>(DATABASE_SIZE);
  return Number(size?.bytes ?? 0);
}
