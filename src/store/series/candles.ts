import { INTERVAL_SECONDS } from '../../domain/markets/candle.ts';
import { sql, type Tx } from '../db/tx.ts';
import { minuteOf } from '../marks/detail.ts';
import type { Mark } from '../marks/marks.ts';
import { insertPublishSql, LATE_TRADE_MS } from '../marks/publish-marks.ts';
import { CLOSE_PRICE, OPEN_PRICE } from './trade-order.ts';

const COLUMNS = 'token_id, interval_seconds, bucket, open, high, low, close, volume, notional, trades';

/** Skips unchanged candles, so that a replay leaves no dead rows. */
const ON_CONFLICT = `ON CONFLICT (token_id, interval_seconds, bucket) DO UPDATE SET
  open = excluded.open, high = excluded.high, low = excluded.low, close = excluded.close,
  volume = excluded.volume, notional = excluded.notional, trades = excluded.trades
  WHERE (k.open, k.high, k.low, k.close, k.volume, k.notional, k.trades) IS DISTINCT FROM
    (excluded.open, excluded.high, excluded.low, excluded.close, excluded.volume, excluded.notional, excluded.trades)`;

/** Whether a minute ended so long ago that its trades are late ones. */
const IS_LATE = `to_timestamp(bucket + 60) < clock_timestamp() - ${LATE_TRADE_MS} * interval '1 millisecond'`;

const FOLD_MINUTES = sql(
  'fold_minutes',
  `WITH folded AS MATERIALIZED (
   INSERT INTO candle AS k (${COLUMNS})
   SELECT s.token_id, 60, f.*
   FROM unnest($1::bigint[], $2::bigint[], $3::bigint[]) AS s (token_id, start, until)
   CROSS JOIN LATERAL (
     SELECT ${minuteOf('ts')} AS bucket,
            ${OPEN_PRICE} AS open, max(price) AS high, min(price) AS low,
            ${CLOSE_PRICE} AS close,
            sum(size) AS volume, sum(price * size) AS notional, count(*)::int AS trades
     FROM trade t WHERE t.token_id = s.token_id AND t.ts >= to_timestamp(s.start) AND t.ts < to_timestamp(s.until)
     GROUP BY 1) f
   ORDER BY 1, 3 ${ON_CONFLICT}
   RETURNING token_id, bucket, ${IS_LATE} AS is_late),
   late AS (
     ${insertPublishSql('late-candles', 'SELECT token_id, min(bucket), max(bucket) + 60 FROM folded WHERE is_late GROUP BY token_id')})
   ${insertPublishSql('candle', 'SELECT token_id, bucket FROM folded WHERE NOT is_late')}`,
);

const FOLD_LEVEL = sql(
  'fold_level',
  `INSERT INTO candle AS k (${COLUMNS})
   SELECT s.token_id, $5, f.*
   FROM unnest($1::bigint[], $2::bigint[], $3::bigint[]) AS s (token_id, start, until)
   CROSS JOIN LATERAL (
     SELECT c.bucket / $5 * $5 AS bucket,
            (array_agg(c.open ORDER BY c.bucket))[1] AS open, max(c.high) AS high, min(c.low) AS low,
            (array_agg(c.close ORDER BY c.bucket DESC))[1] AS close,
            sum(c.volume) AS volume, sum(c.notional) AS notional, sum(c.trades)::int AS trades
     FROM candle c WHERE c.token_id = s.token_id AND c.interval_seconds = $4
       AND c.bucket >= s.start AND c.bucket < s.until
     GROUP BY 1) f
   ORDER BY 1, 3 ${ON_CONFLICT}`,
);

/**
 * Recomputes the minutes that gained trades from the stored trades, then every coarser bucket around them from the next finer interval.
 * The caller must have claimed the marks in an earlier statement of this transaction, under the lock of their shard, which makes it the
 * only writer of these outcomes. Returns the number of folded 1m buckets.
 */
export async function foldCandles(tx: Tx, marks: readonly Mark[]): Promise<number> {
  let spans = joined(marks.map(({ key, detail: minute }) => ({ token: key, start: minute, until: minute + 60n })));
  const minutes = spans.reduce((sum, { start, until }) => sum + Number(until - start) / 60, 0);
  await tx.query(FOLD_MINUTES, columnsOf(spans));
  const [base, ...coarser] = Object.values(INTERVAL_SECONDS);
  let below: number = base ?? 60;
  for (const interval of coarser) {
    spans = joined(spans.map((span) => widened(span, BigInt(interval))));
    await tx.query(FOLD_LEVEL, [...columnsOf(spans), below, interval]);
    below = interval;
  }
  return minutes;
}

/** A time span of one token, `[start, until)` epoch seconds. */
interface Span {
  token: bigint;
  start: bigint;
  until: bigint;
}

/** The span widened to complete buckets of `seconds`. */
function widened({ token, start, until }: Span, seconds: bigint): Span {
  return { token, start: start - (start % seconds), until: until + ((seconds - (until % seconds)) % seconds) };
}

/** Sorted spans, with adjacent ones joined, so that no bucket is in two spans. */
function joined(spans: readonly Span[]): Span[] {
  const result: Span[] = [];
  for (const span of spans.toSorted((a, b) => compare(a.token, b.token) || compare(a.start, b.start))) {
    const last = result.at(-1);
    if (last?.token !== span.token || last.until < span.start) result.push({ ...span });
    else if (last.until < span.until) last.until = span.until;
  }
  return result;
}

function compare(a: bigint, b: bigint): number {
  if (a === b) return 0;
  return a < b ? -1 : 1;
}

function columnsOf(spans: readonly Span[]): [bigint[], bigint[], bigint[]] {
  return [spans.map(({ token }) => token), spans.map(({ start }) => start), spans.map(({ until }) => until)];
}
