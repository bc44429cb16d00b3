import { type Queryable, sql } from '../db/tx.ts';
import { forgetChecks } from './checks.ts';

/** A mint to price: a token that alerts name. */
export interface WatchedToken {
  tokenId: bigint;
  mint: string;
  /** Its symbol is unknown and was not requested within the last day. */
  needsSymbol: boolean;
}

/**
 * Matches the form of a mint, as the index `token_like_mint` does. Ids of prediction-market outcomes, the majority of tokens, do not match.
 */
const LIKE_MINT = `t.mint ~ '^[1-9A-HJ-NP-Za-km-z]{32,44}$'`;

/** One index probe per token: OFFSET keeps the planner from hashing the whole table each time. */
const IS_OUTCOME = `EXISTS (SELECT FROM outcome o WHERE o.token_id = t.id OFFSET 0)`;
const IS_PRICED = `EXISTS (SELECT FROM latest_price l WHERE l.token_id = t.id OFFSET 0)`;
/** The conditions are literals, because the partial indexes of active alerts fit only then. */
const IS_WATCHED = `(${hasAlert(`a.condition = 'above'`)} OR ${hasAlert(`a.condition = 'below'`)} OR ${hasAlert('a.probe IS NOT NULL')})`;

function hasAlert(condition: string): string {
  return `EXISTS (
     SELECT FROM alert a WHERE a.token_id = t.id AND a.status = 'active' AND ${condition} OFFSET 0)`;
}

const WATCHED_TOKENS = sql(
  'watched_tokens',
  `SELECT t.id AS token_id, t.mint,
     t.symbol IS NULL AND (t.symbol_asked_at IS NULL OR t.symbol_asked_at < now() - interval '1 day') AS needs_symbol
   FROM token t
   WHERE ${LIKE_MINT} AND t.currency = $1 AND t.id <> ALL ($3::bigint[])
     AND NOT ${IS_OUTCOME} AND ${IS_WATCHED}
   ORDER BY t.price_asked_at NULLS FIRST, t.id LIMIT $2`,
);

/**
 * Mints in this currency that active alerts name and that are not outcomes, oldest request first, so the mint of a new alert leads.
 * `except` lists mints that this poll already requested.
 */
export function watchedTokens(
  db: Queryable,
  options: { currency: string; limit: number; except: readonly bigint[] },
): Promise<WatchedToken[]> {
  return db.query(WATCHED_TOKENS, [options.currency, options.limit, options.except]);
}

const NOTE_ASKED = sql(
  'note_tokens_asked',
  `UPDATE token t SET price_asked_at = clock_timestamp()
   FROM (SELECT id FROM token WHERE id = ANY ($1::bigint[]) ORDER BY id FOR NO KEY UPDATE) asked WHERE t.id = asked.id`,
);

/** Records the request for these mints, with or without a price, so that the others come first next time. */
export async function notePricesAsked(tx: Queryable, tokenIds: readonly bigint[]): Promise<void> {
  if (tokenIds.length > 0) await tx.query(NOTE_ASKED, [tokenIds]);
}

const NOTE_SYMBOLS = sql(
  'note_token_symbols',
  `UPDATE token t SET symbol = coalesce(t.symbol, s.symbol), symbol_asked_at = clock_timestamp()
   FROM (SELECT id FROM token WHERE id = ANY ($1::bigint[]) ORDER BY id FOR NO KEY UPDATE) asked
   JOIN unnest($1::bigint[], $2::text[]) AS s (id, symbol) USING (id) WHERE t.id = asked.id`,
);

/** Stores found symbols, and records the request for the others; a known symbol stays. */
export async function noteSymbols(
  tx: Queryable,
  asked: readonly { tokenId: bigint; symbol: string | undefined }[],
): Promise<void> {
  if (asked.length === 0) return;
  await tx.query(NOTE_SYMBOLS, [asked.map(({ tokenId }) => tokenId), asked.map(({ symbol }) => symbol ?? null)]);
}

const FORGET_UNWATCHED = sql(
  'forget_unwatched_tokens',
  `WITH idle AS MATERIALIZED (
     SELECT t.id AS token_id FROM token t
     WHERE ${LIKE_MINT} AND t.currency = $1 AND ${IS_PRICED} AND NOT ${IS_OUTCOME} AND NOT ${IS_WATCHED}
     ORDER BY t.id LIMIT $2),
   forgotten AS (DELETE FROM latest_price l USING idle WHERE l.token_id = idle.token_id RETURNING l.token_id),
   history AS (DELETE FROM price_history h USING idle WHERE h.token_id = idle.token_id)
   SELECT token_id FROM forgotten`,
);

/**
 * Deletes the prices of mints that no active alert names any more: polling has ended for them, and a later alert must not fire on such a
 * stale price. Returns their tokens.
 */
export async function forgetUnwatched(tx: Queryable, currency: string, limit: number): Promise<bigint[]> {
  const rows = await tx.query<{ tokenId: bigint }>(FORGET_UNWATCHED, [currency, limit]);
  const forgotten = rows.map(({ tokenId }) => tokenId);
  await forgetChecks(tx, forgotten);
  return forgotten;
}
