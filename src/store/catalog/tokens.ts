import { type Database, type Queryable, sql, sqlState } from '../db/tx.ts';

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
const TOKEN_LOCK = 0x74_6f_6b_65;
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

/** Tokens per page; each may have snapshots of weeks. */
const BATCH = 200;
/** Waiting writers queue behind the lock, so the wait for it is short; the next run continues. */
const LOCK_TIMEOUT = `SET LOCAL lock_timeout = 200`;
const LOCK_NOT_AVAILABLE = '55P03';

const LOCK = sql('lock_tokens', `SELECT pg_advisory_xact_lock(${TOKEN_LOCK})`);

/** SQL of the condition that neither a market nor an alert names the token t. A token younger than $2 may wait for its first trade. */
const IS_UNNAMED = `t.created_at < $2::timestamptz
     AND NOT EXISTS (SELECT FROM outcome o WHERE o.token_id = t.id) AND NOT EXISTS (SELECT FROM alert a WHERE a.token_id = t.id)`;
/** Candles and trades of an unnamed token belong to a market that is not listed yet. The form excludes plans that read whole tables. */
const IS_UNTRADED = `(SELECT 1 FROM candle c WHERE c.token_id = t.id LIMIT 1) IS NULL
     AND (SELECT 1 FROM trade d WHERE d.token_id = t.id LIMIT 1) IS NULL
     AND (SELECT 1 FROM archive_correction d WHERE d.token_id = t.id LIMIT 1) IS NULL`;

/** Runs without the lock, which stops writers: most pages have no unused token and need none. */
const PAGE = sql(
  'unnamed_tokens',
  `WITH unnamed AS MATERIALIZED (SELECT t.id FROM token t WHERE t.id > $1 AND ${IS_UNNAMED} ORDER BY t.id LIMIT ${BATCH})
   SELECT t.id, ${IS_UNTRADED} AS is_unused FROM unnamed t ORDER BY t.id`,
);

const PRUNE = sql(
  'prune_unused_tokens',
  `WITH unused AS MATERIALIZED (
     SELECT t.id FROM token t WHERE t.id = ANY ($1::bigint[]) AND ${IS_UNNAMED} AND ${IS_UNTRADED}),
   prices AS (DELETE FROM latest_price l USING unused WHERE l.token_id = unused.id),
   history AS (DELETE FROM price_history h USING unused WHERE h.token_id = unused.id),
   snapshots AS (DELETE FROM snapshot s USING unused WHERE s.token_id = unused.id)
   DELETE FROM token t USING unused WHERE t.id = unused.id RETURNING 1`,
);

/**
 * Deletes tokens without a market, an alert or trades, created before `createdBeforeMs` (epoch milliseconds), with their prices: deleted
 * alerts leave them behind. Returns their number.
 */
export async function pruneUnusedTokens(db: Database, createdBeforeMs: number, signal?: AbortSignal): Promise<number> {
  const before = new Date(createdBeforeMs).toISOString();
  let pruned = 0;
  let after = 0n;
  while (!signal?.aborted) {
    const page = await db.query<{ id: bigint; isUnused: boolean }>(PAGE, [after, before]);
    const last = page.at(-1);
    if (last === undefined) break;
    after = last.id;
    const unused = page.filter(({ isUnused }) => isUnused).map(({ id }) => id);
    if (unused.length === 0) continue;
    const deleted = await deleteUnused(db, unused, before);
    if (deleted === 'busy') break;
    pruned += deleted;
  }
  return pruned;
}

/** No transaction that found one of these tokens is in flight: it holds the same lock, shared. */
async function deleteUnused(db: Database, ids: readonly bigint[], before: string): Promise<number | 'busy'> {
  try {
    return await db.transaction(async (tx) => {
      await tx.em.query(LOCK_TIMEOUT);
      await tx.query(LOCK);
      return (await tx.query(PRUNE, [ids, before])).length;
    });
  } catch (error) {
    if (sqlState(error) === LOCK_NOT_AVAILABLE) return 'busy';
    throw error;
  }
}
