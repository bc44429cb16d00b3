import { asError } from '../domain/errors.ts';
import { scrubText } from '../domain/text.ts';
import {
  type ClaimOptions,
  claimMarks,
  claimTheseMarks,
  lockShard,
  type Mark,
  parkMarks,
  type Stage,
} from './marks.ts';
import { type Database, isDatabaseUnavailable, sqlState, type Tx } from './tx.ts';

/** What one stage does with claimed marks, inside the claiming transaction. What it returns is handed on after the commit. */
export type StageWork<T> = (tx: Tx, marks: readonly Mark[]) => Promise<T>;

export interface DrainResult<T> {
  /** Marks worked off. */
  claimed: number;
  parked: { marks: Mark[]; error: Error }[];
  results: T[];
}

/**
 * One claim of one shard: lock, claim, then read and write, in one transaction (DESIGN section 2). A batch that fails for
 * its content is split by key until the poison key stands alone, which is parked; everything else goes through.
 * Dying anywhere before the commit leaves every mark where it was.
 * @throws when the database is unavailable or the statement itself is broken: nothing is parked for that.
 */
export async function workShard<T>(
  db: Database,
  stage: Stage,
  shard: number,
  options: ClaimOptions,
  work: StageWork<T>,
): Promise<DrainResult<T>> {
  let claimed: Mark[] = [];
  try {
    const result = await db.transaction(async (tx) => {
      await lockShard(tx, stage, shard);
      claimed = await claimMarks(tx, stage, shard, options);
      return claimed.length === 0 ? undefined : await work(tx, claimed);
    });
    return { claimed: claimed.length, parked: [], results: result === undefined ? [] : [result] };
  } catch (error) {
    if (!isPoison(error) || claimed.length === 0) throw error;
    return splitAndWork(db, stage, shard, claimed, work, asError(error));
  }
}

async function splitAndWork<T>(
  db: Database,
  stage: Stage,
  shard: number,
  marks: readonly Mark[],
  work: StageWork<T>,
  failure: Error,
): Promise<DrainResult<T>> {
  const keys = [...new Set(marks.map((mark) => mark.key))];
  if (keys.length === 1) return park(db, stage, shard, marks, failure);
  const firstHalf = new Set(keys.slice(0, keys.length >> 1));
  const halves = [marks.filter((mark) => firstHalf.has(mark.key)), marks.filter((mark) => !firstHalf.has(mark.key))];
  const sum: DrainResult<T> = { claimed: 0, parked: [], results: [] };
  for (const half of halves) {
    const part = await workThese(db, stage, shard, half, work);
    sum.claimed += part.claimed;
    sum.parked.push(...part.parked);
    sum.results.push(...part.results);
  }
  return sum;
}

async function workThese<T>(
  db: Database,
  stage: Stage,
  shard: number,
  marks: readonly Mark[],
  work: StageWork<T>,
): Promise<DrainResult<T>> {
  const ids = marks.map((mark) => mark.id);
  let claimed: Mark[] = [];
  try {
    const result = await db.transaction(async (tx) => {
      await lockShard(tx, stage, shard);
      claimed = await claimTheseMarks(tx, stage, shard, ids);
      return claimed.length === 0 ? undefined : await work(tx, claimed);
    });
    return { claimed: claimed.length, parked: [], results: result === undefined ? [] : [result] };
  } catch (error) {
    if (!isPoison(error) || claimed.length === 0) throw error;
    return splitAndWork(db, stage, shard, claimed, work, asError(error));
  }
}

async function park<T>(
  db: Database,
  stage: Stage,
  shard: number,
  marks: readonly Mark[],
  error: Error,
): Promise<DrainResult<T>> {
  const parked = await db.transaction(async (tx) => {
    await lockShard(tx, stage, shard);
    const claimed = await claimTheseMarks(
      tx,
      stage,
      shard,
      marks.map((mark) => mark.id),
    );
    await parkMarks(tx, stage, shard, claimed, scrubText(`${error.name}: ${error.message}`).slice(0, 500));
    return claimed;
  });
  return { claimed: parked.length, parked: parked.length === 0 ? [] : [{ marks: parked, error }], results: [] };
}

/**
 * Whether the content of the batch is to blame: bad data (class 22), a violated constraint (23), or an error thrown by our
 * own rules. A missing table, a lost connection, a full disk or a lock time-out would hit every batch alike.
 */
function isPoison(error: unknown): boolean {
  if (isDatabaseUnavailable(error)) return false;
  const state = sqlState(error);
  return state === undefined || /^2[123]/.test(state);
}
