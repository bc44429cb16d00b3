import { asError } from '../../domain/values/errors.ts';
import { SHARDS, shardOf } from '../../domain/values/shard.ts';
import { scrubText } from '../../domain/values/text.ts';
import { type Database, isContentRefused, isDatabaseUnavailable, sql, sqlState, type Tx } from '../db/tx.ts';
import type { Stage } from './detail.ts';
import { MAX_BIGINT, type Mark } from './marks.ts';

/** Advisory lock space of shards: the first of the two lock keys. The migration lock uses another. */
const SHARD_LOCK_SPACE = 0x6f_64_64; // "odd"

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

/** The part of the limit for one shard. */
function partOf(limit: number, shards: readonly number[]): number {
  return Math.ceil(limit / shards.length);
}

/** Deletes marks and returns them ordered by id, inside the transaction that does their work. */
async function claimMarks(tx: Tx, stage: Stage, shards: readonly number[], options: ClaimOptions): Promise<Mark[]> {
  const { limit, order, minuteBefore = MAX_BIGINT } = options;
  const statement = order === 'oldest' ? CLAIM_OLDEST : CLAIM_NEWEST;
  return inOrder(await tx.query<Mark>(statement, [stage, shards, partOf(limit, shards), minuteBefore]));
}

/** Whether one of the shards reached its part of the limit, so that it may have more marks. */
function isFullClaim(marks: readonly Mark[], shards: readonly number[], { limit }: ClaimOptions): boolean {
  const counts = new Map<number, number>();
  for (const { key } of marks) counts.set(shardOf(key), (counts.get(shardOf(key)) ?? 0) + 1);
  return Math.max(0, ...counts.values()) >= partOf(limit, shards);
}

/** Claims exactly the given marks, as far as they still exist. */
async function claimTheseMarks(
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

const DEAD_LETTER_MARKS = sql(
  'dead_letter_marks',
  `INSERT INTO parked_mark (stage, shard, key, detail, error)
   SELECT $1, key % ${SHARDS}, key, detail, $4 FROM unnest($2::bigint[], $3::bigint[]) AS m (key, detail)`,
);

/** Dead-letters claimed marks with the reason for operators; the next start of the process retries them. */
async function deadLetterMarks(tx: Tx, stage: Stage, marks: readonly Mark[], error: string): Promise<void> {
  const keys = marks.map((mark) => mark.key);
  await tx.query(DEAD_LETTER_MARKS, [stage, keys, marks.map((mark) => mark.detail), error]);
}

/** The work of one stage on claimed marks, inside the claiming transaction. The caller gets the result after the commit. */
export type StageWork<T> = (tx: Tx, marks: readonly Mark[]) => Promise<T>;

interface DrainResult<T> {
  /** The number of processed marks. */
  claimed: number;
  /** Whether more marks may be pending: a shard yielded as many as one claim takes of it. */
  isFull: boolean;
  deadLettered: { marks: Mark[]; error: Error }[];
  results: T[];
}

/** Shards of a stage with the work on their marks. */
interface Target<T> {
  db: Database;
  stage: Stage;
  shards: readonly number[];
  work: StageWork<T>;
}

/**
 * One claim of some shards: lock, claim, then read and write, in one transaction. A batch that fails for its content is split by key down
 * to the poison key, which gets a second attempt and is then dead-lettered; all other keys are processed. A crash before the commit
 * leaves every mark pending.
 * @throws when the database is unavailable or the statement itself is broken; nothing is dead-lettered then.
 */
export async function workShards<T>(
  db: Database,
  stage: Stage,
  shards: readonly number[],
  options: ClaimOptions,
  work: StageWork<T>,
): Promise<DrainResult<T>> {
  const target = { db, stage, shards, work };
  let isFull = false;
  const attempt = await claimAndWork(target, async (tx) => {
    const marks = await claimMarks(tx, stage, shards, options);
    isFull = isFullClaim(marks, shards, options);
    return marks;
  });
  return { ...('failed' in attempt ? await splitAndWork(target, attempt.failed) : attempt), isFull };
}

/** The result of claimed marks. */
type Worked<T> = Omit<DrainResult<T>, 'isFull'>;

/** Processes the claimed marks, or returns the marks that failed for their content. */
async function claimAndWork<T>(
  { db, stage, shards, work }: Target<T>,
  claim: (tx: Tx) => Promise<Mark[]>,
): Promise<Worked<T> | { failed: Mark[]; error: Error }> {
  let claimed: Mark[] = [];
  try {
    const result = await db.transaction(async (tx) => {
      await lockShards(tx, stage, shards);
      claimed = await claim(tx);
      return claimed.length === 0 ? undefined : await work(tx, claimed);
    });
    return { claimed: claimed.length, deadLettered: [], results: result === undefined ? [] : [result] };
  } catch (error) {
    if (!isPoison(error) || claimed.length === 0) throw error;
    return { failed: claimed, error: asError(error) };
  }
}

async function splitAndWork<T>(target: Target<T>, failed: readonly Mark[]): Promise<Worked<T>> {
  const keys = [...new Set(failed.map((mark) => mark.key))];
  const firstHalf = new Set(keys.slice(0, Math.ceil(keys.length / 2)));
  const halves = [failed.filter((mark) => firstHalf.has(mark.key)), failed.filter((mark) => !firstHalf.has(mark.key))];
  const sum: Worked<T> = { claimed: 0, deadLettered: [], results: [] };
  for (const half of halves.filter((marks) => marks.length > 0)) {
    const part = await workThese(target, half);
    sum.claimed += part.claimed;
    sum.deadLettered.push(...part.deadLettered);
    sum.results.push(...part.results);
  }
  return sum;
}

async function workThese<T>(target: Target<T>, marks: readonly Mark[]): Promise<Worked<T>> {
  const attempt = await claimAndWork(target, (tx) => claimTheseMarks(tx, target.stage, target.shards, idsOf(marks)));
  if (!('failed' in attempt)) return attempt;
  const isAlone = new Set(attempt.failed.map((mark) => mark.key)).size === 1;
  return isAlone ? deadLetter(target, attempt.failed, attempt.error) : splitAndWork(target, attempt.failed);
}

async function deadLetter<T>(target: Target<T>, marks: readonly Mark[], error: Error): Promise<Worked<T>> {
  const { db, stage, shards } = target;
  const moved = await db.transaction(async (tx) => {
    await lockShards(tx, stage, shards);
    const claimed = await claimTheseMarks(tx, stage, shards, idsOf(marks));
    await deadLetterMarks(tx, stage, claimed, scrubText(`${error.name}: ${error.message}`).slice(0, 500));
    return claimed;
  });
  return { claimed: moved.length, deadLettered: moved.length === 0 ? [] : [{ marks: moved, error }], results: [] };
}

function idsOf(marks: readonly Mark[]): bigint[] {
  return marks.map((mark) => mark.id);
}

/**
 * Whether the content of the batch is the cause: Postgres refused it, or one of our own rules threw. A missing table, a lost connection,
 * a full disk or a lock timeout would fail every batch alike.
 */
function isPoison(error: unknown): boolean {
  if (isDatabaseUnavailable(error)) return false;
  return sqlState(error) === undefined || isContentRefused(error);
}
