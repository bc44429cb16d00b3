import type { MarketStatus } from '../../domain/markets/market.ts';
import type { Row } from '../../domain/wire/fields.ts';
import { MARKET } from '../../domain/wire/market-data.ts';
import { type Queryable, sql } from '../db/tx.ts';
import { marketColumn } from '../journal/bodies.ts';

/** A stored market: venue ids, `numeric` as text, unknown as null. */
export type StoredMarket = Row<typeof MARKET> & { pk: bigint };

/** The columns of a `StoredMarket`, of `market m` joined with MARKET_PARTS. */
export const MARKET_COLUMNS = [
  'm.id AS pk',
  ...Object.keys(MARKET).map((name) => `${marketColumn(name)} AS ${name}`),
].join(', ');

export const MARKET_PARTS = `LEFT JOIN market_stats s ON s.market_id = m.id
  LEFT JOIN LATERAL (
    SELECT json_agg(json_build_object('outcomeId', t.mint, 'label', o.label) ORDER BY o.ordinal) AS outcomes
    FROM outcome o JOIN token t ON t.id = o.token_id WHERE o.market_id = m.id) o ON true`;

/** Two venues may use one id: the venue named first in `$1` wins. */
export const ONE_MARKET = `m.venue = ANY ($1::text[]) AND m.venue_market_id = $2 ORDER BY array_position($1::text[], m.venue) LIMIT 1`;

const FIND_MARKET = sql(
  'find_market',
  `SELECT ${MARKET_COLUMNS} FROM (SELECT * FROM market m WHERE ${ONE_MARKET}) m ${MARKET_PARTS}`,
);

/** One market by the venue's own id, or null. */
export async function findMarket(
  db: Queryable,
  venues: readonly string[],
  marketId: string,
): Promise<StoredMarket | null> {
  const [market] = await db.query<StoredMarket>(FIND_MARKET, [venues, marketId]);
  return market ?? null;
}

const MARKET_IDS = sql(
  'market_ids',
  `SELECT m.venue_market_id AS market_id FROM unnest($1::bigint[]) WITH ORDINALITY AS k (id, place) JOIN market m USING (id) ORDER BY k.place`,
);

/** The venue's own ids of these markets. */
export async function marketIdsOf(db: Queryable, marketPks: readonly bigint[]): Promise<string[]> {
  const rows = await db.query<{ marketId: string }>(MARKET_IDS, [marketPks]);
  return rows.map(({ marketId }) => marketId);
}

/** The fields of a market that the series routes need. */
export interface MarketTokens {
  pk: bigint;
  venue: string;
  marketId: string;
  status: MarketStatus;
  hasBook: boolean;
  closeAt: Date | null;
  resolvedAt: Date | null;
  /** In the venue's order. */
  outcomes: { tokenId: bigint; outcomeId: string }[];
}

const FIND_MARKET_TOKENS = sql(
  'find_market_tokens',
  `SELECT m.id AS pk, m.venue, m.venue_market_id AS market_id, m.status, m.has_book, m.close_at, m.resolved_at, o.token_id,
     t.mint AS outcome_id
   FROM (SELECT * FROM market m WHERE ${ONE_MARKET}) m
   LEFT JOIN outcome o ON o.market_id = m.id LEFT JOIN token t ON t.id = o.token_id ORDER BY o.ordinal`,
);

/** A market with the keys of its outcomes, or null. */
export async function findMarketTokens(
  db: Queryable,
  venues: readonly string[],
  marketId: string,
): Promise<MarketTokens | null> {
  type Row = Omit<MarketTokens, 'outcomes'> & { tokenId: bigint | null; outcomeId: string };
  const rows = await db.query<Row>(FIND_MARKET_TOKENS, [venues, marketId]);
  if (!rows[0]) return null;
  const { tokenId: _tokenId, outcomeId: _outcomeId, ...market } = rows[0];
  const outcomes = rows.flatMap(({ tokenId, outcomeId }) => (tokenId === null ? [] : [{ tokenId, outcomeId }]));
  return { ...market, outcomes };
}
