import { recentlyRead } from '../catalog/market-heat.ts';
import { type Queryable, sql } from '../db/tx.ts';

/** A market that a feed should cover. */
export interface WantedMarket {
  readonly pk: bigint;
  /** The venue's id. */
  readonly marketId: string;
  /** In the venue's order. */
  readonly tokenIds: readonly bigint[];
  readonly outcomeIds: readonly string[];
}

const WANTED = `m.venue = $1 AND m.status IN ('open', 'halted') AND m.gone_at IS NULL AND (m.has_book OR NOT $2)`;

const MOST_TRADED = sql(
  'most_traded_feed_markets',
  `SELECT m.id FROM market m LEFT JOIN market_stats s ON s.market_id = m.id WHERE ${WANTED}
   ORDER BY s.volume_24h DESC NULLS LAST, s.volume DESC NULLS LAST, m.id LIMIT $3`,
);

interface Wish {
  venue: string;
  /** Only markets with books. */
  onlyBooks: boolean;
  limit: number;
}

/**
 * Keys of the tradable markets with the highest volume. It reads every market of the venue (a third of a second for 100,000), so call it
 * once a minute.
 */
export async function mostTradedFeedMarkets(db: Queryable, { venue, onlyBooks, limit }: Wish): Promise<bigint[]> {
  return (await db.query<{ id: bigint }>(MOST_TRADED, [venue, onlyBooks, limit])).map(({ id }) => id);
}

/** The keys of all wanted markets in one value of one row, and a row for each that is not known. */
const FEED_MARKETS = sql(
  'feed_markets',
  `WITH alerted AS (
     SELECT DISTINCT m.id FROM alert a JOIN outcome o ON o.token_id = a.token_id JOIN market m ON m.id = o.market_id
     WHERE a.status = 'active' AND ${WANTED} ORDER BY m.id LIMIT $3),
   noted AS (${recentlyRead(WANTED)} ORDER BY place LIMIT $3),
   wanted AS (
     SELECT id, 0 AS class, 0 AS place FROM alerted
     UNION ALL SELECT id, 1, place FROM noted
     UNION ALL
     SELECT i.id, 2, i.place FROM unnest($4::bigint[]) WITH ORDINALITY AS i (id, place)
     WHERE (SELECT ${WANTED} FROM market m WHERE m.id = i.id)),
   ranked AS (SELECT DISTINCT ON (id) * FROM wanted ORDER BY id, class, place),
   chosen AS MATERIALIZED (
     SELECT *, id IN (SELECT unnest($5::bigint[])) AS is_known FROM ranked ORDER BY class, place, id LIMIT $3),
   added AS (
     SELECT m.id AS pk, m.venue_market_id AS market_id, s.token_ids, s.outcome_ids, row_number() OVER () AS n
     FROM chosen r JOIN market m USING (id) CROSS JOIN LATERAL (
       SELECT array_agg(o.token_id ORDER BY o.ordinal) AS token_ids, array_agg(t.mint ORDER BY o.ordinal) AS outcome_ids
       FROM outcome o JOIN token t ON t.id = o.token_id WHERE o.market_id = r.id) s
     WHERE NOT r.is_known AND s.token_ids IS NOT NULL)
   SELECT CASE WHEN coalesce(a.n, 1) = 1 THEN w.pks END AS pks, a.pk, a.market_id, a.token_ids, a.outcome_ids
   FROM (SELECT array_agg(id ORDER BY class, place, id) AS pks FROM chosen) w LEFT JOIN added a ON true`,
);

/**
 * The markets that a feed should cover, most wanted first: markets with active alerts, then recently read ones, then those of `traded` in
 * its order. The outcomes of those in `known` are not read again; the others are added to it.
 */
export async function wantedFeedMarkets(
  db: Queryable,
  wish: Wish,
  traded: readonly bigint[],
  known: Map<bigint, WantedMarket>,
): Promise<WantedMarket[]> {
  const values = [wish.venue, wish.onlyBooks, wish.limit, traded, [...known.keys()]];
  const rows = await db.query<(WantedMarket | { pk: null }) & { pks: readonly bigint[] | null }>(FEED_MARKETS, values);
  for (const { pks: _, ...row } of rows) if (row.pk !== null) known.set(row.pk, row);
  return (rows.find(({ pks }) => pks !== null)?.pks ?? []).flatMap((pk) => known.get(pk) ?? []);
}

const NEWER_QUOTES = sql(
  'newer_feed_quotes',
  `SELECT l.token_id, l.price, l.bid, l.ask
   FROM unnest($1::bigint[], $2::float8[]) AS q (token_id, as_of_ms) JOIN latest_price l USING (token_id)
   WHERE (extract(epoch FROM l.as_of) * 1000)::float8 > q.as_of_ms`,
);

export interface StoredQuote {
  readonly tokenId: bigint;
  readonly price: string;
  readonly bid: string | null;
  readonly ask: string | null;
}

/** The stored quotes that are newer than those of a feed, whose times are epoch milliseconds. */
export function newerQuotes(
  db: Queryable,
  quotes: readonly { readonly tokenId: bigint; readonly asOfMs: number }[],
): Promise<StoredQuote[]> {
  if (quotes.length === 0) return Promise.resolve([]);
  return db.query(NEWER_QUOTES, [quotes.map(({ tokenId }) => tokenId), quotes.map(({ asOfMs }) => asOfMs)]);
}
