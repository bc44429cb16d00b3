import { SHARDS, shardOf } from '../../domain/values/shard.ts';
import { type Queryable, sql, sqlPlannedPerCall, type Tx } from '../db/tx.ts';
import { insertMarksSql, MARK_CHANGED_MARKETS_SQL, MARK_RESULTS_AGAIN_SQL, type Stage } from './detail.ts';

export interface Mark {
  id: bigint;
  key: bigint;
  /** See src/store/marks/detail.ts. */
  detail: bigint;
}

/** Advisory lock space of shards: the first of the two lock keys. The migration lock uses another. */
const SHARD_LOCK_SPACE = 0x6f_64_64; // "odd"

const INSERT_MARKS = sql('insert_marks', insertMarksSql('$1', 'SELECT * FROM unnest($2::bigint[], $3::bigint[])'));

/** Inserts marks in the transaction that changes the marked state. */
export async function insertMarks(
  tx: Queryable,
  stage: Stage,
  marks: readonly { key: bigint; detail: bigint }[],
): Promise<void> {
  if (marks.length === 0) return;
  await tx.query(INSERT_MARKS, [stage, marks.map((mark) => mark.key), marks.map((mark) => mark.detail)]);
}

const MARK_CHANGED = sql('mark_changed_markets', `${MARK_CHANGED_MARKETS_SQL} RETURNING key`);

/** Inserts the marks of new and changed markets for alerts on their state, after their rows; returns the keys of the marks. */
export async function markChangedMarkets(tx: Queryable, marketPks: readonly bigint[]): Promise<bigint[]> {
  if (marketPks.length === 0) return [];
  return (await tx.query<{ key: bigint }>(MARK_CHANGED, [marketPks])).map(({ key }) => key);
}

const MARK_AGAIN = sql('mark_results_again', `${MARK_RESULTS_AGAIN_SQL} RETURNING key`);

/** Inserts such marks again for markets whose timeline got rows within this time; returns their keys. */
export async function markResultsAgain(db: Queryable, withinSeconds: number): Promise<bigint[]> {
  return (await db.query<{ key: bigint }>(MARK_AGAIN, [withinSeconds])).map(({ key }) => key);
}

const PUT_BACK = sql(
  'put_back_marks',
  insertMarksSql('$1', 'SELECT * FROM unnest($2::bigint[], $3::bigint[], $4::bigint[])', { keepsIds: true }),
);

/** Reinserts claimed marks under their ids, so that the marks of a key stay in the order of their causes. */
export async function putBackMarks(tx: Tx, stage: Stage, marks: readonly Mark[]): Promise<void> {
  if (marks.length === 0) return;
  const columns = [marks.map(({ id }) => id), marks.map(({ key }) => key), marks.map(({ detail }) => detail)];
  await tx.query(PUT_BACK, [stage, ...columns]);
}

/** The shards of a set of keys, from which the lanes follow. */
export function shardsOf(keys: Iterable<bigint>): number[] {
  return [...new Set([...keys].map(shardOf))].sort((a, b) => a - b);
}

/**
 * Restricts the transaction to index scans. The statistics of a table that is filled and emptied all day promise one or two marks per shard,
 * so the planner would choose a bitmap scan, which reads all pending marks and all marks claimed since the last vacuum. An index scan stops
 * at its limit and marks dead entries in the index. The plans are for any values: Postgres would plan each statement for the values of the
 * first calls of a connection, which costs up to 25 ms each and finds the same indexes.
 */
const BY_INDEX = `set_config('enable_bitmapscan', 'off', true), set_config('enable_seqscan', 'off', true),
     set_config('plan_cache_mode', 'force_generic_plan', true)`;

const LOCK_SHARDS = sql(
  'lock_shards',
  `SELECT pg_advisory_xact_lock($1, hashtext($2) # shard), ${BY_INDEX}
   FROM unnest($3::int[]) AS s (shard)`,
);

/**
 * Waits for the shards one after another and holds them until the transaction ends. The claiming statement must follow this one, and the
 * statement that reads facts must follow the claim: under READ COMMITTED each statement sees the commits before its own start. All
 * callers take several shards in the same order, so that they cannot deadlock. Later statements of the transaction are planned for any
 * values, without bitmap and sequential scans.
 */
