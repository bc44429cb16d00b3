import type { TradeRecord } from '../../domain/markets/market.ts';
import { type Queryable, sql, type Tx } from '../db/tx.ts';
import { insertMarksSql, minuteOf } from '../marks/detail.ts';
import { insertPublishSql } from '../marks/publish-marks.ts';

/*
 * An earlier release divided the mana of a bet by its shares in binary floats, so stored prices of Manifold may differ from the exact
 * quotient in their last digits. Two passes read the bets of each market again where the venue serves them, correct the prices, and mark
 * their minutes for `fold-candles`. The first pass begins at once. The second begins a day after the migration and covers this day: until
 * then a poller of the earlier release may store such prices behind the first pass. A database without trades of Manifold at the migration
 * has no pass. A correction is no trade and no observation: it emits no event and evaluates no alert.
 */

/** A greater difference of a price is no rounding. */
const ROUNDING = '1e-9';
/** Markets of one look for the next one with trades. */
const LOOKED_THROUGH = 500;

const IS_BETWEEN_MARKETS = `r.ended_at IS NULL AND r.due_at <= clock_timestamp()
  AND (r.status IN ('done', 'failed') OR NOT EXISTS (SELECT FROM market m WHERE m.id = r.market_id))`;

/** SQL of the passes that must take their next market, with the columns of `countTradeHistories`. */
export const REREADS_BETWEEN_MARKETS = `SELECT r.venue, 'queued' AS status, 1 AS walks, 1 AS due FROM trade_reread r
  WHERE r.pass = (SELECT min(o.pass) FROM trade_reread o WHERE o.venue = r.venue AND o.ended_at IS NULL) AND ${IS_BETWEEN_MARKETS}`;

const NEXT_MARKET = sql(
  'next_reread_market',
  `WITH pass AS MATERIALIZED (
     SELECT r.pass, r.venue, r.market_id, r.since_at, r.until_at FROM trade_reread r
     WHERE r.pass = (SELECT min(o.pass) FROM trade_reread o WHERE o.venue = $1 AND o.ended_at IS NULL) AND ${IS_BETWEEN_MARKETS}
     FOR UPDATE),
   looked AS MATERIALIZED (
     SELECT m.id, p.since_at, p.until_at FROM pass p CROSS JOIN LATERAL (
       SELECT m.id FROM market m WHERE m.venue = p.venue AND m.id > p.market_id ORDER BY m.id LIMIT ${LOOKED_THROUGH}) m),
   chosen AS (
     SELECT l.id FROM looked l WHERE EXISTS (
       SELECT FROM outcome o WHERE o.market_id = l.id AND EXISTS (
         SELECT FROM trade t WHERE t.token_id = o.token_id AND t.ts >= l.since_at AND t.ts < l.until_at OFFSET 0))
     ORDER BY l.id LIMIT 1),
   next AS (SELECT (SELECT id FROM chosen) AS chosen, (SELECT max(id) FROM looked) AS last)
   UPDATE trade_reread r SET market_id = coalesce(n.chosen, n.last, r.market_id),
     status = CASE WHEN n.chosen IS NULL THEN 'done' ELSE 'queued' END, from_at = r.since_at, to_at = r.until_at, reached_at = NULL,
     position = NULL, failures = 0, last_error = NULL, requested_at = clock_timestamp(), touched_at = NULL, finished_at = NULL,
     markets = r.markets + CASE WHEN n.chosen IS NULL THEN 0 ELSE 1 END,
     ended_at = CASE WHEN n.last IS NULL THEN clock_timestamp() END
   FROM pass p, next n WHERE r.pass = p.pass
   RETURNING r.pass, r.ended_at IS NOT NULL AS is_ended, r.markets::float8 AS markets, r.trades::float8 AS trades, r.kept::float8 AS kept`,
);

/** A pass, after it took its next market or found none. */
interface RereadStep extends RereadCounts {
  pass: number;
  isEnded: boolean;
}

interface RereadCounts {
  /** Markets so far. */
  markets: number;
  /** Trades whose price was corrected. */
  trades: number;
  /** Trades that the venue does not serve again: they keep their price. */
  kept: number;
}

