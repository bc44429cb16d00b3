import type { PriceRecord } from '../../domain/markets/market.ts';
import { type FeedReader, heldPartsSql } from '../db/leases.ts';
import { type Queryable, sql, type Tx } from '../db/tx.ts';
import { insertMarksSql, minuteOf, observedAt } from '../marks/detail.ts';
import { insertFactsSql, insertPublishSql } from '../marks/publish-marks.ts';
import { blockOf, checkedAt } from './checks.ts';
import type { ConfirmedPrice } from './confirmations.ts';

/**
 * Upserts latest prices guarded by the venue's time, so that a late poll never replaces a newer price. A changed quote adds a history row,
 * a snapshot mark, a mark of the publisher, an observation and a mark for the alerts. These rows derive from the rows that the upsert
 * really wrote. The statement reads the clock, and draws the numbers of observations, after it has locked the rows, so both are in write
 * order. The lock of a first price is its token: see `lockOutcomes`.
 *
 * A sweep ($8) skips quotes that equal the stored ones before any lock, because a row lock writes the row. It returns them as `equal`, with
 * the time of the stored quote that it compared.
 *
 * A changed quote must also be seen after the last confirmation of the stored one (`price_check`). The statement locks the block of a
 * changed quote, so that a concurrent confirmation takes effect either before this comparison or not at all: see `confirmPrices`.
 *
 * Prices of a feed ($9, $10) are written only for the parts that the streamer holds.
 *
 * A first price, or a block, that another transaction inserted concurrently is invisible to this statement, which therefore cannot compare
 * it. The statement leaves the price unchanged and returns it as `raced`, for a next statement that sees it.
 *
 * Postgres expects a handful of prices, whatever their number, and would join two lists of them by comparing each price with each other one.
 * So a list is joined with tables only, by their indexes, and looked up in another list only by IN in an expression, which is hashed.
 */
