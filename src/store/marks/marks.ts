import { SHARDS, shardOf } from '../../domain/values/shard.ts';
import { type Queryable, sql, sqlPlannedPerCall, type Tx } from '../db/tx.ts';
import { insertMarksSql, MARK_CHANGED_MARKETS_SQL, MARK_RESULTS_AGAIN_SQL, type Stage } from './detail.ts';

export interface Mark {
  id: bigint;
  key: bigint;
  /** See src/store/marks/detail.ts. */
  detail: bigint;
}

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

/** Behind every detail. */
export const MAX_BIGINT = 9_223_372_036_854_775_807n;

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

const RELEASE_DEAD_LETTERS = sql(
  'release_dead_letters',
  `WITH released AS (DELETE FROM parked_mark WHERE stage = $1 RETURNING key, detail)
   ${insertMarksSql('$1', 'SELECT key, detail FROM released')} RETURNING id`,
);

/** Releases the dead-lettered marks of a stage for another attempt; returns their number. */
export async function releaseDeadLetters(db: Queryable, stage: Stage): Promise<number> {
  return (await db.query(RELEASE_DEAD_LETTERS, [stage])).length;
}