export async function lockShards(tx: Tx, stage: Stage, shards: readonly number[]): Promise<void> {
  await tx.query(LOCK_SHARDS, [SHARD_LOCK_SPACE, stage, shards.toSorted((a, b) => a - b)]);
}

/** One index probe per shard: a single condition for all shards would sort every pending mark. */
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
  /** The maximum over all shards, in equal parts. */
  limit: number;
  /** `newest` keeps current data fresh during a backlog. */
  order: 'oldest' | 'newest';
  /** Claims only marks of minutes before this one, epoch seconds; later marks are not ripe yet. */
  minuteBefore?: bigint;
}

const MAX_BIGINT = 9_223_372_036_854_775_807n;

/** The part of the limit for one shard. */
function partOf(limit: number, shards: readonly number[]): number {
  return Math.ceil(limit / shards.length);
}

/** Deletes marks and returns them ordered by id, inside the transaction that does their work. */
export async function claimMarks(
  tx: Tx,
  stage: Stage,
  shards: readonly number[],
  options: ClaimOptions,
): Promise<Mark[]> {
  const { limit, order, minuteBefore = MAX_BIGINT } = options;
  const statement = order === 'oldest' ? CLAIM_OLDEST : CLAIM_NEWEST;
  return inOrder(await tx.query<Mark>(statement, [stage, shards, partOf(limit, shards), minuteBefore]));
}

/** Whether one of the shards reached its part of the limit, so that it may have more marks. */
export function isFullClaim(marks: readonly Mark[], shards: readonly number[], { limit }: ClaimOptions): boolean {
  const counts = new Map<number, number>();
  for (const { key } of marks) counts.set(shardOf(key), (counts.get(shardOf(key)) ?? 0) + 1);
  return Math.max(0, ...counts.values()) >= partOf(limit, shards);
}

/** Claims exactly the given marks, as far as they still exist. */
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

/**
 * Planned per call: the table is empty most of the time, and a plan that was made then reads all of it in a backlog. The order makes each
 * probe use the index.
 */
const WAITING_SHARDS = sqlPlannedPerCall(
  'waiting_shards',
  `SELECT s AS shard FROM generate_series(0, ${SHARDS - 1}) s CROSS JOIN LATERAL (
     SELECT FROM mark WHERE stage = $1 AND mark.shard = s AND detail < $2 ORDER BY mark.stage, mark.shard, mark.id LIMIT 1) m`,
);

/** Shards of a stage with ripe pending marks. */
export async function waitingShards(db: Queryable, stage: Stage, minuteBefore = MAX_BIGINT): Promise<number[]> {
  const rows = await db.query<{ shard: number }>(WAITING_SHARDS, [stage, minuteBefore]);
  return rows.map((row) => row.shard);
}

const DEAD_LETTER_MARKS = sql(
  'dead_letter_marks',
  `INSERT INTO parked_mark (stage, shard, key, detail, error)
   SELECT $1, key % ${SHARDS}, key, detail, $4 FROM unnest($2::bigint[], $3::bigint[]) AS m (key, detail)`,
);

/** Dead-letters claimed marks with the reason for operators; the next start of the process retries them. */
export async function deadLetterMarks(tx: Tx, stage: Stage, marks: readonly Mark[], error: string): Promise<void> {
  const keys = marks.map((mark) => mark.key);
  await tx.query(DEAD_LETTER_MARKS, [stage, keys, marks.map((mark) => mark.detail), error]);
}

const RELEASE_DEAD_LETTERS = sql(
  'release_dead_letters',
  `WITH released AS (DELETE FROM parked_mark WHERE stage = $1 RETURNING key, detail)
   ${insertMarksSql('$1', 'SELECT key, detail FROM released')} RETURNING id`,
);

/** Releases the dead-lettered marks of a stage for another attempt; returns their number. */
export async function releaseDeadLetters(db: Queryable, stage: Stage): Promise<number> {
  return (await db.query(RELEASE_DEAD_LETTERS, [stage])).length;
}
