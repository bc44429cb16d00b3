import { MARKET_STATUSES, type MarketStatus } from '../../domain/markets/market.ts';
import { type Queryable, type Statement, sql } from '../db/tx.ts';
import { MAX_EVENT_ID_LENGTH } from './market-events.ts';
import { MARKET_COLUMNS, MARKET_PARTS, type StoredMarket } from './market-reads.ts';

interface MarketListQuery {
  venues: readonly string[];
  status?: MarketStatus;
  /** At most 200 characters. */
  category?: string;
  /** At most MAX_EVENT_ID_LENGTH characters. */
  eventId?: string;
  limit: number;
  /** Start after this market's key. */
  after?: string;
}

interface MarketList {
  markets: StoredMarket[];
  /** The key of the last market when more follow. */
  next?: string;
}

/**
 * One walk down an index per venue and status, then a merge: at most one page per walk, regardless of the number of markets and of the
 * selectivity of the filters. Newest first by the immutable key.
 */
function listStatement(query: MarketListQuery, values: unknown[]): Statement {
  const { category, eventId, after } = query;
  const where = ['m.venue = v.venue AND m.status = s.status'];
  let name = 'list_markets';
  if (category !== undefined) {
    where.push(`m.category = $${values.push(category)} AND length(m.category) <= 200`);
    name += '_category';
  }
  if (eventId !== undefined) {
    where.push(`m.event_id = $${values.push(eventId)} AND length(m.event_id) <= ${MAX_EVENT_ID_LENGTH}`);
    name += '_event';
  }
  if (after !== undefined) {
    where.push(`m.id < $${values.push(after)}::bigint`);
    name += '_after';
  }
  return sql(
    name,
    `SELECT ${MARKET_COLUMNS}
     FROM (SELECT k.id FROM unnest($1::text[]) AS v (venue) CROSS JOIN unnest($2::text[]) AS s (status)
           CROSS JOIN LATERAL (
             SELECT m.id FROM market m WHERE ${where.join(' AND ')} ORDER BY m.id DESC LIMIT $3) k
           ORDER BY k.id DESC LIMIT $3) k
     JOIN market m ON m.id = k.id ${MARKET_PARTS} ORDER BY m.id DESC`,
  );
}

/** A page of markets, newest first. Each market that matches throughout a walk is returned exactly once. */
export async function listMarkets(db: Queryable, query: MarketListQuery): Promise<MarketList> {
  const { venues, status, limit } = query;
  const values: unknown[] = [venues, status === undefined ? MARKET_STATUSES : [status], limit + 1];
  const rows = await db.query<StoredMarket>(listStatement(query, values), values);
  const markets = rows.slice(0, limit);
  const last = markets.at(-1);
  return { markets, ...(rows.length > limit && last && { next: String(last.pk) }) };
}
