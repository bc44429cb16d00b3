import { INTERVAL_SECONDS } from '../domain/candle.ts';
import type { Mark } from './marks.ts';
import { sql, type Tx } from './tx.ts';

const COLUMNS = 'token_id, interval_seconds, bucket, open, high, low, close, volume, notional, trades';

/** An unchanged candle is not rewritten: a replay leaves no dead rows. */
const ON_CONFLICT = `ON CONFLICT (token_id, interval_seconds, bucket) DO UPDATE SET
  open = excluded.open, high = excluded.high, low = excluded.low, close = excluded.close,
  volume = excluded.volume, notional = excluded.notional, trades = excluded.trades
  WHERE (k.open, k.high, k.low, k.close, k.volume, k.notional, k.trades) IS DISTINCT FROM
    (excluded.open, excluded.high, excluded.low, excluded.close, excluded.volume, excluded.notional, excluded.trades)`;

const FOLD_MINUTES = sql(
  'fold_minutes',
  `INSERT INTO candle AS k (${COLUMNS})
   SELECT m.token_id, 60, m.bucket, f.open, f.high, f.low, f.close, f.volume, f.notional, f.trades
   FROM unnest($1::bigint[], $2::bigint[]) AS m (token_id, bucket)
   CROSS JOIN LATERAL (
     SELECT (array_agg(price ORDER BY ts, trade_id))[1] AS open, max(price) AS high, min(price) AS low,
            (array_agg(price ORDER BY ts DESC, trade_id DESC))[1] AS close,
            sum(size) AS volume, sum(price * size) AS notional, count(*)::int AS trades
     FROM trade t WHERE t.token_id = m.token_id
       AND t.ts >= to_timestamp(m.bucket) AND t.ts < to_timestamp(m.bucket + 60)) f
   WHERE f.trades > 0 ORDER BY 1, 3 ${ON_CONFLICT}`,
);

const FOLD_LEVEL = sql(
  'fold_level',
  `INSERT INTO candle AS k (${COLUMNS})
   SELECT m.token_id, $4, m.bucket, f.open, f.high, f.low, f.close, f.volume, f.notional, f.trades
   FROM unnest($1::bigint[], $2::bigint[]) AS m (token_id, bucket)
   CROSS JOIN LATERAL (
     SELECT (array_agg(c.open ORDER BY c.bucket))[1] AS open, max(c.high) AS high, min(c.low) AS low,
            (array_agg(c.close ORDER BY c.bucket DESC))[1] AS close,
            sum(c.volume) AS volume, sum(c.notional) AS notional, sum(c.trades)::int AS trades
     FROM candle c WHERE c.token_id = m.token_id AND c.interval_seconds = $3
       AND c.bucket >= m.bucket AND c.bucket < m.bucket + $4) f
   WHERE f.trades > 0 ORDER BY 1, 3 ${ON_CONFLICT}`,
);

/**
 * Recomputes the minutes that gained trades from the stored trades, then every coarser bucket they lie in from the level
 * below (DESIGN section 6). The marks must have been claimed in an earlier statement of this transaction, under the lock
 * of their shard: that makes this the only writer of these outcomes. Returns the number of 1m buckets folded.
 */
export async function foldCandles(tx: Tx, marks: readonly Mark[]): Promise<number> {
  let buckets = distinctBuckets(marks.map((mark) => ({ token: mark.key, bucket: mark.detail })));
  const minutes = buckets.length;
  await tx.query(FOLD_MINUTES, columnsOf(buckets));
  const [base, ...coarser] = Object.values(INTERVAL_SECONDS);
  let below: number = base ?? 60;
  for (const interval of coarser) {
    const step = BigInt(interval);
    buckets = distinctBuckets(buckets.map(({ token, bucket }) => ({ token, bucket: bucket - (bucket % step) })));
    await tx.query(FOLD_LEVEL, [...columnsOf(buckets), below, interval]);
    below = interval;
  }
  return minutes;
}

interface Bucket {
  token: bigint;
  bucket: bigint;
}

function distinctBuckets(buckets: readonly Bucket[]): Bucket[] {
  return [...new Map(buckets.map((item) => [`${item.token}:${item.bucket}`, item])).values()];
}

function columnsOf(buckets: readonly Bucket[]): [bigint[], bigint[]] {
  return [buckets.map((item) => item.token), buckets.map((item) => item.bucket)];
}
