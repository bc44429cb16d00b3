import type { Decimal } from '../../domain/values/decimal.ts';
import type { TimeRange } from '../../domain/values/time-range.ts';
import { type Queryable, sql } from '../db/tx.ts';
import { SIGNED_PRICE_COLUMN, TRADE_ORDER, TRADE_ORDER_REVERSED, TRADE_PLACE } from './trade-order.ts';

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
  `SELECT bucket::float8 AS bucket, open, high, low, close, volume, notional, trades FROM candle
   WHERE token_id = $1 AND interval_seconds = $2 AND bucket >= $3 AND bucket < $4 ORDER BY candle.bucket`,
);

/** Candles whose bucket starts in the range, oldest first; buckets without a trade have none. */
export function readCandles(
  db: Queryable,
  tokenId: bigint,
  intervalSeconds: number,
  range: TimeRange,
): Promise<StoredCandle[]> {
  return db.query(CANDLES, [tokenId, intervalSeconds, range.start, range.end]);
}

const CLOSE_BEFORE = sql(
  'close_before',
  `SELECT close FROM candle WHERE token_id = $1 AND interval_seconds = $2 AND bucket < $3 ORDER BY bucket DESC LIMIT 1`,
);

/** The close of the last candle that starts before a moment; null without an earlier trade. */
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
  `SELECT bucket::float8 AS bucket, sum(volume) AS volume, sum(notional) AS notional, sum(trades)::float8 AS trades FROM candle
   WHERE token_id = ANY ($1::bigint[]) AND interval_seconds = $2 AND bucket >= $3 AND bucket < $4
   GROUP BY candle.bucket ORDER BY candle.bucket`,
);

/** Volume per window over these outcomes together, oldest first; windows without a trade are left out. */
export function readVolume(
  db: Queryable,
  tokenIds: readonly bigint[],
  windowSeconds: number,
  range: TimeRange,
): Promise<VolumeWindow[]> {
  return db.query(VOLUME, [tokenIds, windowSeconds, range.start, range.end]);
}

interface StoredSnapshot {
  ts: number;
  price: string;
  bid: string | null;
  ask: string | null;
}

/** One index probe per boundary, so the cost follows the number of boundaries, not the rows between them. */
const SNAPSHOTS = sql(
  'read_snapshots',
  `SELECT b.ts::float8 AS ts, s.price, s.bid, s.ask
   FROM generate_series($3::bigint, $4::bigint - 1, $2::bigint) AS b (ts)
   CROSS JOIN LATERAL (
     SELECT price, bid, ask FROM snapshot WHERE token_id = $1 AND ts <= b.ts ORDER BY ts DESC LIMIT 1) s
   ORDER BY b.ts`,
);

/**
 * The price of an outcome at each interval boundary of the range, carried forward over gaps. Omits boundaries before the first sample.
 * `range.start` must be a boundary.
 */
export function readSnapshots(
  db: Queryable,
  tokenId: bigint,
  intervalSeconds: number,
  range: TimeRange,
): Promise<StoredSnapshot[]> {
  return db.query(SNAPSHOTS, [tokenId, intervalSeconds, range.start, range.end]);
}

export interface StoredTrade {
  tokenId: bigint;
  tradeId: string;
  at: Date;
  /** The same moment in epoch microseconds: the exact sort key. */
  atMicros: string;
  price: string;
  size: string;
  side: 'buy' | 'sell' | undefined;
}

/** The position of a trade in a market's tape; the texts are integers and a decimal. */
export interface TradePlace {
  atMicros: string;
  ordinal: string;
  signedPrice: string;
  tradeId: string;
  tokenId: string;
}

interface TradeQuery {
  tokenIds: readonly bigint[];
  range: Partial<TimeRange>;
  direction: 'asc' | 'desc';
  limit: number;
  after?: TradePlace;
}

interface TradeRow {
  tokenId: bigint;
  ts: Date;
  atMicros: string;
  tradeId: string;
  price: string;
  size: string;
  side: number | null;
  ordinal: number;
  signedPrice: string;
}

const MICROS = (parameter: string) => `timestamptz 'epoch' + ${parameter}::bigint * interval '1 microsecond'`;

/** Walks each outcome along its own index and merges the results: at most one page per outcome. */
function tradeStatement(direction: 'asc' | 'desc', isContinued: boolean) {
  const [ahead, behind, order, way] =
    direction === 'asc' ? ['>=', '<=', TRADE_ORDER, 'ASC'] : ['<=', '>=', TRADE_ORDER_REVERSED, 'DESC'];
  const ts = MICROS('$5');
  const place = `(${ts}, $6::int, $7::numeric, $8::text COLLATE "C")`;
  // The condition on `ts` alone selects index range and partitions.
  const after = isContinued
    ? `AND ts ${ahead} ${ts} AND ${TRADE_PLACE} ${ahead} ${place} AND NOT (${TRADE_PLACE} = ${place} AND k.token_id ${behind} $9::bigint)`
    : '';
  return sql(
    `read_trades_${direction}${isContinued ? '_after' : ''}`,
    `SELECT t.token_id, t.ts, (extract(epoch FROM t.ts) * 1000000)::bigint::text AS at_micros, t.trade_id, t.price, t.size, t.side,
       t.ordinal, ${SIGNED_PRICE_COLUMN}
     FROM unnest($1::bigint[]) AS k (token_id)
     CROSS JOIN LATERAL (
       SELECT * FROM trade t WHERE t.token_id = k.token_id
         AND t.ts >= coalesce(to_timestamp($2::float8), '-infinity') AND t.ts < coalesce(to_timestamp($3::float8), 'infinity')
         ${after} ORDER BY ${order} LIMIT $4) t
     ORDER BY ${order}, t.token_id ${way} LIMIT $4`,
  );
}

const TRADES = {
  asc: { first: tradeStatement('asc', false), after: tradeStatement('asc', true) },
  desc: { first: tradeStatement('desc', false), after: tradeStatement('desc', true) },
};

/** A page of the tape of these outcomes in the order of trades, with the position of its last trade when more follow. */
export async function readTrades(
  db: Queryable,
  query: TradeQuery,
): Promise<{ trades: StoredTrade[]; next?: TradePlace }> {
  const { after, direction, limit, range, tokenIds } = query;
  const values: unknown[] = [tokenIds, range.start ?? null, range.end ?? null, limit + 1];
  if (after) {
    const { atMicros, ordinal, signedPrice, tradeId, tokenId } = after;
    values.push(atMicros, ordinal, signedPrice, tradeId, tokenId);
  }
  const rows = await db.query<TradeRow>(TRADES[direction][after ? 'after' : 'first'], values);
  const trades = rows.slice(0, limit).map(
    (row): StoredTrade => ({
      tokenId: row.tokenId,
      tradeId: row.tradeId,
      at: row.ts,
      atMicros: row.atMicros,
      price: row.price,
      size: row.size,
      side: row.side === null ? undefined : row.side > 0 ? 'buy' : 'sell',
    }),
  );
  const last = rows[limit - 1];
  if (rows.length <= limit || !last) return { trades };
  const next = {
    atMicros: last.atMicros,
    ordinal: String(last.ordinal),
    signedPrice: last.signedPrice,
    tradeId: last.tradeId,
    tokenId: String(last.tokenId),
  };
  return { trades, next };
}
