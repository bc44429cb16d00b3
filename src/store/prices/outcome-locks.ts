import { sql, type Tx } from '../db/tx.ts';

/*
 * Observations of an outcome are numbered under a lock that its writers hold until their commit, so a reader that sees a number sees all
 * smaller ones. The lock is the row of the latest price. An outcome without a price is locked by its token; the writer of its first price
 * takes the same lock, so no price can appear meanwhile.
 *
 * A token without a market gets a lock that conflicts with the transaction that stores its market: see `publishEarlier`.
 */

/**
 * Outcomes with a trade that is fresh enough for an observation, with their locks as far as they have a price. The outer side of the join
 * runs without any, so that old trades lock their tokens too.
 */
const LOCK_FRESH = sql(
  'lock_fresh_outcomes',
  `WITH unlisted AS MATERIALIZED (
     SELECT t.id FROM token t WHERE t.id = ANY ($1::bigint[]) AND NOT EXISTS (SELECT FROM outcome o WHERE o.token_id = t.id)
     ORDER BY t.id FOR KEY SHARE OF t),
   fresh AS MATERIALIZED (
     SELECT DISTINCT token_id FROM unnest($1::bigint[], $2::float8[]) AS t (token_id, ms)
     WHERE ms >= extract(epoch FROM clock_timestamp()) * 1000 - $3),
   locked AS MATERIALIZED (
     SELECT l.token_id FROM latest_price l WHERE l.token_id = ANY (ARRAY(SELECT token_id FROM fresh))
     ORDER BY l.token_id FOR NO KEY UPDATE)
   SELECT f.token_id FROM (SELECT count(*) FROM unlisted) AS u
   LEFT JOIN fresh f ON f.token_id NOT IN (SELECT token_id FROM locked)`,
);
const LOCK_TOKENS = sql(
  'lock_unpriced_tokens',
  'SELECT id FROM token WHERE id = ANY ($1::bigint[]) ORDER BY id FOR NO KEY UPDATE',
);
/** A statement after the lock of the tokens, so that it sees first prices that were committed meanwhile. */
const LOCK_PRICES = sql(
  'lock_latest_prices',
  'SELECT token_id FROM latest_price WHERE token_id = ANY ($1::bigint[]) ORDER BY token_id FOR NO KEY UPDATE',
);

/**
 * Locks the outcomes whose trades become observations, those younger than `freshMs`, and the tokens without a market. Times are epoch
 * milliseconds.
 */
export async function lockOutcomes(
  tx: Tx,
  tokenIds: readonly (bigint | undefined)[],
  timesMs: readonly number[],
  freshMs: number,
): Promise<void> {
  const unpriced = await tx.query<{ tokenId: bigint | null }>(LOCK_FRESH, [tokenIds, timesMs, freshMs]);
  const keys = unpriced.flatMap(({ tokenId }) => tokenId ?? []);
  if (keys.length === 0) return;
  await tx.query(LOCK_TOKENS, [keys]);
  await tx.query(LOCK_PRICES, [keys]);
}
