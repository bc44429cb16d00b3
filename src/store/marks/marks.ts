import { SHARDS, shardOf } from '../../domain/values/shard.ts';
import { type Database, type Queryable, sql, type Tx } from '../db/tx.ts';

/**
 * The stages that work through marks (DESIGN section 2). What `key` and `detail` mean:
 * - `fold-candles`: token, minute (epoch seconds) that gained a trade
 * - `sample-snapshots`: token, minute (epoch seconds) in which its price changed
 * - `evaluate-alerts`: token, and what happened: see alert-evaluation.ts
 */
export const STAGES = ['fold-candles', 'sample-snapshots', 'evaluate-alerts'] as const;
export type Stage = (typeof STAGES)[number];

export interface Mark {
  id: bigint;
  key: bigint;
  detail: bigint;
}

/** Advisory lock space of shards: the first of the two lock keys. The migration lock uses another. */
const SHARD_LOCK_SPACE = 0x6f_64_64; // "odd"

const INSERT_MARKS = sql(
  'insert_marks',
  `INSERT INTO mark (stage, shard, key, detail)
   SELECT $1, key % ${SHARDS}, key, detail FROM unnest($2::bigint[], $3::bigint[]) AS m (key, detail)`,
);

/** Inserts marks in the transaction that changed the state they speak of. */
export async function insertMarks(
  tx: Queryable,
  stage: Stage,
  marks: readonly { key: bigint; detail: bigint }[],
): Promise<void> {
  if (marks.length === 0) return;
  await tx.query(INSERT_MARKS, [stage, marks.map((mark) => mark.key), marks.map((mark) => mark.detail)]);
}

/** The shards, hence lanes, that a set of keys falls into. */
export function shardsOf(keys: Iterable<bigint>): number[] {
  return [...new Set([...keys].map(shardOf))].sort((a, b) => a - b);
}

/**
 * Marks are looked for by their index alone: the statistics of a table that is filled and emptied all day say that a shard has a
 * mark or two, and a bitmap of those two would be of all that wait, and of all that were claimed since the last vacuum, at each
 * look. An index scan stops at its limit, and remembers in the index what it found dead.
 */
const BY_INDEX = `set_config('enable_bitmapscan', 'off', true), set_config('enable_seqscan', 'off', true)`;

const LOCK_SHARDS = sql(
  'lock_shards',
  `SELECT pg_advisory_xact_lock($1, hashtext($2) # shard), ${BY_INDEX}
   FROM unnest($3::int[]) AS s (shard)`,
);

/**
 * Waits for the shards, one after another, and holds them until the transaction ends. The statement that reads facts must come
 * after the one that claims, which must come after this: under READ COMMITTED each statement sees what was committed when it
 * began. Whoever takes several takes them in the same order, so that no two wait for each other. What follows in the
 * transaction is planned without bitmap and sequential scans.
 */
export async function lockShards(tx: Tx, stage: Stage, shards: readonly number[]): Promise<void> {
  await tx.query(LOCK_SHARDS, [SHARD_LOCK_SPACE, stage, shards.toSorted((a, b) => a - b)]);
}

/** A look into the index for each shard: of one condition for all of them, every waiting mark would be sorted. */
const claimStatement = (name: string, order: string) =>
  sql(
    name,
    `DELETE FROM mark WHERE ctid = ANY (ARRAY(
       SELECT m.ctid FROM unnest((SELECT $2::int[])) AS s (shard) CROSS JOIN LATERAL (
         SELECT ctid FROM mark WHERE stage = $1 AND mark.shard = s.shard AND detail < $4 ORDER BY ${order} LIMIT $3) m))
     RETURNING id, key, detail`,
  );
const CLAIM_OLDEST = claimStatement('claim_marks_oldest', 'id');
const CLAIM_NEWEST = claimStatement('claim_marks_newest', 'id DESC');
const CLAIM_THESE = sql(
  'claim_marks_these',
  `DELETE FROM mark WHERE stage = $1 AND shard = ANY ($2::int[]) AND id = ANY ($3::bigint[]) RETURNING id, key, detail`,
);

