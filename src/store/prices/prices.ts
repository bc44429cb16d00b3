import type { PriceRecord } from '../../domain/markets/market.ts';
import { SHARDS } from '../../domain/values/shard.ts';
import { sql, type Tx } from '../db/tx.ts';

/**
 * Upserts latest prices guarded by the venue's time, so that a late poll never replaces a newer price. A changed quote adds a history row
 * and a snapshot mark; a changed price also adds an observation and a mark for the alerts. These rows derive from the rows that the
 * upsert really wrote. The statement reads the clock after it has locked the rows, so history is in write order.
 *
 * A first price that another transaction inserted concurrently is invisible to this statement, which therefore cannot compare it. The
 * statement locks that row, leaves it unchanged and returns it as not `written`, for a next statement that sees it.
 */
const UPSERT_PRICES = sql(
  'upsert_prices',
  `WITH input AS MATERIALIZED (
     SELECT DISTINCT ON (token_id) * FROM unnest($1::bigint[], $2::timestamptz[], $3::numeric[], $4::numeric[], $5::numeric[])
       AS i (token_id, as_of, price, bid, ask) ORDER BY token_id, as_of DESC),
   before AS MATERIALIZED (
     SELECT l.* FROM latest_price l JOIN input USING (token_id) ORDER BY token_id FOR UPDATE OF l),
   clock AS MATERIALIZED (
     SELECT date_trunc('milliseconds', clock_timestamp()) AS at FROM (SELECT count(*) FROM before) AS locked),
   newer AS MATERIALIZED (
     SELECT i.*, b.price IS DISTINCT FROM i.price AS moved,
            (b.price, b.bid, b.ask) IS DISTINCT FROM (i.price, i.bid, i.ask) AS changed
     FROM input i LEFT JOIN before b USING (token_id) WHERE b.as_of IS NULL OR i.as_of > b.as_of),
   upserted AS (
     INSERT INTO latest_price AS l (token_id, price, bid, ask, as_of, received_at)
     SELECT token_id, price, bid, ask, as_of, at FROM newer, clock ORDER BY token_id
     ON CONFLICT (token_id) DO UPDATE SET price = excluded.price, bid = excluded.bid, ask = excluded.ask,
       as_of = excluded.as_of, received_at = excluded.received_at
     WHERE l.token_id IN (SELECT token_id FROM before)
     RETURNING token_id),
   written AS MATERIALIZED (SELECT newer.* FROM newer JOIN upserted USING (token_id)),
   history AS (
     INSERT INTO price_history AS h (token_id, received_at, as_of, price, bid, ask)
     SELECT token_id, at, as_of, price, bid, ask FROM written, clock WHERE changed
     ON CONFLICT (token_id, received_at) DO UPDATE SET as_of = excluded.as_of, price = excluded.price,
       bid = excluded.bid, ask = excluded.ask WHERE h.as_of < excluded.as_of),
   snapshots AS (
     INSERT INTO mark (stage, shard, key, detail)
     SELECT 'sample-snapshots', token_id % ${SHARDS}, token_id, floor(extract(epoch FROM at) / 60)::bigint * 60
     FROM written, clock WHERE changed),
   observed AS (
     INSERT INTO observation (token_id, received_at, venue_at, price)
     SELECT token_id, at, as_of, price FROM written, clock WHERE moved AND $6),
   alerts AS (
     INSERT INTO mark (stage, shard, key, detail)
     SELECT 'evaluate-alerts', token_id % ${SHARDS}, token_id, (extract(epoch FROM at) * 1000)::bigint
     FROM written, clock WHERE moved AND $6)
   SELECT token_id, newer.moved, upserted.token_id IS NOT NULL AS written FROM newer LEFT JOIN upserted USING (token_id)`,
);

/** A price with the token of its outcome. */
export type TokenPrice = Omit<PriceRecord, 'outcomeId'> & { tokenId: bigint };

interface WrittenPrices {
  /** Prices that were newer than the stored ones. */
  newer: number;
  /** Tokens with a changed price, for the wake-ups. */
  movedTokenIds: bigint[];
}

/**
 * Writes prices; of two prices of a token it uses the newer. With `observed: false` they fire no alerts, because the payouts of a resolved
 * market are not market prices. The partitions around now must exist.
 */
export async function writePrices(
  tx: Tx,
  prices: readonly TokenPrice[],
  options: { observed: boolean } = { observed: true },
): Promise<WrittenPrices> {
  const movedTokenIds: bigint[] = [];
  let newer = 0;
  let waiting = prices;
  while (waiting.length > 0) {
    const rows = await tx.query<{ tokenId: bigint; moved: boolean; written: boolean }>(UPSERT_PRICES, [
      waiting.map((price) => price.tokenId),
      waiting.map((price) => new Date(price.asOfMs).toISOString()),
      waiting.map((price) => price.price),
      waiting.map((price) => price.bid ?? null),
      waiting.map((price) => price.ask ?? null),
      options.observed,
    ]);
    for (const row of rows) {
      if (!row.written) continue;
      newer += 1;
      if (row.moved) movedTokenIds.push(row.tokenId);
    }
    const raced = new Set(rows.filter((row) => !row.written).map((row) => row.tokenId));
    waiting = waiting.filter((price) => raced.has(price.tokenId));
  }
  return { newer, movedTokenIds };
}
