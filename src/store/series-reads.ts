import type { Decimal } from '../domain/decimal.ts';
import type { TimeRange } from '../domain/time-range.ts';
import { type Queryable, sql } from './tx.ts';

/** A stored candle; `bucket` is its start in epoch seconds, decimals are `numeric` text. */
export interface StoredCandle {
  bucket: number;
  open: string;
  high: string;
  low: string;
  close: string;
  volume: string;
  notional: string;
  trades: number;
}

const CANDLES = sql(
  'read_candles',
  `SELECT bucket, open, high, low, close, volume, notional, trades FROM candle
   WHERE token_id = $1 AND interval_seconds = $2 AND bucket >= $3 AND bucket < $4 ORDER BY bucket`,
);

/** Candles whose bucket starts in the range, oldest first; buckets without a trade have none. */
export async function readCandles(
  db: Queryable,
  tokenId: bigint,
  intervalSeconds: number,
  range: TimeRange,
): Promise<StoredCandle[]> {
  const rows = await db.query<Omit<StoredCandle, 'bucket'> & { bucket: string }>(CANDLES, [
    tokenId,
    intervalSeconds,
    range.start,
    range.end,
  ]);
  return rows.map((row) => ({ ...row, bucket: Number(row.bucket) }));
}

const CLOSE_BEFORE = sql(
  'close_before',
  `SELECT close FROM candle WHERE token_id = $1 AND interval_seconds = $2 AND bucket < $3 ORDER BY bucket DESC LIMIT 1`,
);

/** The close of the last candle that starts before a moment, or null when nothing was traded before it. */
export async function readCloseBefore(
  db: Queryable,
  tokenId: bigint,
  intervalSeconds: number,
  before: number,
): Promise<Decimal | null> {
  const [row] = await db.query<{ close: Decimal }>(CLOSE_BEFORE, [tokenId, intervalSeconds, before]);
  return row?.close ?? null;
}

interface VolumeWindow {
  bucket: number;
  volume: string;
  notional: string;
  trades: number;
}

const VOLUME = sql(
  'read_volume',
  `SELECT bucket, sum(volume) AS volume, sum(notional) AS notional, sum(trades)::float8 AS trades FROM candle
   WHERE token_id = ANY ($1::bigint[]) AND interval_seconds = $2 AND bucket >= $3 AND bucket < $4
   GROUP BY bucket ORDER BY bucket`,
);

/** Volume per window over these outcomes together, oldest first; windows without a trade are left out. */
export async function readVolume(
  db: Queryable,
  tokenIds: readonly bigint[],
  windowSeconds: number,
  range: TimeRange,
): Promise<VolumeWindow[]> {
  const rows = await db.query<Omit<VolumeWindow, 'bucket'> & { bucket: string }>(VOLUME, [
    tokenIds,
    windowSeconds,
    range.start,
    range.end,
  ]);
  return rows.map((row) => ({ ...row, bucket: Number(row.bucket) }));
}

interface StoredSnapshot {
  ts: number;
  price: string;
  bid: string | null;
  ask: string | null;
}

/** One index probe per boundary: the cost follows what is asked, not how much lies between. */
const SNAPSHOTS = sql(
  'read_snapshots',
  `SELECT b.ts, s.price, s.bid, s.ask
   FROM generate_series($3::bigint, $4::bigint - 1, $2::bigint) AS b (ts)
   CROSS JOIN LATERAL (
     SELECT price, bid, ask FROM snapshot WHERE token_id = $1 AND ts <= b.ts ORDER BY ts DESC LIMIT 1) s
   ORDER BY b.ts`,
);

/**
 * What an outcome was priced at each interval boundary of the range, carried forward over gaps; boundaries before the first
 * sample are left out. `range.start` must be a boundary.
 */
export async function readSnapshots(
  db: Queryable,
  tokenId: bigint,
  intervalSeconds: number,
  range: TimeRange,
): Promise<StoredSnapshot[]> {
  const rows = await db.query<Omit<StoredSnapshot, 'ts'> & { ts: string }>(SNAPSHOTS, [
    tokenId,
    intervalSeconds,
    range.start,
    range.end,
  ]);
  return rows.map((row) => ({ ...row, ts: Number(row.ts) }));
}

