import type { AlertCondition } from '../../domain/alerts/alert.ts';
import { type Queryable, sql } from '../db/tx.ts';

/** A mint to price: the token that alerts name. */
export interface WatchedToken {
  tokenId: bigint;
  mint: string;
  /** Its symbol is not known and was not asked for within the last day. */
  needsSymbol: boolean;
}

/**
 * Has the form of a mint, as in the index `token_like_mint`: the ids of prediction-market outcomes, which most tokens
 * are, do not.
 */
const LIKE_MINT = `t.mint ~ '^[1-9A-HJ-NP-Za-km-z]{32,44}$'`;

/** As one probe of an index per token: OFFSET keeps the planner from hashing the whole table each time. */
const IS_OUTCOME = `EXISTS (SELECT FROM outcome o WHERE o.token_id = t.id OFFSET 0)`;
const IS_PRICED = `EXISTS (SELECT FROM latest_price l WHERE l.token_id = t.id OFFSET 0)`;
/** The conditions are literals: only then do the partial indexes of active alerts fit. */
const IS_WATCHED = `(${hasAlert('above')} OR ${hasAlert('below')})`;

function hasAlert(condition: AlertCondition): string {
  return `EXISTS (
     SELECT FROM alert a WHERE a.token_id = t.id AND a.status = 'active' AND a.condition = '${condition}' OFFSET 0)`;
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
 * Mints in this currency that active alerts name and no outcome is, those first that were asked for longest ago: a new
 * alert's mint comes first. `except` were asked for in this poll already.
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

/** Notes that these were asked for, priced or not: the others come first next time. */
export async function notePricesAsked(tx: Queryable, tokenIds: readonly bigint[]): Promise<void> {
  if (tokenIds.length > 0) await tx.query(NOTE_ASKED, [tokenIds]);
}

const NOTE_SYMBOLS = sql(
  'note_token_symbols',
  `UPDATE token t SET symbol = coalesce(t.symbol, s.symbol), symbol_asked_at = clock_timestamp()
   FROM (SELECT id FROM token WHERE id = ANY ($1::bigint[]) ORDER BY id FOR NO KEY UPDATE) asked
   JOIN unnest($1::bigint[], $2::text[]) AS s (id, symbol) USING (id) WHERE t.id = asked.id`,
);

/** Stores the symbols that were found, and that the others were asked for; a symbol that is known stays. */
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
 * Forgets the prices of mints that no active alert names any more: nobody looks after them, and an alert that is made
 * days later must not fire by what the price was then. Returns how many.
 */
export async function forgetUnwatched(tx: Queryable, currency: string, limit: number): Promise<number> {
  return (await tx.query(FORGET_UNWATCHED, [currency, limit])).length;
}