const UPSERT_PRICES = sql(
  'upsert_prices',
  `WITH input AS MATERIALIZED (
     SELECT DISTINCT ON (token_id) * FROM unnest($1::bigint[], $2::timestamptz[], $3::numeric[], $4::numeric[], $5::numeric[], $7::timestamptz[],
         $11::int[]) AS i (token_id, as_of, price, bid, ask, seen_at, part)
     WHERE $9::text IS NULL OR part IN (${heldPartsSql('$9', '$10')}) ORDER BY token_id, as_of DESC, seen_at DESC),
   compared AS MATERIALIZED (
     SELECT i.*, l.as_of AS stored_as_of, $8 AND (l.price, l.bid, l.ask) IS NOT DISTINCT FROM (i.price, i.bid, i.ask) AS equal
     FROM input i LEFT JOIN latest_price l USING (token_id) WHERE l.as_of IS NULL OR i.as_of >= l.as_of),
   before AS MATERIALIZED (
     SELECT i.token_id, i.as_of, i.price, i.bid, i.ask, i.seen_at, l.as_of AS stored_as_of,
       (l.price, l.bid, l.ask) IS DISTINCT FROM (i.price, i.bid, i.ask) AS changed
     FROM compared i JOIN latest_price l USING (token_id) WHERE NOT i.equal ORDER BY i.token_id FOR UPDATE OF l),
   candidate AS MATERIALIZED (
     SELECT token_id, as_of, price, bid, ask, seen_at, changed, false AS is_first FROM before WHERE as_of > stored_as_of
     UNION ALL
     SELECT token_id, as_of, price, bid, ask, seen_at, true, true FROM compared
     WHERE NOT equal AND token_id NOT IN (SELECT token_id FROM before)),
   checks AS MATERIALIZED (
     SELECT c.* FROM price_check c
     WHERE c.block = ANY (ARRAY(SELECT DISTINCT ${blockOf('token_id')} FROM candidate WHERE changed AND NOT is_first))
     ORDER BY c.block FOR SHARE OF c),
   newer AS MATERIALIZED (
     SELECT n.*, n.is_first OR NOT n.changed OR b.block IS NOT NULL AS is_comparable
     FROM candidate n LEFT JOIN checks b ON b.block = ${blockOf('n.token_id')}
     WHERE n.is_first OR NOT n.changed OR b.block IS NULL OR n.seen_at > ${checkedAt('b', 'n.token_id')}),
   missing_blocks AS (
     INSERT INTO price_check (block) SELECT DISTINCT ${blockOf('token_id')} AS block FROM newer WHERE NOT is_comparable ORDER BY block
     ON CONFLICT (block) DO NOTHING),
   first_locks AS MATERIALIZED (
     SELECT t.id FROM token t WHERE t.id = ANY (ARRAY(SELECT token_id FROM candidate WHERE is_first)) ORDER BY t.id FOR NO KEY UPDATE OF t),
   clock AS MATERIALIZED (
     SELECT date_trunc('milliseconds', clock_timestamp()) AS at
     FROM (SELECT count(*) FROM newer) AS locked, (SELECT count(*) FROM first_locks) AS locked_first),
   updated AS (
     UPDATE latest_price l SET price = n.price, bid = n.bid, ask = n.ask, as_of = n.as_of, received_at = n.at
     FROM (SELECT newer.*, clock.at FROM newer, clock WHERE is_comparable AND NOT is_first) n WHERE l.token_id = n.token_id
     RETURNING l.*, n.changed),
   inserted AS (
     INSERT INTO latest_price (token_id, price, bid, ask, as_of, received_at)
     SELECT token_id, price, bid, ask, as_of, at FROM newer, clock WHERE is_first ORDER BY token_id
     ON CONFLICT (token_id) DO NOTHING RETURNING *, true AS changed),
   written AS MATERIALIZED (SELECT * FROM updated UNION ALL SELECT * FROM inserted),
   history AS (
     INSERT INTO price_history AS h (token_id, received_at, as_of, price, bid, ask)
     SELECT token_id, received_at, as_of, price, bid, ask FROM written WHERE changed
     ON CONFLICT (token_id, received_at) DO UPDATE SET as_of = excluded.as_of, price = excluded.price,
       bid = excluded.bid, ask = excluded.ask WHERE h.as_of < excluded.as_of),
   snapshots AS (
     ${insertMarksSql('sample-snapshots', `SELECT token_id, ${minuteOf('received_at')} FROM written WHERE changed`)}),
   published AS (${insertPublishSql('price', 'SELECT token_id FROM written WHERE changed')}),
   renewed AS (
     ${insertFactsSql('quote-age', 'SELECT o.market_id FROM written JOIN outcome o USING (token_id) WHERE NOT changed')}),
   observed AS (
     INSERT INTO observation (token_id, received_at, venue_at, price, bid, ask)
     SELECT token_id, received_at, as_of, price, bid, ask FROM written WHERE changed AND $6),
   alerts AS (
     ${insertMarksSql('evaluate-alerts', `SELECT token_id, ${observedAt('received_at')} FROM written WHERE changed AND $6`)})
   SELECT token_id, changed AS moved, CASE WHEN token_id IN (SELECT token_id FROM written) THEN 'written' ELSE 'raced' END AS result,
     as_of AS stored_as_of, seen_at
   FROM newer
   UNION ALL SELECT token_id, false, 'equal', stored_as_of, seen_at FROM compared WHERE equal`,
);

/** The prices of a sweep that are not older than the stored ones, without any lock. */
const COMPARE_PRICES = sql(
  'compare_prices',
  `SELECT i.place::int AS place, l.as_of AS stored_as_of,
     coalesce((l.price, l.bid, l.ask) IS NOT DISTINCT FROM (i.price, i.bid, i.ask), false) AS equal
   FROM unnest($1::bigint[], $2::timestamptz[], $3::numeric[], $4::numeric[], $5::numeric[]) WITH ORDINALITY
     AS i (token_id, as_of, price, bid, ask, place)
   LEFT JOIN latest_price l USING (token_id) WHERE l.as_of IS NULL OR i.as_of >= l.as_of ORDER BY place`,
);

/** A price with the token of its outcome. */
export type TokenPrice = Omit<PriceRecord, 'outcomeId'> & {
  tokenId: bigint;
  /** The part of the feed that has the outcome. */
  part?: number;
};

interface WrittenPrices {
  /** Prices that were newer than the stored ones. */
  newer: number;
  /** Tokens with a changed quote, for the wake-ups. */
  movedTokenIds: bigint[];
}

