import { MARKET_COLUMNS, MARKET_PARTS, ONE_MARKET, type StoredMarket } from '../catalog/market-reads.ts';
import { type Queryable, sql, type Tx } from '../db/tx.ts';

/** The markets that an account may watch. */
export const MAX_WATCHED = 500;

/** A market with the moment since when the account watches it. */
export type WatchedMarket = StoredMarket & { addedAt: Date };

const FIND_PK = sql('watchlist_market', `SELECT m.id FROM market m WHERE ${ONE_MARKET}`);
/** Changes of one account wait for each other, so that the limit is exact and an addition finds what it added. */
const LOCK_ACCOUNT = sql('watchlist_lock', `SELECT FROM account WHERE id = $1 FOR NO KEY UPDATE`);
const COUNT = sql(
  'watchlist_count',
  `SELECT count(*)::int AS rows, count(*) FILTER (WHERE market_id = $2)::int AS present FROM watchlist WHERE account_id = $1`,
);
const ADD = sql(
  'watchlist_add',
  `INSERT INTO watchlist (account_id, market_id, added_at) VALUES ($1, $2, clock_timestamp())`,
);

/** Puts a market on the watchlist of an account, unless it is there. `full`: the account watches MAX_WATCHED markets. */
export async function watchMarket(
  tx: Tx,
  accountId: bigint,
  venues: readonly string[],
  marketId: string,
): Promise<'added' | 'present' | 'full' | 'unknown'> {
  await tx.query(LOCK_ACCOUNT, [accountId]);
  const [market] = await tx.query<{ id: bigint }>(FIND_PK, [venues, marketId]);
  if (!market) return 'unknown';
  const [watched] = await tx.query<{ rows: number; present: number }>(COUNT, [accountId, market.id]);
  if (watched?.present) return 'present';
  if ((watched?.rows ?? 0) >= MAX_WATCHED) return 'full';
  await tx.query(ADD, [accountId, market.id]);
  return 'added';
}

const REMOVE = sql(
  'watchlist_remove',
  `DELETE FROM watchlist WHERE account_id = $3 AND market_id = (SELECT m.id FROM market m WHERE ${ONE_MARKET}) RETURNING market_id`,
);

/** Takes a market from the watchlist of an account. False when it is not there. */
export async function unwatchMarket(
  tx: Tx,
  accountId: bigint,
  venues: readonly string[],
  marketId: string,
): Promise<boolean> {
  await tx.query(LOCK_ACCOUNT, [accountId]);
  return (await tx.query(REMOVE, [venues, marketId, accountId])).length > 0;
}

const LIST = sql(
  'watchlist_page',
  `SELECT ${MARKET_COLUMNS}, w.added_at, w.pk AS place
   FROM (SELECT * FROM watchlist WHERE account_id = $1 AND ($2::bigint IS NULL OR pk < $2) ORDER BY pk DESC LIMIT $3) w
   JOIN market m ON m.id = w.market_id ${MARKET_PARTS} ORDER BY w.pk DESC`,
);

/** A page of the watchlist of an account, the market that was added last first; `next` is the key to go on behind when more follow. */
export async function listWatched(
  db: Queryable,
  accountId: bigint,
  limit: number,
  after: bigint | undefined,
): Promise<{ markets: WatchedMarket[]; next?: bigint }> {
  const rows = await db.query<WatchedMarket & { place: bigint }>(LIST, [accountId, after ?? null, limit + 1]);
  const markets = rows.slice(0, limit);
  const last = markets.at(-1);
  return { markets, ...(rows.length > limit && last && { next: last.place }) };
}

const FIND = sql(
  'watchlist_find',
  `SELECT ${MARKET_COLUMNS}, w.added_at
   FROM (SELECT * FROM market m WHERE ${ONE_MARKET}) m JOIN watchlist w ON w.market_id = m.id AND w.account_id = $3 ${MARKET_PARTS}`,
);

/** A market of the watchlist of an account, or null. */
export async function findWatched(
  db: Queryable,
  accountId: bigint,
  venues: readonly string[],
  marketId: string,
): Promise<WatchedMarket | null> {
  const [found] = await db.query<WatchedMarket>(FIND, [venues, marketId, accountId]);
  return found ?? null;
}

const AMONG = sql(
  'watchlist_among',
  `SELECT m.venue, m.venue_market_id AS market_id FROM unnest($2::text[], $3::text[]) AS a (venue, market_id)
   JOIN market m ON m.venue = a.venue AND m.venue_market_id = a.market_id
   JOIN watchlist w ON w.market_id = m.id AND w.account_id = $1`,
);

/** The markets among these that the account watches. */
export function watchedAmong(
  db: Queryable,
  accountId: bigint,
  markets: readonly { venue: string; marketId: string }[],
): Promise<{ venue: string; marketId: string }[]> {
  return db.query(AMONG, [accountId, markets.map(({ venue }) => venue), markets.map(({ marketId }) => marketId)]);
}
