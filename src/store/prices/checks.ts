import { type Database, type Queryable, sql } from '../db/tx.ts';

/** Outcomes per row of `price_check`; migration 0011 has the same number. */
const BLOCK = 256;
/** The type of the times, `int4`, ends here: in the year 2038. */
const MAX_SECOND = 2 ** 31 - 1;
/** Blocks per transaction, so that a writer of a changed price waits some milliseconds at most. */
const BLOCKS_AT_ONCE = 128;

/** SQL of the block of a token. */
export function blockOf(tokenId: string): string {
  return `${tokenId} / ${BLOCK}`;
}

/** SQL of the last confirmation of a token, in a row of `price_check`. */
export function checkedAt(row: string, tokenId: string): string {
  return `to_timestamp(${placedCheck(row, tokenId)})`;
}

/** The same in epoch seconds. */
export function placedCheck(row: string, tokenId: string): string {
  return `${row}.checked[(${tokenId} % ${BLOCK})::int + 1]`;
}

/** A stored quote that the venue still had at a later moment. */
export interface ConfirmedPrice {
  tokenId: bigint;
  /** When the venue still had it, epoch milliseconds. */
  asOfMs: number;
  /** The time of the stored quote, which identifies it. */
  storedAsOf: Date;
}

const INSERT_BLOCKS = sql(
  'insert_price_blocks',
  `INSERT INTO price_check (block) SELECT block FROM unnest($1::bigint[]) AS b (block)
   WHERE NOT EXISTS (SELECT FROM price_check c WHERE c.block = b.block) ORDER BY block ON CONFLICT (block) DO NOTHING`,
);
const LOCK_BLOCKS = sql(
  'lock_price_blocks',
  'SELECT FROM price_check WHERE block = ANY ($1::bigint[]) ORDER BY block FOR NO KEY UPDATE',
);

/** Reads the stored quotes after the locks. Times of `latest_price` are whole milliseconds, like those of the confirmations. */
const CONFIRM_PRICES = sql(
  'confirm_prices',
  `WITH given AS MATERIALIZED (
     SELECT token_id, checked, date_trunc('milliseconds', l.as_of) IS NOT DISTINCT FROM i.as_of AS is_stored
     FROM unnest($2::bigint[], $3::int4[], $4::timestamptz[]) AS i (token_id, checked, as_of) LEFT JOIN latest_price l USING (token_id)),
   valid AS MATERIALIZED (SELECT token_id, max(checked) AS checked FROM given WHERE is_stored GROUP BY token_id),
   written AS (
     UPDATE price_check c SET checked = m.checked FROM (
       SELECT b.block, array_agg(greatest(e.checked, v.checked) ORDER BY e.place) AS checked
       FROM price_check b CROSS JOIN LATERAL unnest(b.checked) WITH ORDINALITY AS e (checked, place)
       LEFT JOIN valid v ON v.token_id = b.block * ${BLOCK} + e.place - 1
       WHERE b.block = ANY ($1::bigint[]) GROUP BY b.block) m
     WHERE c.block = m.block AND c.checked <> m.checked)
   SELECT token_id FROM given WHERE NOT is_stored`,
);

/**
 * Stores confirmations, in whole seconds. A confirmation of a quote that has changed since has no effect, and neither has one that is older
 * than the stored one. Returns the tokens whose quote has changed.
 *
 * The statement that compares the quotes follows the one that locks the blocks, and a writer of a changed quote holds its block until it
 * commits. So a quote whose change commits first is not confirmed, and a quote that is confirmed first is replaced by later ones only.
 */
export async function confirmPrices(db: Database, confirmations: readonly ConfirmedPrice[]): Promise<bigint[]> {
  const blocks = blocksOf(confirmations);
  const changed: bigint[] = [];
  for (let start = 0; start < blocks.length; start += BLOCKS_AT_ONCE) {
    const some = new Set(blocks.slice(start, start + BLOCKS_AT_ONCE));
    const confirmed = confirmations.filter(({ tokenId }) => some.has(tokenId / BigInt(BLOCK)));
    const rows = await db.transaction(async (tx) => {
      await tx.query(INSERT_BLOCKS, [[...some]]);
      await tx.query(LOCK_BLOCKS, [[...some]]);
      return tx.query<{ tokenId: bigint }>(CONFIRM_PRICES, [
        [...some],
        confirmed.map(({ tokenId }) => tokenId),
        confirmed.map(({ asOfMs }) => Math.min(Math.floor(asOfMs / 1000), MAX_SECOND)),
        confirmed.map(({ storedAsOf }) => storedAsOf.toISOString()),
      ]);
    });
    changed.push(...rows.map(({ tokenId }) => tokenId));
  }
  return changed;
}

const CHANGED_CHECKS = sql(
  'changed_price_checks',
  `SELECT c.block, c.xmin::text AS version, c.checked, clock_timestamp() AS read_at
   FROM price_check c LEFT JOIN unnest($1::bigint[], $2::text[]) AS k (block, version) ON k.block = c.block
   WHERE k.version IS DISTINCT FROM c.xmin::text`,
);

/** The confirmations of the tokens of a block. */
export interface CheckBlock {
  block: bigint;
  /** Changes with each write of the block. */
  version: string;
  /** Epoch seconds by the place of the token in its block; 0 without a confirmation. */
  checked: number[];
  /** The database clock after the read. */
  readAt: Date;
}

/** The blocks with another version than the known ones. */
export function readChangedChecks(db: Queryable, known: ReadonlyMap<bigint, string>): Promise<CheckBlock[]> {
  return db.query(CHANGED_CHECKS, [[...known.keys()], [...known.values()]]);
}

/** The block of a token and its place in it. */
export function placeOf(tokenId: bigint): { block: bigint; place: number } {
  return { block: tokenId / BigInt(BLOCK), place: Number(tokenId % BigInt(BLOCK)) };
}

const FORGET_CHECKS = sql(
  'forget_price_checks',
  `UPDATE price_check c SET checked = ARRAY(
     SELECT CASE WHEN c.block * ${BLOCK} + e.place - 1 = ANY ($2::bigint[]) THEN 0 ELSE e.checked END
     FROM unnest(c.checked) WITH ORDINALITY AS e (checked, place) ORDER BY e.place)
   WHERE c.block = ANY ($1::bigint[])`,
);

/** Deletes the confirmations of these tokens, in the transaction that deletes their prices: a later first price starts without one. */
export async function forgetChecks(tx: Queryable, tokenIds: readonly bigint[]): Promise<void> {
  if (tokenIds.length === 0) return;
  const blocks = blocksOf(tokenIds.map((tokenId) => ({ tokenId })));
  await tx.query(LOCK_BLOCKS, [blocks]);
  await tx.query(FORGET_CHECKS, [blocks, tokenIds]);
}

/** In ascending order. */
function blocksOf(rows: readonly { tokenId: bigint }[]): bigint[] {
  return [...new Set(rows.map(({ tokenId }) => tokenId / BigInt(BLOCK)))].sort((a, b) => Number(a - b));
}
