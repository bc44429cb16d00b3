import { type Queryable, sql } from '../db/tx.ts';

const INSERT_TOKENS = sql(
  'insert_tokens',
  `INSERT INTO token (mint, currency) SELECT mint, $2 FROM unnest($1::text[]) AS t (mint) ORDER BY mint COLLATE "C"
   ON CONFLICT (mint) DO NOTHING`,
);
const SELECT_TOKENS = sql('select_tokens', `SELECT id, mint FROM token WHERE mint = ANY ($1::text[])`);

/** The token ids of the known outcome ids among these. */
export async function findTokens(db: Queryable, mints: readonly string[]): Promise<Map<string, bigint>> {
  const rows = await db.query<{ id: bigint; mint: string }>(SELECT_TOKENS, [mints]);
  return new Map(rows.map((row) => [row.mint, row.id]));
}

/**
 * The token ids of these outcome ids; unknown ones are created. The select is a separate statement, because a row that another transaction
 * inserts concurrently is invisible to the inserting statement.
 */
export async function ensureTokens(
  tx: Queryable,
  mints: Iterable<string>,
  currency: string,
): Promise<Map<string, bigint>> {
  const wanted = [...new Set(mints)];
  const known = await findTokens(tx, wanted);
  const missing = wanted.filter((mint) => !known.has(mint));
  if (missing.length === 0) return known;
  await tx.query(INSERT_TOKENS, [missing, currency]);
  return findTokens(tx, wanted);
}
