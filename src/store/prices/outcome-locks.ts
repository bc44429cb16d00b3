import { sql, type Tx } from '../db/tx.ts';

/*
 * Observations of an outcome are numbered under a lock that its writers hold until their commit, so a reader that sees a number sees all
 * smaller ones. The lock is the row of the latest price. An outcome without a price is locked by its token; the writer of its first price
 * takes the same lock, so no price can appear meanwhile.
 *
 * A token without a market gets a lock that conflicts with the transaction that stores its market: see `publishEarlier`.
 */

/**
 * The stored tokens of these mints, with the locks of those with a trade that is fresh enough for an observation, as far as they have a price.
 * Without one of the tokens it takes no lock, so that all locks are taken in the order of the keys. A list is looked up by IN in an
 * expression, which is hashed.
 */
const LOCK_FRESH = sql(
  'lock_fresh_outcomes',
  `WITH known AS MATERIALIZED (
     SELECT t.id, t.mint, t.mint IN (
       SELECT mint FROM unnest($1::text[], $2::float8[]) AS l (mint, ms) WHERE ms >= extract(epoch FROM clock_timestamp()) * 1000 - $3) AS is_fresh
     FROM token t WHERE t.mint = ANY ($1::text[])),
   complete AS MATERIALIZED (SELECT count(*) = cardinality($1::text[]) AS is_complete FROM known),
   unlisted AS MATERIALIZED (
     SELECT t.id FROM token t WHERE t.id = ANY (ARRAY(SELECT id FROM known, complete WHERE is_complete))
       AND NOT EXISTS (SELECT FROM outcome o WHERE o.token_id = t.id) ORDER BY t.id FOR KEY SHARE OF t),
   locked AS MATERIALIZED (
     SELECT l.token_id FROM latest_price l WHERE l.token_id = ANY (ARRAY(SELECT id FROM known, complete WHERE is_complete AND is_fresh))
     ORDER BY l.token_id FOR NO KEY UPDATE)
   SELECT k.id, k.mint AS token_mint, k.is_fresh AND k.id NOT IN (SELECT token_id FROM locked) AS is_unpriced
   FROM (SELECT count(*) FROM unlisted) AS u, (SELECT count(*) FROM locked) AS p, known k`,
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
 * Locks the outcomes whose trades become observations, those with a trade younger than `freshMs`, and the tokens without a market. `latestMs`
 * has the time of the newest trade of each, epoch milliseconds. Returns the row numbers of the stored tokens; when one is absent, nothing
 * is locked.
 */
export async function lockOutcomes(
  tx: Tx,
  latestMs: ReadonlyMap<string, number>,
  freshMs: number,
): Promise<Map<string, bigint>> {
  const rows = await tx.query<{ id: bigint; tokenMint: string; isUnpriced: boolean }>(LOCK_FRESH, [
    [...latestMs.keys()],
    [...latestMs.values()],
    freshMs,
  ]);
  const keys = rows.filter(({ isUnpriced }) => isUnpriced).map(({ id }) => id);
  if (rows.length === latestMs.size && keys.length > 0) {
    await tx.query(LOCK_TOKENS, [keys]);
    await tx.query(LOCK_PRICES, [keys]);
  }
  return new Map(rows.map(({ id, tokenMint }) => [tokenMint, id]));
}
