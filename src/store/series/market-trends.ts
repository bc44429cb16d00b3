import { type Queryable, sql } from '../db/tx.ts';

const HOUR_SECONDS = 3_600;
const TREND_HOURS = 24;
export const DAY_SECONDS = TREND_HOURS * HOUR_SECONDS;

/** An outcome of a market with its latest price and its prices of the last day, `numeric` text. */
export interface MarketTrend {
  venue: string;
  marketId: string;
  outcomeId: string;
  label: string;
  price: string | null;
  bid: string | null;
  ask: string | null;
  asOf: Date | null;
  /** At each of the last 25 full hours, oldest first: quoted, before the first quote the last close of an hour, before that null. */
  points: (string | null)[];
}

/**
 * The order of the outcomes `o` of a market: of more than two, the one with the highest price `l` comes first, because the first
 * one of a question such as "Who wins?" is any of them.
 */
export const LEADER_FIRST = `CASE WHEN (SELECT count(*) FROM outcome each WHERE each.market_id = o.market_id) > 2 THEN l.price END DESC NULLS LAST, o.ordinal`;

/** $1 venues, $2 market ids, $3 the last full hour in epoch seconds, $4 outcome ids or nulls. One or two index probes per market and hour. */
const TRENDS = sql(
  'market_trends',
  `SELECT m.venue, m.venue_market_id AS market_id, o.mint AS outcome_id, o.label, o.price, o.bid, o.ask, o.as_of, h.points
   FROM unnest($1::text[], $2::text[], $4::text[]) AS a (venue, market_id, mint)
   JOIN market m ON m.venue = a.venue AND m.venue_market_id = a.market_id
   CROSS JOIN LATERAL (
     SELECT o.token_id, o.label, t.mint, l.price, l.bid, l.ask, l.as_of
     FROM outcome o JOIN token t ON t.id = o.token_id LEFT JOIN current_price l ON l.token_id = o.token_id
     WHERE o.market_id = m.id AND (a.mint IS NULL OR t.mint = a.mint) ORDER BY ${LEADER_FIRST} LIMIT 1) o
   CROSS JOIN LATERAL (
     SELECT array_agg(coalesce(s.price, k.close)::text ORDER BY b.ts) AS points
     FROM generate_series($3::bigint - ${TREND_HOURS * HOUR_SECONDS}, $3::bigint, ${HOUR_SECONDS}) AS b (ts)
     LEFT JOIN LATERAL (
       SELECT price FROM snapshot WHERE token_id = o.token_id AND ts <= b.ts ORDER BY ts DESC LIMIT 1) s ON true
     LEFT JOIN LATERAL (
       SELECT close FROM candle
       WHERE s.price IS NULL AND token_id = o.token_id
         AND interval_seconds = ${HOUR_SECONDS} AND bucket <= b.ts - ${HOUR_SECONDS}
       ORDER BY bucket DESC LIMIT 1) k ON true) h`,
);

/**
 * The trends of these markets, in any order: of the named outcome, or of the first one, or of the leader among more than two. Omits
 * unknown markets, and those without the outcome.
 */
export function readTrends(
  db: Queryable,
  markets: readonly { venue: string; marketId: string; outcomeId?: string | undefined }[],
  nowMs: number,
): Promise<MarketTrend[]> {
  const hour = Math.floor(nowMs / 1_000 / HOUR_SECONDS) * HOUR_SECONDS;
  const [venues, ids] = [markets.map(({ venue }) => venue), markets.map(({ marketId }) => marketId)];
  const outcomes = markets.map(({ outcomeId }) => outcomeId ?? null);
  return db.query(TRENDS, [venues, ids, hour, outcomes]);
}

/** The index market_by_category_created begins with the category: one step along it per category. */
const CATEGORIES = sql(
  'all_market_categories',
  `WITH RECURSIVE seen AS (
     (SELECT m.category, 1 AS place FROM market m WHERE m.category IS NOT NULL AND length(m.category) <= 200 ORDER BY m.category LIMIT 1)
     UNION ALL
     SELECT n.category, seen.place + 1 FROM seen CROSS JOIN LATERAL (
       SELECT m.category FROM market m WHERE m.category > seen.category AND length(m.category) <= 200
       ORDER BY m.category LIMIT 1) n
     WHERE seen.place < $1)
   SELECT category FROM seen`,
);

/** The first categories of markets by their names. */
export async function listCategories(db: Queryable, limit: number): Promise<string[]> {
  return (await db.query<{ category: string }>(CATEGORIES, [limit])).map(({ category }) => category);
}
