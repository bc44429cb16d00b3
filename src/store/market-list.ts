import { MARKET_STATUSES, type MarketStatus } from '../domain/market.ts';
import { MARKET_COLUMNS, MARKET_PARTS, type MarketRow, type StoredMarket, toMarket } from './market-reads.ts';
import { type Queryable, type Statement, sql } from './tx.ts';

interface MarketListQuery {
  venues: readonly string[];
  status?: MarketStatus;
  /** At most 200 characters. */
  category?: string;
  limit: number;
  /** Start behind this market's key. */
  after?: string;
}

interface MarketList {
  markets: StoredMarket[];
  /** The key of the last market when more follow. */
  next?: string;
}

/**
 * One walk down an index per venue and status, then a merge of what they give: never more than a page from each, however
 * many markets there are and however few of them the filters let through. Newest first by the immutable key.
 */
function listStatement(hasCategory: boolean, isContinued: boolean): Statement {
  const category = hasCategory ? 'AND m.category = $4 AND length(m.category) <= 200' : '';
  const after = isContinued ? `AND m.id < $${hasCategory ? 5 : 4}::bigint` : '';
  return sql(
    `list_markets${hasCategory ? '_category' : ''}${isContinued ? '_after' : ''}`,
    `SELECT ${MARKET_COLUMNS}
     FROM (SELECT k.id FROM unnest($1::text[]) AS v (venue) CROSS JOIN unnest($2::text[]) AS s (status)
           CROSS JOIN LATERAL (
             SELECT m.id FROM market m WHERE m.venue = v.venue AND m.status = s.status ${category} ${after}
             ORDER BY m.id DESC LIMIT $3) k
           ORDER BY k.id DESC LIMIT $3) k
     JOIN market m ON m.id = k.id ${MARKET_PARTS} ORDER BY m.id DESC`,
  );
}

const LIST = {
  all: { first: listStatement(false, false), after: listStatement(false, true) },
  category: { first: listStatement(true, false), after: listStatement(true, true) },
};

/** A page of markets, newest first. Each market that matches throughout a walk is returned exactly once. */
export async function listMarkets(db: Queryable, query: MarketListQuery): Promise<MarketList> {
  const { venues, status, category, after, limit } = query;
  const statements = LIST[category === undefined ? 'all' : 'category'];
  const rows = await db.query<MarketRow>(statements[after === undefined ? 'first' : 'after'], [
    venues,
    status === undefined ? MARKET_STATUSES : [status],
    limit + 1,
    ...(category === undefined ? [] : [category]),
    ...(after === undefined ? [] : [after]),
  ]);
  const markets = rows.slice(0, limit).map(toMarket);
  const last = markets.at(-1);
  return { markets, ...(rows.length > limit && last && { next: String(last.pk) }) };
}
