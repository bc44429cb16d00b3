import { expect } from 'vitest';
import { ALL_SHARDS } from '../../src/domain/values/shard.ts';
import { type Database, sql, type Tx } from '../../src/store/db/tx.ts';
import type { Stage } from '../../src/store/marks/detail.ts';
import type { Mark } from '../../src/store/marks/marks.ts';
import { type ClaimOptions, type StageWork, workShards } from '../../src/store/marks/stage.ts';

/** Processes all ripe marks of a stage, dead-lettering none; returns the result of each transaction. */
export async function drain<T>(db: Database, stage: Stage, claim: ClaimOptions, work: StageWork<T>): Promise<T[]> {
  const results: T[] = [];
  for (;;) {
    const done = await workShards(db, stage, ALL_SHARDS, claim, work);
    expect(done.deadLettered).toEqual([]);
    if (done.claimed === 0) return results;
    results.push(...done.results);
  }
}

const CLAIM_ALL = sql(
  'test_claim_all',
  `WITH claimed AS (DELETE FROM mark WHERE stage = $1 RETURNING id, key, detail) SELECT * FROM claimed ORDER BY id`,
);

/** Claims every mark of a stage inside a transaction that a test holds open, without the lock of the shards. */
export function claimAll(tx: Tx, stage: Stage): Promise<Mark[]> {
  return tx.query<Mark>(CLAIM_ALL, [stage]);
}
