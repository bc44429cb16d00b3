import { type Queryable, sql } from '../db/tx.ts';
import { HOT_FOR_MINUTES } from './market-heat.ts';

/** An outcome to poll: the venue's id, and the key of its token. */
export interface WatchedOutcome {
  tokenId: bigint;
  outcomeId: string;
}

/** Markets that can be traded, as far as we know. */
const TRADABLE = `m.status IN ('open', 'halted') AND m.gone_at IS NULL`;

/** An outcome of the price poll's round. */
export interface OpenOutcome extends WatchedOutcome {
  /** The first of its market: the number of these is the number of markets. */
  isFirst: boolean;
  /** The other outcome of a market with two, when the round names one outcome per market. */
  mirror: WatchedOutcome | null;
}

const OPEN_OUTCOMES = sql(
  'open_outcomes',
  `SELECT o.token_id, t.mint AS outcome_id, o.token_id = s.first_id AS is_first, x.id AS mirror_token_id, x.mint AS mirror_outcome_id
   FROM outcome o JOIN market m ON m.id = o.market_id JOIN token t ON t.id = o.token_id
   CROSS JOIN LATERAL (
     SELECT min(token_id) AS first_id, max(token_id) AS last_id, $5 AND count(*) = 2 AS is_pair
     FROM outcome WHERE market_id = m.id) s
   LEFT JOIN token x ON x.id = s.last_id AND s.is_pair
   WHERE m.venue = $1 AND ${TRADABLE} AND (m.has_book OR NOT $4) AND o.token_id > $2
     AND (NOT s.is_pair OR o.token_id = s.first_id)
   ORDER BY o.token_id LIMIT $3`,
);

/**
 * Outcomes of tradable markets, by key after `afterTokenId`: one batch of the price poll's round. `onlyBooks` selects outcomes with books,
 * for venues whose prices come from books. With `pairs`, a market with two outcomes is one row.
 */
export async function openOutcomes(
  db: Queryable,
  venue: string,
  options: { afterTokenId: bigint; limit: number; onlyBooks: boolean; pairs: boolean },
): Promise<OpenOutcome[]> {
  const rows = await db.query<{
    tokenId: bigint;
    outcomeId: string;
    isFirst: boolean;
    mirrorTokenId: bigint | null;
    mirrorOutcomeId: string | null;
  }>(OPEN_OUTCOMES, [venue, options.afterTokenId, options.limit, options.onlyBooks, options.pairs]);
  return rows.map(({ tokenId, outcomeId, isFirst, mirrorTokenId, mirrorOutcomeId }) => ({
    tokenId,
    outcomeId,
    isFirst,
    mirror:
      mirrorTokenId === null || mirrorOutcomeId === null
        ? null
        : { tokenId: mirrorTokenId, outcomeId: mirrorOutcomeId },
  }));
}

const TRADABLE_OUTCOMES = sql(
  'tradable_outcomes',
  `SELECT t.id AS token_id, t.mint AS outcome_id FROM token t JOIN outcome o ON o.token_id = t.id JOIN market m ON m.id = o.market_id
   WHERE t.mint = ANY ($2::text[]) AND m.venue = $1 AND ${TRADABLE}`,
);

/** The outcomes among these that belong to a tradable market of the venue. */
export function tradableOutcomes(
  db: Queryable,
  venue: string,
  outcomeIds: readonly string[],
): Promise<WatchedOutcome[]> {
  return db.query(TRADABLE_OUTCOMES, [venue, outcomeIds]);
}

/** Recently read markets of a venue, latest read first. `now()` is a constant to the planner, which expects few rows. */
const READ_MARKETS = `SELECT m.id, row_number() OVER (ORDER BY r.read_at DESC, m.id) AS place
   FROM market_read r JOIN market m ON m.id = r.market_id
   WHERE r.read_at > now() - interval '${HOT_FOR_MINUTES} minutes' AND m.venue = $1 AND ${TRADABLE}`;

const MOST_TRADED = sql(
  'most_traded_markets',
  `SELECT m.id FROM market m LEFT JOIN market_stats s ON s.market_id = m.id
   WHERE m.venue = $1 AND ${TRADABLE} AND m.has_book
   ORDER BY s.volume_24h DESC NULLS LAST, s.volume DESC NULLS LAST, m.id LIMIT $2`,
);

/**
 * Keys of the tradable markets with books and the highest 24 h volume, or lifetime volume if the venue sends no 24 h volume. It reads every
 * market of the venue (a third of a second for 100,000), so it is too slow for every tick.
 */
export async function mostTradedMarkets(db: Queryable, venue: string, markets: number): Promise<bigint[]> {
  return (await db.query<{ id: bigint }>(MOST_TRADED, [venue, markets])).map(({ id }) => id);
}

const HOT_OUTCOMES = sql(
  'hot_outcomes',
  `WITH wanted AS (
     (SELECT id, place FROM (${READ_MARKETS} AND m.has_book) r ORDER BY place LIMIT $2)
     UNION ALL
     SELECT m.id, $2 + i.place FROM unnest($3::bigint[]) WITH ORDINALITY AS i (id, place) JOIN market m USING (id)
     WHERE m.venue = $1 AND ${TRADABLE} AND m.has_book),
   hot AS (SELECT id, min(place) AS place FROM wanted GROUP BY id ORDER BY place LIMIT $2)
   SELECT o.token_id, t.mint AS outcome_id
   FROM hot JOIN outcome o ON o.market_id = hot.id JOIN token t ON t.id = o.token_id ORDER BY hot.place, o.ordinal`,
);

/**
 * Outcomes of the markets whose books are polled, most wanted first: recently read markets, latest read first, then the markets in
 * `traded`, in that order; `markets` of them in total.
 */
export function hotOutcomes(
  db: Queryable,
  venue: string,
  markets: number,
  traded: readonly bigint[],
): Promise<WatchedOutcome[]> {
  return db.query(HOT_OUTCOMES, [venue, markets, traded]);
}

const READ_OUTCOMES = sql(
  'read_outcomes',
  `SELECT o.token_id, t.mint AS outcome_id FROM (${READ_MARKETS}) r
   JOIN outcome o ON o.market_id = r.id JOIN token t ON t.id = o.token_id ORDER BY r.place, o.ordinal LIMIT $2`,
);

/** At most `limit` outcomes of tradable markets that clients read lately, the latest read first. */
export function recentlyReadOutcomes(db: Queryable, venue: string, limit: number): Promise<WatchedOutcome[]> {
  return db.query(READ_OUTCOMES, [venue, limit]);
}

const MARKET_OUTCOMES = sql(
  'book_outcomes_of_market',
  `SELECT o.token_id, t.mint AS outcome_id FROM market m JOIN outcome o ON o.market_id = m.id JOIN token t ON t.id = o.token_id
   WHERE m.id = $1 AND m.venue = $2 AND ${TRADABLE} AND m.has_book ORDER BY o.ordinal`,
);

/** The outcomes of one market whose books can be asked for: none when it is not tradable or keeps no books. */
export function bookOutcomesOfMarket(db: Queryable, venue: string, marketPk: bigint): Promise<WatchedOutcome[]> {
  return db.query(MARKET_OUTCOMES, [marketPk, venue]);
}
