import { MARKET_STATUSES, type MarketSort, type MarketStatus } from '../../domain/markets/market.ts';
import { type Queryable, type Statement, sqlPlannedPerCall } from '../db/tx.ts';
import { type JournalStamp, STAMP, toStamp } from '../journal/read-journal.ts';
import { MAX_EVENT_ID_LENGTH } from './market-events.ts';
import { MARKET_COLUMNS, MARKET_PARTS, type StoredMarket } from './market-reads.ts';

interface MarketListQuery {
  venues: readonly string[];
  /** Default: every status. */
  statuses?: readonly MarketStatus[];
  /** At most 200 characters. */
  category?: string;
  /** At most MAX_EVENT_ID_LENGTH characters. */
  eventId?: string;
  /** Default: `created`. */
  sort?: MarketSort;
  limit: number;
  /** Start after this market: `next` of the page before, with the same order and filters. */
  after?: MarketPosition;
}

/** The sort key and the key of a market, and WITHOUT_VOLUME when it belongs to the second part of the order by volume. */
type MarketPosition = readonly string[];

interface MarketList {
  markets: StoredMarket[];
  /** The position of the last market when more follow. */
  next?: MarketPosition;
  /** The place of its first statement in the journal; absent without a market. */
  stamp?: JournalStamp;
}

type ListedMarket = StoredMarket & { sortKey: string; stamp: string };

/** Markets without a known time come last. The expressions are those of the indexes. */
const ORDERS = {
  created: { key: `coalesce(m.created_at, '-infinity'::timestamptz)`, way: 'DESC' },
  close_at: { key: `coalesce(m.close_at, 'infinity'::timestamptz)`, way: 'ASC' },
  updated: { key: 'm.updated_at', way: 'DESC' },
} as const satisfies Partial<Record<MarketSort, { key: string; way: 'ASC' | 'DESC' }>>;

const WITHOUT_VOLUME = 'without volume';
/** Before every market without volume. */
const START_WITHOUT_VOLUME = ['infinity', String(2n ** 63n - 1n), WITHOUT_VOLUME] as const;
const HAS_VOLUME = `EXISTS (SELECT FROM market_stats s WHERE s.market_id = m.id AND s.volume_24h > 0)`;

interface Filters {
  where: string[];
  name: string;
}

function filtersOf({ category, eventId }: MarketListQuery, values: unknown[]): Filters {
  const where: string[] = [];
  let name = '';
  if (category !== undefined) {
    where.push(`m.category = $${values.push(category)} AND length(m.category) <= 200`);
    name += '_category';
  }
  if (eventId !== undefined) {
    where.push(`m.event_id = $${values.push(eventId)} AND length(m.event_id) <= ${MAX_EVENT_ID_LENGTH}`);
    name += '_event';
  }
  return { where, name };
}

/**
 * One walk down an index per venue and status, then a merge: at most one page per walk, regardless of the number of markets. Planned per
 * call, because the frequency of a category decides between its index and that of the order.
 */
function walkStatement(
  sort: keyof typeof ORDERS,
  query: MarketListQuery,
  values: unknown[],
  part?: typeof WITHOUT_VOLUME,
): Statement {
  const { key, way } = ORDERS[sort];
  const filters = filtersOf(query, values);
  const where = ['m.venue = v.venue AND m.status = s.status', ...filters.where];
  let name = `list_markets_${sort}${filters.name}`;
  if (part !== undefined) {
    where.push(`NOT ${HAS_VOLUME}`);
    name += '_no_volume';
  }
  if (query.after !== undefined) {
    const [sortKey, pk] = query.after;
    const place = `($${values.push(sortKey)}::timestamptz, $${values.push(pk)}::bigint)`;
    where.push(`(${key}, m.id) ${way === 'ASC' ? '>' : '<'} ${place}`);
    name += '_after';
  }
  return sqlPlannedPerCall(
    name,
    `SELECT ${MARKET_COLUMNS}, k.sort_key::text AS sort_key, ${STAMP}
     FROM (SELECT k.* FROM unnest($1::text[]) AS v (venue) CROSS JOIN unnest($2::text[]) AS s (status)
           CROSS JOIN LATERAL (
             SELECT m.id, ${key} AS sort_key FROM market m WHERE ${where.join(' AND ')}
             ORDER BY ${key} ${way}, m.id ${way} LIMIT $3) k
           ORDER BY k.sort_key ${way}, k.id ${way} LIMIT $3) k
     JOIN market m ON m.id = k.id ${MARKET_PARTS} ORDER BY k.sort_key ${way}, k.id ${way}`,
  );
}

