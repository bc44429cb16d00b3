import { INTERVAL_SECONDS } from '../../domain/markets/candle.ts';
import { SHARDS, shardOf } from '../../domain/values/shard.ts';
import type { TimeRange } from '../../domain/values/time-range.ts';
import { holdSeam } from '../db/partitions.ts';
import { type Database, type Queryable, sql, type Tx } from '../db/tx.ts';
import { isMinuteWithin } from '../marks/detail.ts';
import { insertPublishSql } from '../marks/publish-marks.ts';
import { lockShards } from '../marks/stage.ts';
import { CLOSE_PRICE, OPEN_PRICE } from './trade-order.ts';

/** The values of a candle, as `numeric` text. */
export interface CandleValues {
  open: string;
  high: string;
  low: string;
  close: string;
  volume: string;
  notional: string;
  trades: number;
}

/** A bucket whose stored candle differs from the fold of the stored trades; null for a side without a candle. */
export interface CandleDifference {
  tokenId: bigint;
  intervalSeconds: number;
  /** Start of the bucket, epoch seconds. */
  bucket: number;
  stored: CandleValues | null;
  folded: CandleValues | null;
}

/** An outcome whose candles are audited. */
export interface AuditedOutcome {
  tokenId: bigint;
  marketId: string;
  outcomeId: string;
}

const TOKENS = sql(
  'audit_tokens',
  `SELECT o.token_id, t.mint AS outcome_id, m.venue_market_id AS market_id FROM market m
   JOIN outcome o ON o.market_id = m.id JOIN token t ON t.id = o.token_id
   WHERE m.venue = $1 AND ($2::text IS NULL OR m.venue_market_id = $2) AND o.token_id > $3
   ORDER BY o.token_id LIMIT $4`,
);

/** A page of a venue's outcomes by key, or of one market's. */
function auditedOutcomes(
  db: Queryable,
  venue: string,
  options: { marketId?: string; afterTokenId: bigint; limit: number },
): Promise<AuditedOutcome[]> {
  return db.query(TOKENS, [venue, options.marketId ?? null, options.afterTokenId, options.limit]);
}

const VALUES = ['open', 'high', 'low', 'close', 'volume', 'notional', 'trades'] as const;
const LONGEST_SECONDS = Math.max(...Object.values(INTERVAL_SECONDS));

/** SQL of the `CandleValues` of a row, or NULL. */
function candleOf(row: string): string {
  const fields = VALUES.map((name) => `'${name}', ${row}.${name}${name === 'trades' ? '' : '::text'}`);
  return `CASE WHEN ${row}.open IS NOT NULL THEN json_build_object(${fields.join(', ')}) END`;
}

/**
 * Folds every interval directly from trades instead of the interval below, so that the audit also checks the cascade. A bucket that differs
 * and has a pending mark will be folded soon and is skipped: one statement reads trades, marks and candles, hence in one snapshot. The one
 * row has the number of the other buckets.
 */
const DIFFERENCES = sql(
  'audit_differences',
  `WITH token AS MATERIALIZED (SELECT unnest($1::bigint[]) AS token_id),
   folded AS MATERIALIZED (
     SELECT t.token_id, iv AS interval_seconds, floor(extract(epoch FROM t.ts) / iv)::bigint * iv AS bucket,
            ${OPEN_PRICE} AS open, max(t.price) AS high, min(t.price) AS low,
            ${CLOSE_PRICE} AS close,
            sum(t.size) AS volume, sum(t.price * t.size) AS notional, count(*)::int AS trades
     FROM trade t JOIN token USING (token_id) CROSS JOIN unnest($4::int[]) AS iv
     WHERE t.ts >= to_timestamp($2::bigint) AND t.ts < to_timestamp($3::bigint + ${LONGEST_SECONDS})
     GROUP BY 1, 2, 3),
   stored AS MATERIALIZED (
     SELECT c.* FROM candle c JOIN token USING (token_id)
     WHERE c.interval_seconds = ANY ($4::int[]) AND c.bucket >= $2 AND c.bucket < $3),
   pair AS MATERIALIZED (
     SELECT token_id, interval_seconds, bucket, ${candleOf('s')} AS stored, ${candleOf('f')} AS folded,
       (${VALUES.map((name) => `s.${name}`).join(', ')}) IS DISTINCT FROM
       (${VALUES.map((name) => `f.${name}`).join(', ')}) AS is_different
     FROM stored s FULL JOIN (SELECT * FROM folded WHERE bucket >= $2 AND bucket < $3) f
       USING (token_id, interval_seconds, bucket)),
   different AS MATERIALIZED (
     SELECT token_id, interval_seconds, bucket, stored, folded,
       EXISTS (SELECT FROM mark WHERE stage = 'fold-candles' AND shard = $5 AND key = token_id
                 AND ${isMinuteWithin('bucket', 'bucket + interval_seconds')}) AS is_pending
     FROM pair WHERE is_different)
   SELECT (SELECT count(*) FROM pair)::int - (SELECT count(*) FROM different WHERE is_pending)::int AS compared,
     d.token_id, d.interval_seconds, d.bucket::float8 AS bucket, d.stored, d.folded
   FROM (VALUES (1)) one (row) LEFT JOIN different d ON NOT d.is_pending
   ORDER BY d.token_id, d.interval_seconds, d.bucket`,
);

