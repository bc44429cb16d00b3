import { beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { type Queryable, sql, type Tx } from '../../../../src/store/db/tx.ts';
import { stageStates } from '../../../../src/store/marks/backlog.ts';
import { insertMarks, type Mark, releaseDeadLetters, waitingShards } from '../../../../src/store/marks/marks.ts';
import { workShards } from '../../../../src/store/marks/stage.ts';
import { gate } from '../../../support/gate.ts';
import { createTestDatabase, useTestDatabase } from '../../../support/postgres/database.ts';
import { advisoryWaiters } from '../../../support/postgres/postgres-lock.ts';

const STAGE = 'fold-candles' as const;
const SHARD = 1;
const ALL = { limit: 100, order: 'oldest' as const };
const CLEAR = sql('test_clear_marks', 'TRUNCATE mark, parked_mark');
const ADD_FACT = sql('test_add_fact', 'INSERT INTO fact (key, value) VALUES ($1, $2)');
/** Rows of `mark` that this transaction read, by index or sequential scan. */
const MARKS_READ = sql(
  'test_marks_read',
  `SELECT (seq_tup_read + idx_tup_fetch)::int AS read FROM pg_stat_xact_user_tables WHERE relname = 'mark'`,
);
const READ_FACTS = sql('test_read_facts', 'SELECT value FROM fact WHERE key = $1 ORDER BY value');

const test = useTestDatabase();
beforeAll(() => test.db.query(sql('test_create_fact', 'CREATE TABLE fact (key bigint, value int)')));
beforeEach(async () => {
  await test.db.query(CLEAR);
  await test.db.query(sql('test_clear_facts', 'TRUNCATE fact'));
});

async function addFact(tx: Tx, key: bigint, value: number): Promise<void> {
  await tx.query(ADD_FACT, [key, value]);
  await insertMarks(tx, STAGE, [{ key, detail: BigInt(value) }]);
}

async function factsOf(tx: Tx, key: bigint): Promise<number[]> {
  return (await tx.query<{ value: number }>(READ_FACTS, [key])).map((row) => row.value);
}

/** The pending marks of the stage. */
async function backlog(db: Queryable): Promise<{ waiting: number; deadLetters: number } | undefined> {
  const [state] = await stageStates(db, [STAGE]);
  return state && { waiting: state.waiting, deadLetters: state.deadLetters };
}

describe('workShards', () => {
  it('deletes marks only with the commit of their work', async () => {
    await test.db.transaction((tx) => addFact(tx, 1n, 10));
    await expect(
      workShards(test.db, STAGE, [SHARD], ALL, async () =>
        Promise.reject(Object.assign(new Error('gone'), { code: '57P01' })),
      ),
    ).rejects.toThrow('gone');
    expect(await waitingShards(test.db, STAGE)).toEqual([SHARD]);
    const done = await workShards(test.db, STAGE, [SHARD], ALL, async (tx) => factsOf(tx, 1n));
    expect(done).toMatchObject({ claimed: 1, results: [[10]] });
    expect(await waitingShards(test.db, STAGE)).toEqual([]);
  });

  it('reads a fact that commits between claim and read, or leaves its mark for the next claim', async () => {
    await test.db.transaction((tx) => addFact(tx, 1n, 10));
    const seen = await workShards(test.db, STAGE, [SHARD], ALL, async (tx) => {
      await test.db.transaction((other) => addFact(other, 1n, 20));
      return factsOf(tx, 1n);
    });
    expect(seen.results).toEqual([[10, 20]]);
    const after = await workShards(test.db, STAGE, [SHARD], ALL, async (tx) => factsOf(tx, 1n));
    expect(after).toMatchObject({ claimed: 1, results: [[10, 20]] });
  });

  it('processes a fact that commits after the read in a later claim', async () => {
    await test.db.transaction((tx) => addFact(tx, 1n, 10));
    const inserted = gate();
    const mayCommit = gate();
    const late = test.db.transaction(async (tx) => {
      await addFact(tx, 1n, 20);
      inserted.open();
      await mayCommit.opened;
    });
    await inserted.opened;
    const first = await workShards(test.db, STAGE, [SHARD], ALL, async (tx) => factsOf(tx, 1n));
    expect(first.results).toEqual([[10]]);
    mayCommit.open();
    await late;
    const second = await workShards(test.db, STAGE, [SHARD], ALL, async (tx) => factsOf(tx, 1n));
    expect(second).toMatchObject({ claimed: 1, results: [[10, 20]] });
  });

  it('serializes two claims of a shard: the second sees the writes of the first', async () => {
    await test.db.transaction((tx) => addFact(tx, 1n, 1));
    const claimed = gate();
    const mayCommit = gate();
    const order: string[] = [];
    const first = workShards(test.db, STAGE, [SHARD], ALL, async (tx) => {
      await tx.query(ADD_FACT, [1n, 2]);
      claimed.open();
      await mayCommit.opened;
      order.push('first');
    });
    await claimed.opened;
    await test.db.transaction((tx) => insertMarks(tx, STAGE, [{ key: 1n, detail: 3n }]));
    const second = workShards(test.db, STAGE, [SHARD], ALL, async (tx) => {
      order.push('second');
      return factsOf(tx, 1n);
    });
    await advisoryWaiters(test.db, 1);
    mayCommit.open();
    await first;
    expect((await second).results).toEqual([[1, 2]]);
    expect(order).toEqual(['first', 'second']);
  });

  it('claims one shard without waiting for a claim of another', async () => {
    await test.db.transaction((tx) =>
      insertMarks(tx, STAGE, [
        { key: 1n, detail: 0n },
        { key: 2n, detail: 0n },
      ]),
    );
    const done = await workShards(test.db, STAGE, [1], ALL, async () =>
      workShards(test.db, STAGE, [2], ALL, async (_tx, marks) => marks.length),
    );
    expect(done.results[0]).toMatchObject({ claimed: 1, results: [1] });
  });

  it('claims several shards at once and divides the limit among them', async () => {
    const marks = [1n, 1n, 1n, 2n, 3n, 17n].map((key, n) => ({ key, detail: BigInt(n) }));
    await test.db.transaction((tx) => insertMarks(tx, STAGE, marks));
    const claim = { limit: 4, order: 'newest' } as const;
    const claimed = await workShards(test.db, STAGE, [2, 1], claim, async (_tx, some) =>
      some.map(({ detail }) => detail),
    );
    expect(claimed).toMatchObject({ claimed: 3, results: [[2n, 3n, 5n]] });
    expect(await waitingShards(test.db, STAGE)).toEqual([1, 3]);
  });

  it('claims several shards in any order without a deadlock', async () => {
    await test.db.transaction((tx) =>
      insertMarks(
        tx,
        STAGE,
        Array.from({ length: 16 }, (_, n) => ({ key: BigInt(n), detail: 0n })),
      ),
    );
    const orders = [[...Array(16).keys()], [...Array(16).keys()].reverse()];
    const done = await Promise.all(
      Array.from({ length: 12 }, (_, n) =>
        workShards(
          test.db,
          STAGE,
          orders[n % 2] ?? [],
          { limit: 16, order: 'oldest' },
          async (_tx, some) => some.length,
        ),
      ),
    );
    expect(done.map(({ claimed }) => claimed).sort((a, b) => b - a)).toEqual([16, ...Array(11).fill(0)]);
  });

  it('reads only the claimed part of the backlog, with any planner statistics', async () => {
    const many = Array.from({ length: 100_000 }, (_, n) => ({ key: BigInt(n), detail: 0n }));
    await test.db.transaction((tx) => insertMarks(tx, STAGE, many));
    for (const order of ['oldest', 'newest'] as const) {
      const done = await workShards(test.db, STAGE, [SHARD], { limit: 10, order }, (tx) =>
        tx.query<{ read: number }>(MARKS_READ),
      );
      expect(done).toMatchObject({ claimed: 10 });
      expect(done.results[0]?.[0]?.read).toBeLessThan(100);
    }
  });

  it('looks for pending shards by the index, also in a session that knows the table empty', async () => {
    await test.db.query(sql('test_vacuum_marks', 'VACUUM (ANALYZE) mark'));
    await test.db.transaction(async (tx) => {
      for (let look = 0; look < 8; look += 1) expect(await waitingShards(tx, STAGE)).toEqual([]);
      const many = Array.from({ length: 100_000 }, (_, n) => ({ key: BigInt(n), detail: 0n }));
      await insertMarks(tx, STAGE, many);
      const [before] = await tx.query<{ read: number }>(MARKS_READ);
      expect(await waitingShards(tx, STAGE)).toHaveLength(16);
      const [after] = await tx.query<{ read: number }>(MARKS_READ);
      expect((after?.read ?? 0) - (before?.read ?? 0)).toBeLessThan(100);
    });
  });

  it('leaves the marks pending when the claiming process loses its connection', async () => {
    await test.db.transaction((tx) => addFact(tx, 1n, 10));
    const claim = workShards(test.db, STAGE, [SHARD], ALL, async (tx, marks) => {
      expect(marks).toHaveLength(1);
      const [row] = await tx.query<{ pid: number }>(sql('test_pid', 'SELECT pg_backend_pid() AS pid'));
      await test.db.query(sql('test_kill', 'SELECT pg_terminate_backend($1)'), [row?.pid]);
      await tx.query(sql('test_one', 'SELECT 1'));
    });
    await expect(claim).rejects.toThrow();
    const done = await workShards(test.db, STAGE, [SHARD], ALL, async (tx) => factsOf(tx, 1n));
    expect(done).toMatchObject({ claimed: 1, results: [[10]] });
  });

  it('claims the marks of a stopped process when Postgres ends its session', async () => {
    const frozen = await createTestDatabase({ idleInTransactionMs: 1_000 });
    try {
      await frozen.db.transaction((tx) => insertMarks(tx, STAGE, [{ key: 1n, detail: 1n }]));
      const thaw = gate();
      const holding = gate();
      const stopped = workShards(frozen.db, STAGE, [SHARD], ALL, async (tx) => {
        holding.open();
        await thaw.opened;
        return tx.query(sql('test_thawed', 'SELECT 1'));
      });
      const outcome = expect(stopped).rejects.toThrow();
      await holding.opened;
      // This claim waits for the shard until Postgres ends the stopped session; then it finds the mark unchanged.
      const done = await workShards(frozen.db, STAGE, [SHARD], ALL, async (_tx, marks) => marks.length);
      expect(done).toMatchObject({ claimed: 1, results: [1] });
      thaw.open();
      await outcome;
      expect(await backlog(frozen.db)).toEqual({ waiting: 0, deadLetters: 0 });
    } finally {
      await frozen.drop();
    }
  });

  it('leaves marks that are not ripe', async () => {
    await test.db.transaction((tx) =>
      insertMarks(tx, STAGE, [
        { key: 1n, detail: 60n },
        { key: 1n, detail: 120n },
      ]),
    );
    const claim = { ...ALL, minuteBefore: 120n };
    const done = await workShards(test.db, STAGE, [SHARD], claim, async (_tx, marks) =>
      marks.map((mark) => mark.detail),
    );
    expect(done.results).toEqual([[60n]]);
    expect(await waitingShards(test.db, STAGE, 120n)).toEqual([]);
    expect(await waitingShards(test.db, STAGE, 121n)).toEqual([SHARD]);
  });
});

describe('a poison key in workShards', () => {
  const keys = [1n, 17n, 33n, 49n, 65n];
  const failOn = (poison: bigint) => async (tx: Tx, marks: readonly Mark[]) => {
    for (const mark of marks) {
      await tx.query(ADD_FACT, [mark.key, mark.key === poison ? '99999999999' : 1]);
    }
    return marks.map((mark) => mark.key);
  };

  it('is dead-lettered with its reason while other keys are processed', async () => {
    await test.db.transaction((tx) =>
      insertMarks(
        tx,
        STAGE,
        keys.map((key) => ({ key, detail: 0n })),
      ),
    );
    const done = await workShards(test.db, STAGE, [SHARD], ALL, failOn(33n));
    expect(done.claimed).toBe(5);
    expect(done.deadLettered.flatMap(({ marks }) => marks.map((mark) => mark.key))).toEqual([33n]);
    expect(done.results.flat().sort()).toEqual([1n, 17n, 49n, 65n]);
    expect(await backlog(test.db)).toEqual({ waiting: 0, deadLetters: 1 });
    const [deadLetter] = await test.db.query<{ error: string }>(
      sql('test_dead_letter', 'SELECT error FROM parked_mark'),
    );
    expect(deadLetter?.error).toContain('out of range');
  });

  it('is processed again after its release', async () => {
    await test.db.transaction((tx) => insertMarks(tx, STAGE, [{ key: 33n, detail: 0n }]));
    await workShards(test.db, STAGE, [SHARD], ALL, failOn(33n));
    expect(await releaseDeadLetters(test.db, STAGE)).toBe(1);
    const done = await workShards(test.db, STAGE, [SHARD], ALL, failOn(0n));
    expect(done).toMatchObject({ claimed: 1, deadLettered: [] });
  });

  it('is not dead-lettered when the connection fails between its last statement and the commit', async () => {
    await test.db.transaction((tx) => insertMarks(tx, STAGE, [{ key: 33n, detail: 0n }]));
    const cut = workShards(test.db, STAGE, [SHARD], ALL, async (tx) => {
      const [row] = await tx.query<{ pid: number }>(sql('test_own_pid', 'SELECT pg_backend_pid() AS pid'));
      await test.db.query(sql('test_terminate', 'SELECT pg_terminate_backend($1, 5000)'), [row?.pid]);
    });
    await expect(cut).rejects.toThrow();
    expect(await backlog(test.db)).toEqual({ waiting: 1, deadLetters: 0 });
  });

  it('is processed at the second attempt when it fails only once', async () => {
    await test.db.transaction((tx) => insertMarks(tx, STAGE, [{ key: 33n, detail: 0n }]));
    let tries = 0;
    const done = await workShards(test.db, STAGE, [SHARD], ALL, async () => {
      tries += 1;
      if (tries === 1) throw new Error('a passing fault');
    });
    expect(done).toMatchObject({ claimed: 1, deadLettered: [] });
  });

  it('is not dead-lettered for a broken statement or an unavailable database', async () => {
    await test.db.transaction((tx) =>
      insertMarks(
        tx,
        STAGE,
        keys.map((key) => ({ key, detail: 0n })),
      ),
    );
    const broken = workShards(test.db, STAGE, [SHARD], ALL, (tx) =>
      tx.query(sql('test_broken', 'SELECT * FROM nowhere')),
    );
    await expect(broken).rejects.toThrow('nowhere');
    expect(await backlog(test.db)).toEqual({ waiting: 5, deadLetters: 0 });
  });
});
