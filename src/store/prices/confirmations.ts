import { type Database, epochMs, sql, type Tx } from '../db/tx.ts';
import { BLOCK, LOCK_BLOCKS, placeOf } from './checks.ts';

/** The type of the times, `int4`, ends here: in the year 2038. */
const MAX_SECOND = 2 ** 31 - 1;
/** Blocks per transaction, so that a writer of a changed price waits some milliseconds at most. */
const BLOCKS_AT_ONCE = 128;

/** A stored quote that the venue still had at a later moment. */
export interface ConfirmedPrice {
  tokenId: bigint;
  /** When the venue still had it, epoch milliseconds. */
  asOfMs: number;
  /** The time of the stored quote, which identifies it. */
  storedAsOf: Date;
}

/** A block as this process wrote it last, with the quotes that were stored then. */
interface KnownBlock {
  /** The version of the row. Another one means that somebody else wrote it. */
  version: string;
  /** A hash over the times of all quotes of the block. Another one means that a quote changed. */
  quotes: string;
  /** Epoch seconds by the place of the token; 0 without a confirmation. */
  checked: Int32Array;
  /** The times of the stored quotes by the same place, epoch milliseconds; absent without a price. */
  storedMs: Float64Array;
}

/**
 * The blocks that a process wrote: about 13 bytes for each token of them. Without it, each write reads the times of all quotes of its blocks;
 * with it, only those of the blocks in which a quote changed or which another process wrote since.
 */
export type KnownBlocks = Map<bigint, KnownBlock>;

const INSERT_BLOCKS = sql(
  'insert_price_blocks',
  `INSERT INTO price_check (block) SELECT block FROM unnest($1::bigint[]) AS b (block)
   WHERE NOT EXISTS (SELECT FROM price_check c WHERE c.block = b.block) ORDER BY block ON CONFLICT (block) DO NOTHING`,
);

const QUOTES_OF_BLOCK = `FROM latest_price l WHERE l.token_id >= b.block * ${BLOCK} AND l.token_id < (b.block + 1) * ${BLOCK}`;

/**
 * Reads the blocks after the locks: of a known version without the times of confirmations, and of known quotes without their times. The
 * hash joins one of each quote, seeded with its token, so any change of a time changes it.
 */
const READ_BLOCKS = sql(
  'read_price_blocks',
  `SELECT b.block, b.version, q.quotes,
     CASE WHEN b.version IS DISTINCT FROM b.known_version THEN b.checked END AS checked,
     CASE WHEN q.quotes IS DISTINCT FROM b.known_quotes THEN ARRAY(
       SELECT l.token_id % ${BLOCK} ${QUOTES_OF_BLOCK} ORDER BY l.token_id)::int4[] END AS places,
     CASE WHEN q.quotes IS DISTINCT FROM b.known_quotes THEN ARRAY(
       SELECT ${epochMs('l.as_of')} ${QUOTES_OF_BLOCK} ORDER BY l.token_id) END AS stored_ms
   FROM (
     SELECT c.block, c.xmin::text AS version, c.checked, k.version AS known_version, k.quotes AS known_quotes
     FROM unnest($1::bigint[], $2::text[], $3::text[]) AS k (block, version, quotes) JOIN price_check c USING (block)) b
   CROSS JOIN LATERAL (
     SELECT count(*) || ' ' || coalesce(bit_xor(hashfloat8extended(date_part('epoch', l.as_of), l.token_id)), 0) AS quotes ${QUOTES_OF_BLOCK}) q`,
);

const WRITE_BLOCKS = sql(
  'write_price_blocks',
  `UPDATE price_check c SET checked = i.checked::int4[] FROM unnest($1::bigint[], $2::text[]) AS i (block, checked)
   WHERE c.block = i.block RETURNING c.block, c.xmin::text AS version`,
);

/**
 * Stores confirmations, in whole seconds. A confirmation of a quote that has changed since has no effect, and neither has one that is older
 * than the stored one. Returns the tokens whose quote has changed.
 *
 * The statement that reads the quotes follows the one that locks the blocks, and a writer of a changed quote holds its block until it
 * commits. So a quote whose change commits first is not confirmed, and a quote that is confirmed first is replaced by later ones only.
 */