const DELETE_CANDLES = sql(
  'audit_delete_candles',
  `DELETE FROM candle WHERE (token_id, interval_seconds, bucket) IN (
     SELECT * FROM unnest($1::bigint[], $2::int[], $3::bigint[]))`,
);

const PUT_CANDLES = sql(
  'audit_put_candles',
  `INSERT INTO candle (token_id, interval_seconds, bucket, ${VALUES.join(', ')})
   SELECT * FROM unnest($1::bigint[], $2::int[], $3::bigint[], $4::numeric[], $5::numeric[], $6::numeric[], $7::numeric[],
     $8::numeric[], $9::numeric[], $10::int[])
   ORDER BY 1, 2, 3
   ON CONFLICT (token_id, interval_seconds, bucket) DO UPDATE SET
     ${VALUES.map((name) => `${name} = excluded.${name}`).join(', ')}`,
);

const PUBLISH_REPAIRED = sql(
  'audit_publish_candles',
  insertPublishSql(
    'late-candles',
    `SELECT token_id, min(bucket), max(bucket + length) FROM unnest($1::bigint[], $2::int[], $3::bigint[]) AS r (token_id, length, bucket)
     GROUP BY token_id`,
  ),
);

async function repair(tx: Tx, differences: readonly CandleDifference[]): Promise<void> {
  const keys = (of: readonly CandleDifference[]) => [
    of.map(({ tokenId }) => tokenId),
    of.map(({ intervalSeconds }) => intervalSeconds),
    of.map(({ bucket }) => bucket),
  ];
  const extra = differences.filter(({ folded }) => folded === null);
  if (extra.length > 0) await tx.query(DELETE_CANDLES, keys(extra));
  const wrong = differences.filter(({ folded }) => folded !== null);
  const columns = VALUES.map((name) => wrong.map(({ folded }) => folded?.[name]));
  if (wrong.length > 0) await tx.query(PUT_CANDLES, [...keys(wrong), ...columns]);
  await tx.query(PUBLISH_REPAIRED, keys(differences));
}

/**
 * Compares the candles of outcomes of one shard with a fold of their stored trades, for buckets that start in `range`, under the lock of
 * the shard, so that no fold runs concurrently. With `repair` it corrects differences in the same transaction. It skips buckets with a
 * pending mark, and those before the seam of trades, whose trades are in files. `range` must not reach below the retention of trades, because
 * dropped trades fold to nothing.
 */
function auditCandles(
  db: Database,
  shard: number,
  tokenIds: readonly bigint[],
  range: TimeRange,
  options: { repair: boolean },
): Promise<{ compared: number; differences: CandleDifference[] }> {
  return db.transaction(async (tx) => {
    await lockShards(tx, 'fold-candles', [shard]);
    const start = Math.max(range.start, Math.ceil((await holdSeam(tx, 'trades')) / 1000));
    if (start >= range.end) return { compared: 0, differences: [] };
    const values = [tokenIds, start, range.end, Object.values(INTERVAL_SECONDS), shard];
    const rows = await tx.query<CandleDifference & { compared: number; tokenId: bigint | null }>(DIFFERENCES, values);
    const differences = rows.flatMap(({ compared: _, ...row }) => (row.tokenId === null ? [] : [row]));
    if (options.repair && differences.length > 0) await repair(tx, differences);
    return { compared: rows[0]?.compared ?? 0, differences };
  });
}

interface AuditProgress {
  outcomes: AuditedOutcome[];
  /** Buckets with a stored or a folded candle, except those that wait for a fold. */
  compared: number;
  differences: CandleDifference[];
}

/** Outcomes per step. Each step holds a shard's lock for some dozens of them, so that folding continues in between. */
const OUTCOMES_PER_STEP = 500;

/** Audits a venue, or one of its markets, step by step; each step reports its outcomes and differences. */
export async function* auditVenue(
  db: Database,
  options: { venue: string; marketId?: string; range: TimeRange; repair: boolean },
): AsyncGenerator<AuditProgress> {
  const { venue, marketId, range, repair } = options;
  let afterTokenId = 0n;
  for (;;) {
    const page = { afterTokenId, limit: OUTCOMES_PER_STEP, ...(marketId !== undefined && { marketId }) };
    const outcomes = await auditedOutcomes(db, venue, page);
    const last = outcomes.at(-1);
    if (!last) return;
    const differences: CandleDifference[] = [];
    let compared = 0;
    for (let shard = 0; shard < SHARDS; shard += 1) {
      const tokenIds = outcomes.map(({ tokenId }) => tokenId).filter((tokenId) => shardOf(tokenId) === shard);
      if (tokenIds.length === 0) continue;
      const found = await auditCandles(db, shard, tokenIds, range, { repair });
      compared += found.compared;
      differences.push(...found.differences);
    }
    yield { outcomes, compared, differences };
    afterTokenId = last.tokenId;
  }
}
