import { type Queryable, sql } from '../db/tx.ts';

const INSERT_TOKENS = sql(
  'insert_tokens',
  `INSERT INTO token (mint, currency) SELECT mint, $2 FROM unnest($1::text[]) AS t (mint) ORDER BY mint COLLATE "C"
   ON CONFLICT (mint) DO NOTHING RETURNING id`,
);
const SELECT_TOKENS = sql('select_tokens', `SELECT id, mint AS token_mint FROM token WHERE mint = ANY ($1::text[])`);

/** The row numbers of the known tokens among these; the name of an outcome is its `outcomeId`. */
export async function findTokens(db: Queryable, tokenMints: readonly string[]): Promise<Map<string, bigint>> {
  const rows = await db.query<{ id: bigint; tokenMint: string }>(SELECT_TOKENS, [tokenMints]);
  return new Map(rows.map((row) => [row.tokenMint, row.id]));
}

/** Held shared by transactions that use tokens, and exclusively by the one that deletes unused tokens ("toke" in ASCII). */
export const TOKEN_LOCK = 0x74_6f_6b_65;
const KEEP_TOKENS = sql('keep_tokens', `SELECT pg_advisory_xact_lock_shared(${TOKEN_LOCK})`);

/**
 * The row numbers of these tokens, which exist until the transaction ends; unknown ones are created, and added to `created`. The select is
 * a separate statement, because a row that another transaction inserts concurrently is invisible to the inserting statement.
 */
export async function ensureTokens(
  tx: Queryable,
  tokenMints: Iterable<string>,
  currency: string,
  created: Set<bigint> = new Set(),
): Promise<Map<string, bigint>> {
  const wanted = [...new Set(tokenMints)];
  await keepTokens(tx);
  const known = await findTokens(tx, wanted);
  const missing = wanted.filter((tokenMint) => !known.has(tokenMint));
  if (missing.length === 0) return known;
  for (const id of await createTokens(tx, missing, currency)) created.add(id);
  return findTokens(tx, wanted);
}

/** Keeps every token until the transaction ends. Before the look-up, so that it sees the deletions of the previous holder. */
export async function keepTokens(tx: Queryable): Promise<void> {
  await tx.query(KEEP_TOKENS);
}

/** Creates the tokens that do not exist yet; returns their row numbers. */
export async function createTokens(tx: Queryable, tokenMints: readonly string[], currency: string): Promise<bigint[]> {
  return (await tx.query<{ id: bigint }>(INSERT_TOKENS, [tokenMints, currency])).map(({ id }) => id);
}