export interface ClaimOptions {
  /** Of all shards together, in equal parts. */
  limit: number;
  /** Newest first keeps the present fresh while a backlog is worked off. */
  order: 'oldest' | 'newest';
  /** Only marks whose detail is below this: for marks that are not ripe yet. */
  detailBelow?: bigint;
}

const MAX_BIGINT = 9_223_372_036_854_775_807n;

/** What one shard may have of a claim. */
function partOf(limit: number, shards: readonly number[]): number {
  return Math.ceil(limit / shards.length);
}

/** Takes marks out of the table, inside the transaction that does their work. Order by id. */
export async function claimMarks(
  tx: Tx,
  stage: Stage,
  shards: readonly number[],
  options: ClaimOptions,
): Promise<Mark[]> {
  const { limit, order, detailBelow = MAX_BIGINT } = options;
  const statement = order === 'oldest' ? CLAIM_OLDEST : CLAIM_NEWEST;
  return inOrder(await tx.query<Mark>(statement, [stage, shards, partOf(limit, shards), detailBelow]));
}

/** Whether one of the shards gave the whole of its part, and so may have more. */
export function isFullClaim(marks: readonly Mark[], shards: readonly number[], { limit }: ClaimOptions): boolean {
  const counts = new Map<number, number>();
  for (const { key } of marks) counts.set(shardOf(key), (counts.get(shardOf(key)) ?? 0) + 1);
  return Math.max(0, ...counts.values()) >= partOf(limit, shards);
}

/** Takes exactly these marks, as far as they are still there. */
export async function claimTheseMarks(
  tx: Tx,
  stage: Stage,
  shards: readonly number[],
  ids: readonly bigint[],
): Promise<Mark[]> {
  return inOrder(await tx.query<Mark>(CLAIM_THESE, [stage, shards, ids]));
}

function inOrder(marks: Mark[]): Mark[] {
  return marks.sort((a, b) => (a.id < b.id ? -1 : 1));
}

const WAITING_SHARDS = sql(
  'waiting_shards',
  `SELECT s AS shard FROM generate_series(0, ${SHARDS - 1}) s
   WHERE EXISTS (SELECT FROM mark WHERE stage = $1 AND shard = s AND detail < $2)`,
);

const LOOK_BY_INDEX = sql('look_by_index', `SELECT ${BY_INDEX}`);

/** Shards of a stage that have ripe marks waiting. */
export async function waitingShards(
  db: Pick<Database, 'transaction'>,
  stage: Stage,
  detailBelow = MAX_BIGINT,
): Promise<number[]> {
  return db.transaction(async (tx) => {
    await tx.query(LOOK_BY_INDEX);
    const rows = await tx.query<{ shard: number }>(WAITING_SHARDS, [stage, detailBelow]);
    return rows.map((row) => row.shard);
  });
}

const PARK_MARKS = sql(
  'park_marks',
  `INSERT INTO parked_mark (stage, shard, key, detail, error)
   SELECT $1, key % ${SHARDS}, key, detail, $4 FROM unnest($2::bigint[], $3::bigint[]) AS m (key, detail)`,
);

/** Puts claimed marks aside with the reason, where an operator sees them; the next start of the process tries them again. */
export async function parkMarks(tx: Tx, stage: Stage, marks: readonly Mark[], error: string): Promise<void> {
  const keys = marks.map((mark) => mark.key);
  await tx.query(PARK_MARKS, [stage, keys, marks.map((mark) => mark.detail), error]);
}

const RELEASE_PARKED = sql(
  'release_parked_marks',
  `WITH released AS (DELETE FROM parked_mark WHERE stage = $1 RETURNING shard, key, detail)
   INSERT INTO mark (stage, shard, key, detail) SELECT $1, shard, key, detail FROM released RETURNING id`,
);

/** Gives parked marks of a stage another try; returns how many. */
export async function releaseParkedMarks(db: Queryable, stage: Stage): Promise<number> {
  return (await db.query(RELEASE_PARKED, [stage])).length;
}
