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

const LEVELS = Object.values(INTERVAL_SECONDS);
const BASE = INTERVAL_SECONDS['1m'];

/** SQL of the candles of one interval: its stretches, folded from the next finer interval, whose candles of this statement are not stored yet. */
function levelSql(seconds: number, below: number): string {
  return `level_${seconds} AS MATERIALIZED (
     SELECT token_id, bucket / ${seconds} * ${seconds} AS bucket,
            (array_agg(open ORDER BY bucket))[1] AS open, max(high) AS high, min(low) AS low,
            (array_agg(close ORDER BY bucket DESC))[1] AS close,
            sum(volume) AS volume, sum(notional) AS notional, sum(trades)::int AS trades
     FROM (
       SELECT * FROM level_${below}
       UNION ALL
       SELECT s.token_id, c.* FROM stretch s CROSS JOIN LATERAL (
         SELECT bucket, open, high, low, close, volume, notional, trades FROM candle c
         WHERE c.token_id = s.token_id AND c.interval_seconds = ${below} AND c.bucket >= s.start AND c.bucket < s.until OFFSET 0) c
       WHERE s.seconds = ${seconds} AND (s.token_id, c.bucket) NOT IN (SELECT token_id, bucket FROM level_${below})) finer
     GROUP BY 1, 2)`;
}

/** SQL of a fold of trades: rows of `trade`, or of `given`. */
const foldSql = (trades: 'trade' | 'given') =>
  `WITH stretch AS MATERIALIZED (
     SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::int[]) AS s (token_id, start, until, seconds)),
   ${trades === 'given' ? GIVEN : ''}
   level_${BASE} AS MATERIALIZED (
     SELECT s.token_id, f.* FROM stretch s
     CROSS JOIN LATERAL (
       SELECT ${minuteOf('ts')} AS bucket,
              ${OPEN_PRICE} AS open, max(price) AS high, min(price) AS low,
              ${CLOSE_PRICE} AS close,
              sum(size) AS volume, sum(price * size) AS notional, count(*)::int AS trades
       FROM ${trades} t WHERE t.token_id = s.token_id AND t.ts >= to_timestamp(s.start) AND t.ts < to_timestamp(s.until)
       GROUP BY 1) f
     WHERE s.seconds = ${BASE}),
   ${LEVELS.slice(1)
     .map((seconds, index) => levelSql(seconds, LEVELS[index] ?? BASE))
     .join(',\n   ')},
   folded AS MATERIALIZED (
     INSERT INTO candle AS k (${COLUMNS})
     SELECT token_id, seconds, bucket, open, high, low, close, volume, notional, trades FROM (
       ${LEVELS.map((seconds) => `SELECT ${seconds} AS seconds, * FROM level_${seconds}`).join('\n       UNION ALL ')}) l
     ${ON_CONFLICT}
     RETURNING token_id, interval_seconds, bucket, ${IS_LATE} AS is_late),
   minute AS MATERIALIZED (SELECT token_id, bucket, is_late FROM folded WHERE interval_seconds = ${BASE}),
   late AS (
     ${insertPublishSql('late-candles', 'SELECT token_id, min(bucket), max(bucket) + 60 FROM minute WHERE is_late GROUP BY token_id')})
   ${insertPublishSql('candle', 'SELECT token_id, bucket FROM minute WHERE NOT is_late')}`;

/** Trades that Postgres does not have. */
const GIVEN = `given AS MATERIALIZED (
     SELECT token_id, timestamptz 'epoch' + micros * interval '1 microsecond' AS ts, trade_id, price, size, side, ordinal
     FROM unnest($5::bigint[], $6::bigint[], $7::text[], $8::numeric[], $9::numeric[], $10::smallint[], $11::int[])
       AS g (token_id, micros, trade_id, price, size, side, ordinal)),`;

const FOLD = sql('fold_candles', foldSql('trade'));
const FOLD_GIVEN = sql('fold_archived_candles', foldSql('given'));

/**
 * Recomputes the minutes that gained trades from the stored trades, and every coarser bucket around them from the next finer interval.
 * The caller must have claimed the marks in an earlier statement of this transaction, under the lock of their shard, which makes it the
 * only writer of these outcomes. Returns the number of folded 1m buckets.
 */
export async function foldCandles(tx: Tx, marks: readonly Mark[]): Promise<number> {
  const minutes = joined(marks.map(({ key, detail: minute }) => ({ token: key, start: minute, until: minute + 60n })));
  await tx.query(FOLD, stretchesOf(minutes));
  return minutes.reduce((sum, { start, until }) => sum + Number(until - start) / 60, 0);
}

/** A trade of a file of the archive. */
interface ArchivedTrade {
  tokenId: bigint;
  /** Epoch microseconds. */
  atMicros: string;
  tradeId: string;
  price: string;
  size: string;
  side: number | null;
  ordinal: number;
}

/** As `foldCandles`, of minutes whose trades are in files alone: `trades` has all of each minute. The caller holds the lock of the shards. */
export async function foldArchivedMinutes(tx: Tx, trades: readonly ArchivedTrade[]): Promise<void> {
  const minutes = trades.map(({ tokenId, atMicros }) => {
    const second = BigInt(atMicros) / 1_000_000n;
    const start = second - (second % 60n);
    return { token: tokenId, start, until: start + 60n };
  });
  await tx.query(FOLD_GIVEN, [
    ...stretchesOf(joined(minutes)),
    ...(['tokenId', 'atMicros', 'tradeId', 'price', 'size', 'side', 'ordinal'] as const).map((name) =>
      trades.map((trade) => trade[name]),
    ),
  ]);
}

/** The parameters of a fold of these minutes: they and the coarser buckets around them. */
function stretchesOf(minutes: readonly Span[]): unknown[] {
  let spans = minutes;
  const stretches = LEVELS.flatMap((seconds) => {
    spans = joined(spans.map((span) => widened(span, BigInt(seconds))));
    return spans.map((span) => ({ ...span, seconds }));
  });
  return (['token', 'start', 'until', 'seconds'] as const).map((name) => stretches.map((stretch) => stretch[name]));
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
