import { asError } from '../../domain/values/errors.ts';
import { scrubText } from '../../domain/values/text.ts';
import { type Database, isContentRefused, isDatabaseUnavailable, sqlState, type Tx } from '../db/tx.ts';
import {
  type ClaimOptions,
  claimMarks,
  claimTheseMarks,
  isFullClaim,
  lockShards,
  type Mark,
  parkMarks,
  type Stage,
} from './marks.ts';

/** What one stage does with claimed marks, inside the claiming transaction. What it returns is handed on after the commit. */
export type StageWork<T> = (tx: Tx, marks: readonly Mark[]) => Promise<T>;

interface DrainResult<T> {
  /** Marks worked off. */
  claimed: number;
  /** Whether more of them may wait: a shard gave as many as one claim takes of it. */
  isFull: boolean;
  parked: { marks: Mark[]; error: Error }[];
  results: T[];
}

/** Shards of a stage, and what to do with their marks. */
interface Target<T> {
  db: Database;
  stage: Stage;
  shards: readonly number[];
  work: StageWork<T>;
}

/**
 * One claim of some shards: lock, claim, then read and write, in one transaction (DESIGN section 2). A batch that fails for
 * its content is split by key until the poison key stands alone, which is tried once more and then parked; everything else
 * goes through. Dying anywhere before the commit leaves every mark where it was.
 * @throws when the database is unavailable or the statement itself is broken: nothing is parked for that.
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

/** What became of marks that were claimed. */
type Worked<T> = Omit<DrainResult<T>, 'isFull'>;

/** Works the claimed marks, or says which marks failed for their content. */
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
    return { claimed: claimed.length, parked: [], results: result === undefined ? [] : [result] };
  } catch (error) {
    if (!isPoison(error) || claimed.length === 0) throw error;
    return { failed: claimed, error: asError(error) };
  }
}

async function splitAndWork<T>(target: Target<T>, failed: readonly Mark[]): Promise<Worked<T>> {
  const keys = [...new Set(failed.map((mark) => mark.key))];
  const firstHalf = new Set(keys.slice(0, Math.ceil(keys.length / 2)));
  const halves = [failed.filter((mark) => firstHalf.has(mark.key)), failed.filter((mark) => !firstHalf.has(mark.key))];
  const sum: Worked<T> = { claimed: 0, parked: [], results: [] };
  for (const half of halves.filter((marks) => marks.length > 0)) {
    const part = await workThese(target, half);
    sum.claimed += part.claimed;
    sum.parked.push(...part.parked);
    sum.results.push(...part.results);
  }
  return sum;
}

async function workThese<T>(target: Target<T>, marks: readonly Mark[]): Promise<Worked<T>> {
  const attempt = await claimAndWork(target, (tx) => claimTheseMarks(tx, target.stage, target.shards, idsOf(marks)));
  if (!('failed' in attempt)) return attempt;
  const isAlone = new Set(attempt.failed.map((mark) => mark.key)).size === 1;
  return isAlone ? park(target, attempt.failed, attempt.error) : splitAndWork(target, attempt.failed);
}

async function park<T>(target: Target<T>, marks: readonly Mark[], error: Error): Promise<Worked<T>> {
  const { db, stage, shards } = target;
  const parked = await db.transaction(async (tx) => {
    await lockShards(tx, stage, shards);
    const claimed = await claimTheseMarks(tx, stage, shards, idsOf(marks));
    await parkMarks(tx, stage, claimed, scrubText(`${error.name}: ${error.message}`).slice(0, 500));
    return claimed;
  });
  return { claimed: parked.length, parked: parked.length === 0 ? [] : [{ marks: parked, error }], results: [] };
}

function idsOf(marks: readonly Mark[]): bigint[] {
  return marks.map((mark) => mark.id);
}

/**
 * Whether the content of the batch is to blame: Postgres refused it, or one of our own rules threw. A missing table, a lost
 * connection, a full disk or a lock time-out would hit every batch alike.
 */
function isPoison(error: unknown): boolean {
  if (isDatabaseUnavailable(error)) return false;
  return sqlState(error) === undefined || isContentRefused(error);
}
