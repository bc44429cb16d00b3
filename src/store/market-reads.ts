import type { MarketStatus } from '../domain/market.ts';
import { type Queryable, type Statement, sql } from './tx.ts';

/** A market as it is stored: venue ids, `numeric` as text, unknown as null. */
export interface StoredMarket {
  pk: bigint;
  venue: string;
  marketId: string;
  eventId: string | null;
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

const COLUMNS = `m.id, m.venue, m.venue_market_id, m.event_id, m.title, m.description, m.category, m.tags, m.status,
  m.created_at, m.open_at, m.close_at, m.resolved_at, m.winning_outcome_id, m.resolution_criteria, m.url, m.updated_at,
  s.volume, s.volume_24h, s.liquidity, o.outcomes`;

const PARTS = `LEFT JOIN market_stats s ON s.market_id = m.id
  LEFT JOIN LATERAL (
    SELECT json_agg(json_build_array(t.mint, o.label) ORDER BY o.ordinal) AS outcomes
    FROM outcome o JOIN token t ON t.id = o.token_id WHERE o.market_id = m.id) o ON true`;

interface MarketRow {
  id: string;
  venue: string;
  venue_market_id: string;
  event_id: string | null;
  title: string;
  description: string;
  category: string | null;
  tags: string[];
  status: MarketStatus;
  created_at: Date | null;
  open_at: Date | null;
  close_at: Date | null;
  resolved_at: Date | null;
  winning_outcome_id: string | null;
  resolution_criteria: string | null;
  url: string | null;
  updated_at: Date;
  volume: string | null;
  volume_24h: string | null;
  liquidity: string | null;
  outcomes: [string, string][] | null;
}

function toMarket(row: MarketRow): StoredMarket {
  return {
    pk: BigInt(row.id),
    venue: row.venue,
    marketId: row.venue_market_id,
    eventId: row.event_id,
    title: row.title,
    description: row.description,
    category: row.category,
    tags: row.tags,
    status: row.status,
    outcomes: (row.outcomes ?? []).map(([outcomeId, label]) => ({ outcomeId, label })),
    createdAt: row.created_at,
    openAt: row.open_at,
    closeAt: row.close_at,
    resolvedAt: row.resolved_at,
    winningOutcomeId: row.winning_outcome_id,
    resolutionCriteria: row.resolution_criteria,
    url: row.url,
    updatedAt: row.updated_at,
    volume: row.volume,
    volume24h: row.volume_24h,
    liquidity: row.liquidity,
  };
}

export interface MarketListQuery {
  venues: readonly string[];
  status?: MarketStatus;
  category?: string;
  /** Free text, not blank. */
  text?: string;
  limit: number;
  /** Start behind this place: a market's key, and with `text` its rank too. */
  after?: MarketPlace;
}

/** Where a market stands in a list. `rank` is float4 text that Postgres reads back to the same bits; unset without `text`. */
export interface MarketPlace {
  pk: string;
  rank?: string;
}

export interface MarketPage {
  markets: StoredMarket[];
  /** The place of the last market when more follow. */
  next?: MarketPlace;
}

/** Anything a person types is a query: words must all match, the last one as a prefix; nothing can be a syntax error. */
const QUERY = `plainto_tsquery('simple', $2) &&
  to_tsquery('simple', '''' || replace(replace($3, '\\', '\\\\'), '''', '''''') || ''':*')`;

/** A statement per combination of filters: an optional filter inside one text would cost every call a worse plan. */
function listStatement(query: MarketListQuery): { statement: Statement; values: unknown[] } {
  const [onlyVenue] = query.venues;
  const values: unknown[] = [query.venues.length === 1 ? onlyVenue : query.venues];
  let name = query.venues.length === 1 ? 'list_markets_of_venue' : 'list_markets';
  const where = [query.venues.length === 1 ? 'm.venue = $1' : 'm.venue = ANY ($1::text[])'];
  const filter = (suffix: string, value: unknown, condition: (parameter: string) => string) => {
    values.push(value);
    where.push(condition(`$${values.length}`));
    name += `_${suffix}`;
  };

  if (query.text !== undefined) {
    const words = query.text.trim().split(/\s+/);
    values.push(words.slice(0, -1).join(' '), words.at(-1) ?? '');
    where.push(`m.search @@ (${QUERY})`);
    name += '_text';
  }
  if (query.status !== undefined) filter('status', query.status, (parameter) => `m.status = ${parameter}`);
  if (query.category !== undefined) filter('category', query.category, (parameter) => `m.category = ${parameter}`);

  const rank = query.text === undefined ? '' : `, ts_rank_cd(m.search, ${QUERY}, 1) AS rank`;
  const order = query.text === undefined ? 'm.id DESC' : 'm.rank DESC, m.id DESC';
  let after = '';
  if (query.after !== undefined) {
    name += '_after';
    values.push(query.after.pk);
    const pk = `$${values.length}::bigint`;
    if (query.text === undefined) {
      after = `WHERE m.id < ${pk}`;
    } else {
      values.push(query.after.rank);
      after = `WHERE (m.rank, m.id) < ($${values.length}::real, ${pk})`;
    }
  }
  values.push(query.limit + 1);
  const text = `SELECT ${COLUMNS}${query.text === undefined ? '' : ', m.rank::text AS rank'}
    FROM (SELECT * FROM (SELECT m.*${rank} FROM market m WHERE ${where.join(' AND ')}) m
          ${after} ORDER BY ${order} LIMIT $${values.length}) m
    ${PARTS} ORDER BY ${order}`;
  return { statement: sql(name, text), values };
}

/**
 * A page of markets: newest first by their immutable key, or with `text` the best match first. Each market that matches
 * throughout a walk is returned exactly once.
 */
export async function listMarkets(db: Queryable, query: MarketListQuery): Promise<MarketPage> {
  const { statement, values } = listStatement(query);
  const rows = await db.query<MarketRow & { rank?: string }>(statement, values);
  const page = rows.slice(0, query.limit);
  const last = page.at(-1);
  const markets = page.map(toMarket);
  if (rows.length <= query.limit || !last) return { markets };
  return { markets, next: { pk: last.id, ...(last.rank !== undefined && { rank: last.rank }) } };
}

/** Two venues may use one id: the venue named first in `$1` wins. */
const ONE = `m.venue = ANY ($1::text[]) AND m.venue_market_id = $2 ORDER BY array_position($1::text[], m.venue) LIMIT 1`;

const FIND_MARKET = sql('find_market', `SELECT ${COLUMNS} FROM (SELECT * FROM market m WHERE ${ONE}) m ${PARTS}`);

/** One market by the venue's own id, or null. */
export async function findMarket(
  db: Queryable,
  venues: readonly string[],
  marketId: string,
): Promise<StoredMarket | null> {
  const [row] = await db.query<MarketRow>(FIND_MARKET, [venues, marketId]);
  return row ? toMarket(row) : null;
}

/** What the series routes need to know of a market. */
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
   FROM (SELECT * FROM market m WHERE ${ONE}) m
   LEFT JOIN outcome o ON o.market_id = m.id LEFT JOIN token t ON t.id = o.token_id ORDER BY o.ordinal`,
);

interface MarketTokenRow {
  id: string;
  venue: string;
  venue_market_id: string;
  status: MarketStatus;
  has_book: boolean;
  close_at: Date | null;
  resolved_at: Date | null;
  token_id: string | null;
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
    pk: BigInt(market.id),
    venue: market.venue,
    marketId: market.venue_market_id,
    status: market.status,
    hasBook: market.has_book,
    closeAt: market.close_at,
    resolvedAt: market.resolved_at,
    outcomes: rows.flatMap((row) =>
      row.token_id === null || row.mint === null ? [] : [{ tokenId: BigInt(row.token_id), outcomeId: row.mint }],
    ),
  };
}

/** The latest price of one outcome; all fields but the id are null until one was seen. */
export interface OutcomePrice {
  outcomeId: string;
  price: string | null;
  bid: string | null;
  ask: string | null;
  asOf: Date | null;
}

const MARKET_PRICES = sql(
  'market_prices',
  `SELECT m.venue_market_id, t.mint, l.price, l.bid, l.ask, l.as_of
   FROM (SELECT * FROM market m WHERE ${ONE}) m
   LEFT JOIN outcome o ON o.market_id = m.id LEFT JOIN token t ON t.id = o.token_id
   LEFT JOIN latest_price l ON l.token_id = o.token_id ORDER BY o.ordinal`,
);

interface PriceRow {
  venue_market_id: string;
  mint: string | null;
  price: string | null;
  bid: string | null;
  ask: string | null;
  as_of: Date | null;
}

/** The latest prices of a market in the order of its outcomes, or null when the market is unknown. */
export async function readMarketPrices(
  db: Queryable,
  venues: readonly string[],
  marketId: string,
): Promise<{ marketId: string; outcomes: OutcomePrice[] } | null> {
  const rows = await db.query<PriceRow>(MARKET_PRICES, [venues, marketId]);
  const [first] = rows;
  if (!first) return null;
  const outcomes = rows.flatMap(({ mint, price, bid, ask, as_of }) =>
    mint === null ? [] : [{ outcomeId: mint, price, bid, ask, asOf: as_of }],
  );
  return { marketId: first.venue_market_id, outcomes };
}
