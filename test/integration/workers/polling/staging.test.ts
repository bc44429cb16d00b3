import { beforeEach, expect, it } from 'vitest';
import { sql } from '../../../../src/store/db/tx.ts';
import { insertMarks, waitingShards } from '../../../../src/store/marks/marks.ts';
import { runStage } from '../../../../workers/process/staging.ts';
import { useTestDatabase } from '../../../support/postgres/database.ts';
import { jobContext, testConfig } from '../worker-harness.ts';

const STAGE = 'fold-candles' as const;
/** Three keys of each shard. */
const CLAIM = { limit: 48, order: 'oldest' } as const;
/** Longer than any test. */
const FOR_EVER_MS = 600_000;

const test = useTestDatabase();
beforeEach(async () => {
  await test.db.query(sql('test_clear_marks', 'TRUNCATE mark'));
});

/** Inserts one mark in each of these shards. */
async function mark(...keys: bigint[]): Promise<void> {
  await test.db.transaction((tx) =>
    insertMarks(
      tx,
      STAGE,
      keys.map((key) => ({ key, detail: 0n })),
    ),
  );
}

const context = (deadline?: AbortSignal) =>
  jobContext({ db: test.db, config: testConfig(test.url), ...(deadline && { deadline }) });

it('runStage claims only the shards of its lane, in one claim', async () => {
  await mark(1n, 5n, 9n, 13n, 2n);
  const claims: bigint[][] = [];
  const report = await runStage(context(), {
    stage: STAGE,
    lane: 1,
    claim: CLAIM,
    work: async (_tx, marks) => void claims.push(marks.map(({ key }) => key)),
  });
  expect(claims).toEqual([[1n, 5n, 9n, 13n]]);
  expect(report).toEqual({ claimed: 4, parked: 0 });
  expect(await waitingShards(test.db, STAGE)).toEqual([2]);
});

it('runStage does not gather during a backlog, of one shard or of many', async () => {
  await mark(...Array<bigint>(6).fill(3n));
  const claims: number[] = [];
  await runStage(context(), {
    stage: STAGE,
    claim: CLAIM,
    gatherMs: FOR_EVER_MS,
    work: async (_tx, marks) => void claims.push(marks.length),
  });
  expect(claims).toEqual([3, 3]);
});

it('runStage processes marks that arrive during its work and its pause', async () => {
  await mark(3n);
  const claims: number[] = [];
  await runStage(context(), {
    stage: STAGE,
    claim: CLAIM,
    gatherMs: 1,
    async work(_tx, marks) {
      claims.push(marks.length);
      // A writer commits during the work on this claim.
      if (claims.length === 1) await mark(3n, 5n);
    },
  });
  expect(claims).toEqual([1, 2]);
  expect(await waitingShards(test.db, STAGE)).toEqual([]);
});

it('runStage ends its pause when the process stops', async () => {
  await mark(3n);
  const stop = new AbortController();
  const report = await runStage(context(stop.signal), {
    stage: STAGE,
    claim: CLAIM,
    gatherMs: FOR_EVER_MS,
    work: async () => 'worked',
    onDone: () => stop.abort(),
  });
  expect(report).toEqual({ claimed: 1, parked: 0 });
});