/** Moves the pass of a venue to its next market with trades; null when no pass is due or its market is not finished. */
export async function nextRereadMarket(db: Queryable, venue: string): Promise<RereadStep | null> {
  const [step] = await db.query<RereadStep>(NEXT_MARKET, [venue]);
  return step ?? null;
}

const CORRECT = sql(
  'correct_prices',
  `WITH served AS MATERIALIZED (
     SELECT k.id AS token_id, to_timestamp(s.ms / 1000) AS ts, s.trade_id, s.price, s.size
     FROM unnest($4::text[], $5::float8[], $6::text[], $7::numeric[], $8::numeric[]) AS s (mint, ms, trade_id, price, size)
     JOIN token k ON k.mint = s.mint),
   stored AS MATERIALIZED (
     SELECT t.token_id, t.ts, t.trade_id, t.price, s.price AS exact
     FROM outcome o JOIN trade t ON t.token_id = o.token_id
     LEFT JOIN served s ON s.token_id = t.token_id AND s.ts = t.ts AND s.trade_id = t.trade_id AND s.size = t.size
       AND abs(s.price - t.price) < ${ROUNDING}
     WHERE o.market_id = $1 AND t.ts >= $2::timestamptz AND t.ts < $3::timestamptz),
   corrected AS (
     UPDATE trade t SET price = s.exact FROM stored s
     WHERE t.token_id = s.token_id AND t.ts = s.ts AND t.trade_id = s.trade_id AND s.exact <> s.price
     RETURNING t.token_id, t.ts),
   folds AS (
     ${insertMarksSql('fold-candles', `SELECT DISTINCT token_id, ${minuteOf('ts')} FROM corrected`)}),
   published AS (
     ${insertPublishSql(
       'late-trades',
       `SELECT token_id, floor(extract(epoch FROM min(ts)))::bigint, floor(extract(epoch FROM max(ts)))::bigint + 1
        FROM corrected GROUP BY token_id`,
     )}),
   counted AS (
     UPDATE trade_reread r SET trades = r.trades + (SELECT count(*) FROM corrected),
       kept = r.kept + (SELECT count(*) FROM stored WHERE exact IS NULL)
     WHERE r.market_id = $1 AND r.ended_at IS NULL)
   SELECT DISTINCT token_id FROM corrected`,
);

/**
 * Corrects the prices of stored trades of a market in `[fromMs, toMs)` to the ones that the venue serves for this time, and counts the
 * trades that it does not serve. Returns the tokens with corrected prices, for the wake-ups.
 */
export async function correctPrices(
  tx: Tx,
  { marketPk }: { marketPk: bigint },
  { fromMs, toMs }: { fromMs: number; toMs: number },
  served: readonly TradeRecord[],
): Promise<bigint[]> {
  const rows = await tx.query<{ tokenId: bigint }>(CORRECT, [
    marketPk,
    new Date(fromMs).toISOString(),
    new Date(toMs).toISOString(),
    served.map(({ outcomeId }) => outcomeId),
    served.map(({ tsMs }) => tsMs),
    served.map(({ tradeId }) => tradeId),
    served.map(({ price }) => price),
    served.map(({ size }) => size),
  ]);
  return rows.map(({ tokenId }) => tokenId);
}

const READ = sql(
  'read_rereads',
  `SELECT venue, bool_and(ended_at IS NOT NULL) AS is_ended, max(ended_at) AS ended_at, min(due_at) FILTER (WHERE ended_at IS NULL) AS due_at,
     sum(markets)::float8 AS markets, sum(trades)::float8 AS trades, sum(kept)::float8 AS kept
   FROM trade_reread WHERE venue = ANY ($1::text[]) GROUP BY venue`,
);

/** The passes of a venue together. */
export interface RereadProgress extends RereadCounts {
  venue: string;
  isEnded: boolean;
  endedAt: Date | null;
  /** The start of the first pass that has not ended. */
  dueAt: Date | null;
}

/** By venue; none for a venue without passes. */
export async function readRereads(db: Queryable, venues: readonly string[]): Promise<Map<string, RereadProgress>> {
  return new Map((await db.query<RereadProgress>(READ, [venues])).map((row) => [row.venue, row]));
}
