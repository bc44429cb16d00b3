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
  /** When oddswire stored it, epoch seconds; null for trades of an earlier release. */
  receivedSeconds: number | null;
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

/** A row of `tradePageSql`. */
export interface TradeRow {
  tokenId: bigint;
  atMicros: string;
  tradeId: string;
  price: string;
  size: string;
  side: number | null;
  ordinal: number;
  signedPrice: string;
  receivedSeconds: number | null;
}

/**
 * SQL of a page of trades: it walks each outcome along its own index and merges the results, at most one page per outcome. `tokens` is the
 * SQL of an array of keys. The parameters from `first` on are those of `tradePageValues`.
 */
export function tradePageSql(
  tokens: string,
  { direction, isContinued, first }: { direction: 'asc' | 'desc'; isContinued: boolean; first: number },
): string {
  const [ahead, behind, order, way] =
    direction === 'asc' ? ['>=', '<=', TRADE_ORDER, 'ASC'] : ['<=', '>=', TRADE_ORDER_REVERSED, 'DESC'];
  const [start, end, limit, micros, ordinal, signedPrice, tradeId, tokenId] = Array.from(
    { length: 8 },
    (_, n) => `$${first + n}`,
  );
  const ts = `timestamptz 'epoch' + ${micros}::bigint * interval '1 microsecond'`;
  const place = `(${ts}, ${ordinal}::int, ${signedPrice}::numeric, ${tradeId}::text COLLATE "C")`;
  // The condition on `ts` alone selects index range and partitions.
  const after = isContinued
    ? `AND ts ${ahead} ${ts} AND ${TRADE_PLACE} ${ahead} ${place} AND NOT (${TRADE_PLACE} = ${place} AND k.token_id ${behind} ${tokenId}::bigint)`
    : '';
  return `SELECT t.token_id, (extract(epoch FROM t.ts) * 1000000)::bigint::text AS at_micros, t.trade_id, t.price, t.size, t.side,
       t.ordinal, ${SIGNED_PRICE_COLUMN}, floor(extract(epoch FROM t.received_at))::float8 AS received_seconds
     FROM unnest(${tokens}) AS k (token_id)
     CROSS JOIN LATERAL (
       SELECT * FROM trade t WHERE t.token_id = k.token_id
         AND t.ts >= coalesce(to_timestamp(${start}::float8), '-infinity') AND t.ts < coalesce(to_timestamp(${end}::float8), 'infinity')
         ${after} ORDER BY ${order} LIMIT ${limit}) t
     ORDER BY ${order}, t.token_id ${way} LIMIT ${limit}`;
}

/** The parameters of `tradePageSql`: one trade more than the page has. */
export function tradePageValues({ after, limit, range }: Omit<TradeQuery, 'tokenIds' | 'direction'>): unknown[] {
  const values: unknown[] = [range.start ?? null, range.end ?? null, limit + 1];
  if (after) values.push(after.atMicros, after.ordinal, after.signedPrice, after.tradeId, after.tokenId);
  return values;
}

function tradeStatement(direction: 'asc' | 'desc', isContinued: boolean) {
  return sql(
    `read_trades_${direction}${isContinued ? '_after' : ''}`,
    tradePageSql('$1::bigint[]', { direction, isContinued, first: 2 }),
  );
}

const TRADES = {
  asc: { first: tradeStatement('asc', false), after: tradeStatement('asc', true) },
  desc: { first: tradeStatement('desc', false), after: tradeStatement('desc', true) },
};

interface TradePage {
  trades: StoredTrade[];
  /** The position of the last trade when more follow. */
  next?: TradePlace;
}

/** A page of the tape of these outcomes in the order of trades. */
export async function readTrades(db: Queryable, query: TradeQuery): Promise<TradePage> {
  const { after, direction, limit, tokenIds } = query;
  const statement = TRADES[direction][after ? 'after' : 'first'];
  return toTradePage(await db.query<TradeRow>(statement, [tokenIds, ...tradePageValues(query)]), limit);
}

/** The page of the rows of `tradePageSql`. */
export function toTradePage(rows: readonly TradeRow[], limit: number): TradePage {
  const trades = rows.slice(0, limit).map(
    (row): StoredTrade => ({
      tokenId: row.tokenId,
      tradeId: row.tradeId,
      at: new Date(Number(row.atMicros) / 1_000),
      atMicros: row.atMicros,
      price: row.price,
      size: row.size,
      side: row.side === null ? undefined : row.side > 0 ? 'buy' : 'sell',
      receivedSeconds: row.receivedSeconds,
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
