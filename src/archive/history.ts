import type { Correction } from '../store/archive/past.ts';
import type { TradePlace } from '../store/series/reads.ts';
import { literal, rowsOf } from './parquet.ts';

interface TradesQuery {
  /** Paths of files. */
  readonly files: readonly string[];
  /** Trades that the files may lack: one counts when they have none of its outcome, time and id. */
  readonly corrections: readonly Correction[];
  readonly marketId: string;
  /** Ids of the outcomes, with their keys, which order trades that agree in all else. */
  readonly outcomes: readonly { readonly outcomeId: string; readonly tokenId: bigint }[];
  /** `[fromMicros, untilMicros)` since 1970. */
  readonly fromMicros: bigint;
  readonly untilMicros: bigint;
  readonly direction: 'asc' | 'desc';
  readonly limit: number;
  readonly after?: TradePlace | undefined;
}

export const timeSql = (micros: bigint) => `make_timestamptz(${micros})`;
/** The digits of a value, also of one that no DECIMAL has. */
export const digits = (name: string) => `coalesce(CAST(${name} AS VARCHAR), ${name}_text)`;
/** As for the order of trades of a venue: positive for a buy, negative for a sell. A price beyond the type has no place of its own. */
const SIGNED = 'coalesce(side * TRY_CAST(price AS DECIMAL(38, 18)), 0)';
const KEYS = ['at_micros', 'ordinal', 'signed', 'trade_id', 'token_id'] as const;

/** SQL of DuckDB of a page of trades of a market, in the order of `TRADE_ORDER` of the store and then of the keys of outcomes. */
export function tradesSql(query: TradesQuery): string {
  const { files, corrections, marketId, outcomes, fromMicros, untilMicros, direction, limit, after } = query;
  const keys = outcomes.map(({ outcomeId, tokenId }) => `(${literal(outcomeId)}, ${tokenId})`).join(', ');
  const stored = `
    SELECT o.token_id, epoch_us(t.ts) AS at_micros, t.trade_id, ${digits('t.price')} AS price, ${digits('t.size')} AS size,
      CASE t.side WHEN 'buy' THEN 1 WHEN 'sell' THEN -1 END AS side, t.ordinal, epoch_us(t.received_at) // 1000000 AS received_seconds
    FROM ${rowsOf(...files)} t JOIN (VALUES ${keys}) o (outcome_id, token_id) USING (outcome_id)
    WHERE t.market_id = ${literal(marketId)} AND t.ts >= ${timeSql(fromMicros)} AND t.ts < ${timeSql(untilMicros)}`;
  const given = corrections.map(
    ({ tokenId, atMicros, tradeId, price, size, side, ordinal, receivedSeconds }) =>
      `(${BigInt(tokenId)}, ${BigInt(atMicros)}, ${literal(tradeId)}, ${literal(price)}, ${literal(size)}, ${side ?? 'NULL'}, ${ordinal}, ${receivedSeconds ?? 'NULL'})`,
  );
  const corrected = `
    SELECT * FROM (VALUES ${given.join(', ')}) c (token_id, at_micros, trade_id, price, size, side, ordinal, received_seconds)`;
  const sources = [
    ...(files.length > 0 ? [`stored AS ${given.length > 0 ? 'MATERIALIZED' : ''} (${stored})`] : []),
    `page AS (${[
      ...(files.length > 0 ? ['SELECT * FROM stored'] : []),
      ...(given.length > 0
        ? [files.length > 0 ? `${corrected} ANTI JOIN stored USING (token_id, at_micros, trade_id)` : corrected]
        : []),
    ].join(' UNION ALL ')})`,
  ];
  const [sign, way] = direction === 'asc' ? ['>', 'ASC'] : ['<', 'DESC'];
  const behind =
    after === undefined
      ? ''
      : `WHERE (${KEYS.join(', ')}) ${sign} (${BigInt(after.atMicros)}, ${Number(after.ordinal)},
          coalesce(TRY_CAST(${literal(after.signedPrice)} AS DECIMAL(38, 18)), 0), ${literal(after.tradeId)}, ${BigInt(after.tokenId)})`;
  return `WITH ${sources.join(', ')}
    SELECT CAST(token_id AS VARCHAR) AS token_id, CAST(at_micros AS VARCHAR) AS at_micros, trade_id, price, size, side, ordinal,
      CAST(received_seconds AS DOUBLE) AS received_seconds, CAST(signed AS VARCHAR) AS signed_price
    FROM (SELECT *, ${SIGNED} AS signed FROM page) p ${behind}
    ORDER BY ${KEYS.map((key) => `${key} ${way}`).join(', ')} LIMIT ${limit}`;
}

interface ValueQuery {
  readonly files: readonly string[];
  readonly marketIds: readonly string[];
  readonly outcomeIds: readonly string[];
  /** Since 1970. */
  readonly atMicros: bigint;
}

const VALUES = {
  prices: `${digits('price')} AS price, ${digits('bid')} AS bid, ${digits('ask')} AS ask`,
  books: 'bids, asks',
} as const;

/** SQL of DuckDB of the last value of each outcome that was received by a moment. */
export function valuesAtSql(kind: keyof typeof VALUES, { files, marketIds, outcomeIds, atMicros }: ValueQuery): string {
  return `SELECT outcome_id, CAST(epoch_us(as_of) AS VARCHAR) AS as_of_micros, ${VALUES[kind]}
    FROM ${rowsOf(...files)}
    WHERE market_id IN (${marketIds.map(literal).join(', ')}) AND outcome_id IN (${outcomeIds.map(literal).join(', ')}) AND received_at <= ${timeSql(atMicros)}
    QUALIFY row_number() OVER (PARTITION BY outcome_id ORDER BY received_at DESC) = 1`;
}
