import { type Queryable, sql } from '../db/tx.ts';

/** Outcomes per row of `price_check`; migration 0011 has the same number. */
export const BLOCK = 256;

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

export const LOCK_BLOCKS = sql(
  'lock_price_blocks',
  'SELECT FROM price_check WHERE block = ANY ($1::bigint[]) ORDER BY block FOR NO KEY UPDATE',
);

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
