import { type Queryable, sql } from '../db/tx.ts';
import { recentlyRead } from './market-heat.ts';

/** An outcome to poll: the venue's id, and the key of its token. */
export interface WatchedOutcome {
  tokenId: bigint;
  outcomeId: string;
}

/** Markets that can be traded, as far as we know. */
const TRADABLE = `m.status IN ('open', 'halted') AND m.gone_at IS NULL`;

/** An outcome of the price poll's round. */
export interface OpenOutcome extends WatchedOutcome, OutcomeKey {
  /** The first of its market: the number of these is the number of markets. */
  isFirst: boolean;
  /** The other outcome of a market with two, when the round names one outcome per market. */
  mirror: WatchedOutcome | null;
}

/** A place between two outcomes of the price poll's round, which goes by market and then by token. */
export interface OutcomeKey {
  marketPk: bigint;
  tokenId: bigint;
}

/** Tradable markets of one status by key: an index scan that ends after the page. */
const marketsFrom = (status: string) =>
  `(SELECT m.id FROM market m WHERE m.venue = $1 AND m.status = '${status}' AND m.gone_at IS NULL AND (m.has_book OR NOT $5) AND m.id >= $2
    AND EXISTS (SELECT FROM outcome o WHERE o.market_id = m.id) ORDER BY m.id LIMIT $4 + 1)`;

/** Each market has a row at least, except the first one, which may be read to its end: so `$4 + 1` markets fill a page. */
const OPEN_OUTCOMES = sql(
  'open_outcomes',
  `WITH listed AS MATERIALIZED (
     SELECT id FROM (${marketsFrom('open')} UNION ALL ${marketsFrom('halted')}) m ORDER BY id LIMIT $4 + 1),
   placed AS MATERIALIZED (
     SELECT o.market_id, o.token_id, row_number() OVER (PARTITION BY o.market_id ORDER BY o.token_id) AS place,
       max(o.token_id) OVER (PARTITION BY o.market_id) AS last_id,
       $6 AND count(*) OVER (PARTITION BY o.market_id) = 2 AS is_pair
     FROM listed JOIN outcome o ON o.market_id = listed.id),
   page AS MATERIALIZED (
     SELECT * FROM placed WHERE (NOT is_pair OR place = 1) AND (market_id > $2 OR token_id > $3) ORDER BY market_id, token_id LIMIT $4)
   SELECT p.market_id AS market_pk, p.token_id, t.mint AS outcome_id, p.place = 1 AS is_first,
     x.id AS mirror_token_id, x.mint AS mirror_outcome_id
   FROM page p JOIN token t ON t.id = p.token_id LEFT JOIN token x ON x.id = p.last_id AND p.is_pair
   ORDER BY p.market_id, p.token_id`,
);

/**
 * Outcomes of tradable markets behind `after`: one batch of the price poll's round. `onlyBooks` selects outcomes with books, for venues
 * whose prices come from books. With `pairs`, a market with two outcomes is one row.
 */
export async function openOutcomes(
  db: Queryable,
  venue: string,
  options: { after: OutcomeKey; limit: number; onlyBooks: boolean; pairs: boolean },
): Promise<OpenOutcome[]> {
  const { after, limit, onlyBooks, pairs } = options;
  const rows = await db.query<{
    marketPk: bigint;
    tokenId: bigint;
    outcomeId: string;
    isFirst: boolean;
    mirrorTokenId: bigint | null;
    mirrorOutcomeId: string | null;
  }>(OPEN_OUTCOMES, [venue, after.marketPk, after.tokenId, limit, onlyBooks, pairs]);
  return rows.map(({ mirrorTokenId, mirrorOutcomeId, ...outcome }) => ({
    ...outcome,
    mirror:
      mirrorTokenId === null || mirrorOutcomeId === null
        ? null
        : { tokenId: mirrorTokenId, outcomeId: mirrorOutcomeId },
  }));
}

/**
 * The subqueries begin with the outcomes, whatever the statistics of the tables are: with those of an empty catalog, Postgres would read
 * every outcome of the venue and compare it with each given one.
 */
const TRADABLE_OUTCOMES = sql(
  'tradable_outcomes',
  `WITH known AS MATERIALIZED (SELECT id, mint FROM token WHERE mint = ANY ($2::text[]))
   SELECT k.id AS token_id, k.mint AS outcome_id FROM known k WHERE (
     SELECT (SELECT m.venue = $1 AND ${TRADABLE} FROM market m WHERE m.id = o.market_id) FROM outcome o WHERE o.token_id = k.id)`,
);

/** The outcomes among these that belong to a tradable market of the venue. */
export function tradableOutcomes(
  db: Queryable,
  venue: string,
  outcomeIds: readonly string[],
): Promise<WatchedOutcome[]> {
  return db.query(TRADABLE_OUTCOMES, [venue, outcomeIds]);
}

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
     (${recentlyRead(`m.venue = $1 AND ${TRADABLE} AND m.has_book`)} ORDER BY place LIMIT $2)
     UNION ALL
     SELECT i.id, $2 + i.place FROM unnest($3::bigint[]) WITH ORDINALITY AS i (id, place)
     WHERE (SELECT m.venue = $1 AND ${TRADABLE} AND m.has_book FROM market m WHERE m.id = i.id)),
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
  `SELECT o.token_id, t.mint AS outcome_id FROM (${recentlyRead(`m.venue = $1 AND ${TRADABLE}`)}) r
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
