import type { MarketStatus } from '../../domain/markets/market.ts';
import { type Queryable, sql } from '../db/tx.ts';

/** A stored market: venue ids, `numeric` as text, unknown as null. */
export interface StoredMarket {
  pk: bigint;
  venue: string;
  marketId: string;
  eventId: string | null;
  eventTitle: string | null;
  siblingLabel: string | null;
  title: string;
  description: string;
  category: string | null;
  tags: string[];
  status: MarketStatus;
  outcomes: { outcomeId: string; label: string }[];
  createdAt: Date | null;
  openAt: Date | null;
  closeAt: Date | null;
  resolvedAt: Date | null;
  winningOutcomeId: string | null;
  resolutionCriteria: string | null;
  url: string | null;
  updatedAt: Date;
  volume: string | null;
  volume24h: string | null;
  liquidity: string | null;
}

/** The columns that `toMarket` reads, from `market m` joined with MARKET_PARTS. */
export const MARKET_COLUMNS = `m.id, m.venue, m.venue_market_id, m.event_id, m.event_title, m.sibling_label, m.title, m.description, m.category, m.tags, m.status,
  m.created_at, m.open_at, m.close_at, m.resolved_at, m.winning_outcome_id, m.resolution_criteria, m.url, m.updated_at,
  s.volume, s.volume_24h, s.liquidity, o.outcomes`;

export const MARKET_PARTS = `LEFT JOIN market_stats s ON s.market_id = m.id
  LEFT JOIN LATERAL (
    SELECT json_agg(json_build_array(t.mint, o.label) ORDER BY o.ordinal) AS outcomes
    FROM outcome o JOIN token t ON t.id = o.token_id WHERE o.market_id = m.id) o ON true`;

export interface MarketRow {
  id: bigint;
  venue: string;
  venueMarketId: string;
  eventId: string | null;
  eventTitle: string | null;
  siblingLabel: string | null;
  title: string;
  description: string;
  category: string | null;
  tags: string[];
  status: MarketStatus;
  createdAt: Date | null;
  openAt: Date | null;
  closeAt: Date | null;
  resolvedAt: Date | null;
  winningOutcomeId: string | null;
  resolutionCriteria: string | null;
  url: string | null;
  updatedAt: Date;
  volume: string | null;
  volume24h: string | null;
  liquidity: string | null;
  outcomes: [string, string][] | null;
}

export function toMarket(row: MarketRow): StoredMarket {
  return {
    pk: row.id,
    venue: row.venue,
    marketId: row.venueMarketId,
    eventId: row.eventId,
    eventTitle: row.eventTitle,
    siblingLabel: row.siblingLabel,
    title: row.title,
    description: row.description,
    category: row.category,
    tags: row.tags,
    status: row.status,
    outcomes: (row.outcomes ?? []).map(([outcomeId, label]) => ({ outcomeId, label })),
    createdAt: row.createdAt,
    openAt: row.openAt,
    closeAt: row.closeAt,
    resolvedAt: row.resolvedAt,
    winningOutcomeId: row.winningOutcomeId,
    resolutionCriteria: row.resolutionCriteria,
    url: row.url,
    updatedAt: row.updatedAt,
    volume: row.volume,
    volume24h: row.volume24h,
    liquidity: row.liquidity,
  };
}

/** When two venues use one id, the first listed venue in `$1` wins. */
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
  const [row] = await db.query<MarketRow>(FIND_MARKET, [venues, marketId]);
  return row ? toMarket(row) : null;
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
  `SELECT m.id, m.venue, m.venue_market_id, m.status, m.has_book, m.close_at, m.resolved_at, o.token_id, t.mint
   FROM (SELECT * FROM market m WHERE ${ONE_MARKET}) m
   LEFT JOIN outcome o ON o.market_id = m.id LEFT JOIN token t ON t.id = o.token_id ORDER BY o.ordinal`,
);

interface MarketTokenRow {
  id: bigint;
  venue: string;
  venueMarketId: string;
  status: MarketStatus;
  hasBook: boolean;
  closeAt: Date | null;
  resolvedAt: Date | null;
  tokenId: bigint | null;
  mint: string | null;
}

/** A market with the keys of its outcomes, or null. */
export async function findMarketTokens(
  db: Queryable,
  venues: readonly string[],
  marketId: string,
): Promise<MarketTokens | null> {
  const rows = await db.query<MarketTokenRow>(FIND_MARKET_TOKENS, [venues, marketId]);
  const [market] = rows;
  if (!market) return null;
  return {
    pk: market.id,
    venue: market.venue,
    marketId: market.venueMarketId,
    status: market.status,
    hasBook: market.hasBook,
    closeAt: market.closeAt,
    resolvedAt: market.resolvedAt,
    outcomes: rows.flatMap((row) =>
      row.tokenId === null || row.mint === null ? [] : [{ tokenId: row.tokenId, outcomeId: row.mint }],
    ),
  };
}