export interface StoredTrade {
  tokenId: bigint;
  tradeId: string;
  at: Date;
  /** The same moment in epoch microseconds: the sort key, exactly. */
  atMicros: string;
  price: string;
  size: string;
  side: 'buy' | 'sell' | undefined;
}

/** Where a trade stands in a market's tape. */
export type TradePlace = Pick<StoredTrade, 'atMicros' | 'tradeId'> & { tokenId: string };

interface TradeQuery {
  tokenIds: readonly bigint[];
  range: Partial<TimeRange>;
  direction: 'asc' | 'desc';
  limit: number;
  after?: TradePlace;
}

interface TradeRow {
  token_id: string;
  ts: Date;
  ts_us: string;
  trade_id: string;
  price: string;
  size: string;
  side: number | null;
}

const MICROS = (parameter: string) => `timestamptz 'epoch' + ${parameter}::bigint * interval '1 microsecond'`;

/** Per outcome a walk along its own index, then a merge of what they give: never more than a page from each. */
function tradeStatement(direction: 'asc' | 'desc', isContinued: boolean) {
  const [compare, way] = direction === 'asc' ? ['>=', 'ASC'] : ['<=', 'DESC'];
  const place = `${MICROS('$5')}, $6::text`;
  const passed = direction === 'asc' ? 'k.token_id <= $7::bigint' : 'k.token_id >= $7::bigint';
  const after = isContinued
    ? `AND (t.ts, t.trade_id) ${compare} (${place} COLLATE "C") AND NOT ((t.ts, t.trade_id) = (${place}) AND ${passed})`
    : '';
  return sql(
    `read_trades_${direction}${isContinued ? '_after' : ''}`,
    `SELECT t.token_id, t.ts, (extract(epoch FROM t.ts) * 1000000)::bigint AS ts_us, t.trade_id, t.price, t.size, t.side
     FROM unnest($1::bigint[]) AS k (token_id)
     CROSS JOIN LATERAL (
       SELECT * FROM trade t WHERE t.token_id = k.token_id
         AND t.ts >= coalesce(to_timestamp($2::float8), '-infinity') AND t.ts < coalesce(to_timestamp($3::float8), 'infinity')
         ${after} ORDER BY t.ts ${way}, t.trade_id ${way} LIMIT $4) t
     ORDER BY t.ts ${way}, t.trade_id ${way}, t.token_id ${way} LIMIT $4`,
  );
}

const TRADES = {
  asc: { first: tradeStatement('asc', false), after: tradeStatement('asc', true) },
  desc: { first: tradeStatement('desc', false), after: tradeStatement('desc', true) },
};

/** A page of the tape of these outcomes in the order `(ts, trade_id)`, and the place of its last trade when more follow. */
export async function readTrades(
  db: Queryable,
  query: TradeQuery,
): Promise<{ trades: StoredTrade[]; next?: TradePlace }> {
  const { after, direction, limit, range, tokenIds } = query;
  const values: unknown[] = [tokenIds, range.start ?? null, range.end ?? null, limit + 1];
  if (after) values.push(after.atMicros, after.tradeId, after.tokenId);
  const rows = await db.query<TradeRow>(TRADES[direction][after ? 'after' : 'first'], values);
  const trades = rows.slice(0, limit).map(
    (row): StoredTrade => ({
      tokenId: BigInt(row.token_id),
      tradeId: row.trade_id,
      at: row.ts,
      atMicros: row.ts_us,
      price: row.price,
      size: row.size,
      side: row.side === null ? undefined : row.side > 0 ? 'buy' : 'sell',
    }),
  );
  const last = trades.at(-1);
  if (rows.length <= limit || !last) return { trades };
  return { trades, next: { atMicros: last.atMicros, tradeId: last.tradeId, tokenId: String(last.tokenId) } };
}
