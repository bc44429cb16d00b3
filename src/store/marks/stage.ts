import { asError } from '../../domain/values/errors.ts';
import { scrubText } from '../../domain/values/text.ts';
import { type Database, isContentRefused, isDatabaseUnavailable, sqlState, type Tx } from '../db/tx.ts';
import type { Stage } from './detail.ts';
import {
  type ClaimOptions,
  claimMarks,
  claimTheseMarks,
  deadLetterMarks,
  isFullClaim,
  lockShards,
  type Mark,
} from './marks.ts';

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