export async function confirmPrices(
  db: Database,
  confirmations: readonly ConfirmedPrice[],
  known: KnownBlocks = new Map(),
): Promise<bigint[]> {
  const byBlock = new Map<bigint, ConfirmedPrice[]>();
  for (const confirmation of confirmations) {
    const { block } = placeOf(confirmation.tokenId);
    const others = byBlock.get(block);
    if (others) others.push(confirmation);
    else byBlock.set(block, [confirmation]);
  }
  const blocks = [...byBlock.keys()].sort((a, b) => Number(a - b));
  const changed: bigint[] = [];
  for (let start = 0; start < blocks.length; start += BLOCKS_AT_ONCE) {
    const some = blocks.slice(start, start + BLOCKS_AT_ONCE);
    const written = await db.transaction((tx) => confirmBlocks(tx, some, byBlock, known));
    // A row is gone when another database was restored under this process: the next write inserts it.
    for (const block of some) if (!written.has(block)) known.delete(block);
    for (const [block, { changedTokenIds, ...after }] of written) {
      known.set(block, after);
      changed.push(...changedTokenIds);
    }
  }
  return changed;
}

interface BlockRow {
  block: bigint;
  version: string;
  quotes: string;
  checked: number[] | null;
  places: number[] | null;
  storedMs: number[] | null;
}

/** The blocks after the transaction, which is not committed yet. */
async function confirmBlocks(
  tx: Tx,
  blocks: readonly bigint[],
  confirmations: ReadonlyMap<bigint, readonly ConfirmedPrice[]>,
  known: KnownBlocks,
): Promise<Map<bigint, KnownBlock & { changedTokenIds: bigint[] }>> {
  const unknown = blocks.filter((block) => !known.has(block));
  if (unknown.length > 0) await tx.query(INSERT_BLOCKS, [unknown]);
  await tx.query(LOCK_BLOCKS, [blocks]);
  const rows = await tx.query<BlockRow>(READ_BLOCKS, [
    blocks,
    blocks.map((block) => known.get(block)?.version ?? null),
    blocks.map((block) => known.get(block)?.quotes ?? null),
  ]);
  const after = new Map(
    rows.map((row) => [row.block, confirmed(row, known.get(row.block), confirmations.get(row.block) ?? [])]),
  );
  const moved = [...after].filter(([, { isMoved }]) => isMoved);
  const texts = moved.map(([, { checked }]) => `{${checked.join(',')}}`);
  const written =
    moved.length === 0
      ? []
      : await tx.query<Pick<BlockRow, 'block' | 'version'>>(WRITE_BLOCKS, [moved.map(([block]) => block), texts]);
  const versions = new Map(written.map(({ block, version }) => [block, version]));
  return new Map(
    [...after].map(([block, { isMoved: _, ...state }]) => [
      block,
      { ...state, version: versions.get(block) ?? state.version },
    ]),
  );
}

/** A block with these confirmations, as far as their quotes are still stored. */
function confirmed(
  { version, quotes, checked: readChecks, places, storedMs: readMs }: BlockRow,
  before: KnownBlock | undefined,
  confirmations: readonly ConfirmedPrice[],
): KnownBlock & { changedTokenIds: bigint[]; isMoved: boolean } {
  const checked = Int32Array.from(readChecks ?? before?.checked ?? []);
  const storedMs = places ? new Float64Array(BLOCK).fill(Number.NaN) : (before?.storedMs ?? new Float64Array());
  places?.forEach((place, index) => {
    storedMs[place] = readMs?.[index] ?? Number.NaN;
  });
  const changedTokenIds: bigint[] = [];
  let isMoved = false;
  for (const { tokenId, asOfMs, storedAsOf } of confirmations) {
    const { place } = placeOf(tokenId);
    const second = Math.min(Math.floor(asOfMs / 1000), MAX_SECOND);
    if (storedMs[place] !== storedAsOf.getTime()) changedTokenIds.push(tokenId);
    else if (second > (checked[place] ?? 0)) {
      checked[place] = second;
      isMoved = true;
    }
  }
  return { version, quotes, checked, storedMs, changedTokenIds, isMoved };
}