/** The traded markets of the last day, the largest volume first, along the index of their volumes. */
function volumeStatement(query: MarketListQuery, values: unknown[]): Statement {
  const filters = filtersOf(query, values);
  const where = ['s.volume_24h > 0 AND m.venue = ANY ($1::text[]) AND m.status = ANY ($2::text[])', ...filters.where];
  let name = `list_markets_volume${filters.name}`;
  if (query.after !== undefined) {
    const [volume, pk] = query.after;
    where.push(`(s.volume_24h, s.market_id) < ($${values.push(volume)}::numeric, $${values.push(pk)}::bigint)`);
    name += '_after';
  }
  return sqlPlannedPerCall(
    name,
    `SELECT ${MARKET_COLUMNS}, k.sort_key::text AS sort_key, ${STAMP}
     FROM (SELECT s.market_id AS id, s.volume_24h AS sort_key
           FROM market_stats s JOIN market m ON m.id = s.market_id WHERE ${where.join(' AND ')}
           ORDER BY s.volume_24h DESC, s.market_id DESC LIMIT $3) k
     JOIN market m ON m.id = k.id ${MARKET_PARTS} ORDER BY k.sort_key DESC, k.id DESC`,
  );
}

/**
 * A page of markets in an order. A market that matches throughout a walk, and whose sort key does not change in that time, is returned
 * exactly once.
 */
export async function listMarkets(db: Queryable, query: MarketListQuery): Promise<MarketList> {
  const { sort = 'created' } = query;
  return sort === 'volume_24h'
    ? listByVolume(db, query)
    : readPage(db, query, (values) => walkStatement(sort, query, values));
}

/** The traded markets of the last day, then the others in the order `created`. */
async function listByVolume(db: Queryable, query: MarketListQuery): Promise<MarketList> {
  const { after, limit, ...list } = query;
  const [sortKey = '', pk = '', part] = after ?? [];
  const readOthers = (others: Pick<MarketListQuery, 'limit' | 'after'>) => {
    const rest = { ...list, ...others };
    return readPage(db, rest, (values) => walkStatement('created', rest, values, WITHOUT_VOLUME));
  };
  const inPart = ({ next, ...page }: MarketList) => ({ ...page, ...(next && { next: [...next, WITHOUT_VOLUME] }) });
  if (part !== undefined) return inPart(await readOthers({ limit, after: [sortKey, pk] }));

  const traded = await readPage(db, query, (values) => volumeStatement(query, values));
  if (traded.next) return traded;
  const missing = limit - traded.markets.length;
  const { stamp: _stamp, ...others } = await readOthers({ limit: Math.max(1, missing) });
  if (missing > 0) return inPart({ ...others, ...stampOf(traded), markets: [...traded.markets, ...others.markets] });
  return { ...traded, ...(others.markets.length > 0 && { next: START_WITHOUT_VOLUME }) };
}

function stampOf({ stamp }: MarketList): Pick<MarketList, 'stamp'> {
  return stamp ? { stamp } : {};
}

async function readPage(
  db: Queryable,
  { venues, statuses = MARKET_STATUSES, limit }: MarketListQuery,
  statementOf: (values: unknown[]) => Statement,
): Promise<MarketList> {
  const values: unknown[] = [venues, statuses, limit + 1];
  const rows = await db.query<ListedMarket>(statementOf(values), values);
  const markets = rows.slice(0, limit);
  const last = markets.at(-1);
  const stamp = rows[0] && toStamp(rows[0].stamp);
  return {
    markets,
    ...(stamp && { stamp }),
    ...(rows.length > limit && last && { next: [last.sortKey, String(last.pk)] }),
  };
}
