import type { MarketStatus } from '../../domain/markets/market.ts';
import { type Queryable, sql } from '../db/tx.ts';

interface MarketName {
  venue: string;
  marketId: string;
}

const CATEGORIES = sql(
  'market_categories',
  `SELECT m.venue, m.venue_market_id AS market_id, m.category
   FROM unnest($1::text[], $2::text[]) AS a (venue, market_id)
   JOIN market m ON m.venue = a.venue AND m.venue_market_id = a.market_id`,
);

/** The categories of these markets. Omits unknown markets. */
export function readCategories(
  db: Queryable,
  markets: readonly MarketName[],
): Promise<(MarketName & { category: string | null })[]> {
  return db.query(CATEGORIES, [markets.map(({ venue }) => venue), markets.map(({ marketId }) => marketId)]);
}

const NAMED_MARKETS = sql(
  'named_markets',
  `SELECT m.venue_market_id AS market_id, m.category FROM market m
   WHERE m.venue = ANY ($1::text[]) AND m.venue_market_id = ANY ($2::text[])`,
);

export interface NamedMarket {
  marketId: string;
  category: string | null;
}

/** The markets of these venues with these ids. Venues may share an id. */
export function readNamedMarkets(
  db: Queryable,
  venues: readonly string[],
  marketIds: readonly string[],
): Promise<NamedMarket[]> {
  return db.query(NAMED_MARKETS, [venues, marketIds]);
}

/** The columns of a NamedOutcome. */
const OUTCOME = 't.mint AS outcome_id, m.venue, m.venue_market_id AS market_id, m.category, m.status, m.has_book';

const NAMED_OUTCOMES = sql(
  'named_outcomes',
  `SELECT ${OUTCOME} FROM token t JOIN outcome o ON o.token_id = t.id JOIN market m ON m.id = o.market_id
   WHERE t.mint = ANY ($2::text[]) AND m.venue = ANY ($1::text[])`,
);

const OUTCOMES_OF = sql(
  'outcomes_of_markets',
  `SELECT ${OUTCOME} FROM market m JOIN outcome o ON o.market_id = m.id JOIN token t ON t.id = o.token_id
   WHERE m.venue = ANY ($1::text[]) AND m.venue_market_id = ANY ($2::text[]) ORDER BY m.id, o.ordinal LIMIT $3`,
);

export interface NamedOutcome extends NamedMarket {
  venue: string;
  outcomeId: string;
  status: MarketStatus;
  hasBook: boolean;
}

/** The outcomes with these ids of markets of these venues, each with its market. */
export function readNamedOutcomes(
  db: Queryable,
  venues: readonly string[],
  outcomeIds: readonly string[],
): Promise<NamedOutcome[]> {
  return db.query(NAMED_OUTCOMES, [venues, outcomeIds]);
}

/** The outcomes of these markets, at most `limit`. */
export function readOutcomesOf(
  db: Queryable,
  venues: readonly string[],
  marketIds: readonly string[],
  limit: number,
): Promise<NamedOutcome[]> {
  return db.query(OUTCOMES_OF, [venues, marketIds, limit]);
}

const HAS_CATEGORY = sql(
  'has_market_category',
  `SELECT EXISTS (SELECT FROM market m WHERE m.category = $2 AND length(m.category) <= 200 AND m.venue = ANY ($1::text[])) AS known`,
);

/** Whether a market of these venues has this category, of at most 200 characters. */
export async function isKnownCategory(db: Queryable, venues: readonly string[], category: string): Promise<boolean> {
  const [row] = await db.query<{ known: boolean }>(HAS_CATEGORY, [venues, category]);
  return row?.known === true;
}
