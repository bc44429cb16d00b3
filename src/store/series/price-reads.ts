import { ONE_MARKET } from '../catalog/market-reads.ts';
import { type Queryable, sql } from '../db/tx.ts';

/** The price of one outcome; all fields but the id are null before the first price. */
interface OutcomePrice {
  outcomeId: string;
  price: string | null;
  bid: string | null;
  ask: string | null;
  /** When the venue last had the price. */
  asOf: Date | null;
}

export interface MarketPrices {
  pk: bigint;
  venue: string;
  marketId: string;
  /** Whether the market has its result, or is gone. Absent without `at`. */
  isOver?: boolean;
  /** In the venue's order. */
  outcomes: OutcomePrice[];
}

/** $1 venues, $2 market ids. When two venues use one id, the first listed venue wins. */
const ASKED = `unnest($2::text[]) WITH ORDINALITY AS a (market_id, place)
   CROSS JOIN LATERAL (
     SELECT m.id, m.venue, m.venue_market_id, m.updated_at, m.status, m.gone_at FROM market m
     WHERE m.venue = ANY ($1::text[]) AND m.venue_market_id = a.market_id
     ORDER BY array_position($1::text[], m.venue) LIMIT 1) m`;

const LATEST =
  'm.id AS pk, m.venue, m.venue_market_id AS market_id, t.mint AS outcome_id, l.price, l.bid, l.ask, l.as_of';
const ITS_OUTCOMES = `LEFT JOIN outcome o ON o.market_id = m.id LEFT JOIN token t ON t.id = o.token_id
   LEFT JOIN current_price l ON l.token_id = o.token_id`;

const PRICES = sql('market_prices', `SELECT ${LATEST} FROM ${ASKED} ${ITS_OUTCOMES} ORDER BY a.place, o.ordinal`);
/** A separate statement for one market: a list of unknown length is planned at each call, which costs four times the read. */
const PRICES_OF_ONE = sql(
  'one_market_prices',
  `SELECT ${LATEST} FROM (SELECT * FROM market m WHERE ${ONE_MARKET}) m ${ITS_OUTCOMES} ORDER BY o.ordinal`,
);

/** The outcomes of the market as known at that moment, each with the newest price record received by then. */
const PRICES_AT = sql(
  'market_prices_at',
  `SELECT m.id AS pk, m.venue, m.venue_market_id AS market_id, (m.status IN ('resolved', 'settled') OR m.gone_at IS NOT NULL) AS is_over, o.mint AS outcome_id, h.price, h.bid, h.ask, h.as_of
   FROM ${ASKED}
   LEFT JOIN LATERAL (
     SELECT v.facts -> 'outcomes' AS outcomes FROM market_version v
     WHERE v.market_id = m.id AND v.known_until > to_timestamp($3::float8) AND v.known_from <= to_timestamp($3::float8)
     ORDER BY v.known_until LIMIT 1) v ON m.updated_at > to_timestamp($3::float8)
   LEFT JOIN LATERAL (
     SELECT t.mint, t.id, o.ordinal::bigint AS place FROM outcome o JOIN token t ON t.id = o.token_id
     WHERE o.market_id = m.id AND m.updated_at <= to_timestamp($3::float8)
     UNION ALL
     SELECT e.outcome ->> 0, t.id, e.place
     FROM jsonb_array_elements(v.outcomes) WITH ORDINALITY AS e (outcome, place)
     LEFT JOIN token t ON t.mint = e.outcome ->> 0) o ON true
   LEFT JOIN LATERAL (
     SELECT h.price, h.bid, h.ask, h.as_of FROM price_history h
     WHERE h.token_id = o.id AND h.received_at <= to_timestamp($3::float8)
     ORDER BY h.received_at DESC LIMIT 1) h ON true
   ORDER BY a.place, o.place`,
);

type PriceRow = Omit<OutcomePrice, 'outcomeId'> & {
  isOver?: boolean;
  pk: bigint;
  venue: string;
  marketId: string;
  outcomeId: string | null;
};

/**
 * The prices of these distinct markets, in their order: the latest ones, or with `at` (epoch seconds) those known at that moment. Omits
 * unknown markets.
 */
export async function readPrices(
  db: Queryable,
  venues: readonly string[],
  marketIds: readonly string[],
  at?: number,
): Promise<MarketPrices[]> {
  const rows = await queryPrices(db, venues, marketIds, at);
  const byMarket = new Map<string, MarketPrices>();
  for (const { pk, venue, marketId, isOver, outcomeId, ...price } of rows) {
    const market = byMarket.get(marketId) ?? {
      pk,
      venue,
      marketId,
      ...(isOver !== undefined && { isOver }),
      outcomes: [],
    };
    byMarket.set(marketId, market);
    if (outcomeId !== null) market.outcomes.push({ outcomeId, ...price });
  }
  return [...byMarket.values()];
}

function queryPrices(
  db: Queryable,
  venues: readonly string[],
  marketIds: readonly string[],
  at: number | undefined,
): Promise<PriceRow[]> {
  if (at !== undefined) return db.query(PRICES_AT, [venues, marketIds, at]);
  const [only, ...others] = marketIds;
  if (only !== undefined && others.length === 0) return db.query(PRICES_OF_ONE, [venues, only]);
  return db.query(PRICES, [venues, marketIds]);
}