interface SweptPrices extends WrittenPrices {
  /** Stored quotes that the venue still had after their own time, for `confirmPrices`. */
  confirmed: ConfirmedPrice[];
}

/**
 * Writes prices; of two prices of a token it uses the newer. With `observed: false` they fire no alerts, because the payouts of a resolved
 * market are not market prices. The partitions around now must exist.
 */
export async function writePrices(
  tx: Tx,
  prices: readonly TokenPrice[],
  { observed }: { observed: boolean } = { observed: true },
): Promise<WrittenPrices> {
  const { newer, movedTokenIds } = await upsertPrices(tx, prices, { observed, isSweep: false });
  return { newer, movedTokenIds };
}

/**
 * Writes the changed prices of a sweep like `writePrices`. An unchanged price writes nothing: it is returned as confirmed. The caller passes
 * confirmations to `confirmPrices` after the commit, many at once. Each statement is complete, so it needs no transaction around it. With
 * `feed`, prices of parts that the streamer does not hold are ignored.
 */
export function sweepPrices(db: Queryable, prices: readonly TokenPrice[], feed?: FeedReader): Promise<SweptPrices> {
  return upsertPrices(db, prices, { observed: true, isSweep: true, feed });
}

/** A price that equals the stored quote, with the time of this quote, which identifies it. */
export interface EqualPrice<P extends TokenPrice = TokenPrice> {
  price: P;
  storedAsOf: Date;
}

/**
 * Compares the prices of a sweep with the stored ones, without a transaction. `news` are those that may change something. A price older than
 * the stored one is in neither list.
 */
export async function comparePrices<P extends TokenPrice>(
  db: Queryable,
  prices: readonly P[],
): Promise<{ news: P[]; equal: EqualPrice<P>[] }> {
  const rows = await db.query<{ place: number; storedAsOf: Date | null; equal: boolean }>(
    COMPARE_PRICES,
    quotesOf(prices),
  );
  const news: P[] = [];
  const equal: EqualPrice<P>[] = [];
  for (const { place, storedAsOf, equal: isEqual } of rows) {
    const price = prices[place - 1];
    if (price === undefined) continue;
    if (!isEqual || storedAsOf === null) news.push(price);
    else equal.push({ price, storedAsOf });
  }
  return { news, equal };
}

function quotesOf(prices: readonly TokenPrice[]): unknown[][] {
  return [
    prices.map((price) => price.tokenId),
    prices.map((price) => new Date(price.asOfMs).toISOString()),
    prices.map((price) => price.price),
    prices.map((price) => price.bid ?? null),
    prices.map((price) => price.ask ?? null),
  ];
}

interface ResultRow {
  tokenId: bigint;
  moved: boolean;
  result: 'written' | 'raced' | 'equal';
  storedAsOf: Date;
  seenAt: Date;
}

async function upsertPrices(
  db: Queryable,
  prices: readonly TokenPrice[],
  { observed, isSweep, feed }: { observed: boolean; isSweep: boolean; feed?: FeedReader | undefined },
): Promise<SweptPrices> {
  const swept: SweptPrices = { newer: 0, movedTokenIds: [], confirmed: [] };
  let waiting = prices;
  while (waiting.length > 0) {
    const rows = await db.query<ResultRow>(UPSERT_PRICES, [
      ...quotesOf(waiting),
      observed,
      waiting.map(({ asOfMs, seenAtMs = asOfMs }) => new Date(seenAtMs).toISOString()),
      isSweep,
      feed?.streamer ?? null,
      feed?.venue ?? null,
      waiting.map(({ part }) => part ?? null),
    ]);
    const raced = new Set<bigint>();
    for (const { tokenId, moved, result, storedAsOf, seenAt } of rows) {
      if (result === 'raced') {
        raced.add(tokenId);
        continue;
      }
      if (result === 'written') swept.newer += 1;
      if (moved) swept.movedTokenIds.push(tokenId);
      if (isSweep && seenAt > storedAsOf) swept.confirmed.push({ tokenId, asOfMs: seenAt.getTime(), storedAsOf });
    }
    waiting = waiting.filter((price) => raced.has(price.tokenId));
  }
  return swept;
}
