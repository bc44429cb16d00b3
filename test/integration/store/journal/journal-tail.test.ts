import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createLogger, type Logger } from '../../../../src/observe/logger.ts';
import { type Queryable, sql } from '../../../../src/store/db/tx.ts';
import { followJournal, type JournalBatch, type JournalTail } from '../../../../src/store/journal/tail.ts';
import { eventually } from '../../../support/eventually.ts';
import { appendChanges, type NewChange } from '../../../support/journal.ts';
import { createTestDatabase, type TestDatabase } from '../../../support/postgres/database.ts';
import { startTcpProxy } from '../../../support/processes/tcp-proxy.ts';
import { capturedLog } from '../../workers/worker-harness.ts';

const log = createLogger({ process: 'test', level: 'silent' });
const LISTENERS = sql(
  'test_tails',
  `SELECT pid FROM pg_stat_activity WHERE application_name = 'oddswire-journal-tail' AND datname = current_database()`,
);
const DROP_CHANGES = sql('test_drop_changes', 'DELETE FROM journal WHERE seq <= 2');
const OTHER_EPOCH = sql(
  'test_other_epoch',
  `INSERT INTO journal_head (turn, epoch, origin, seq, oldest_seq, at, checked_at, closed_until, published)
   SELECT turn + 1, gen_random_uuid(), origin, 10, 10, at, checked_at, closed_until, published FROM journal_head ORDER BY turn DESC LIMIT 1`,
);
const TERMINATE = sql('test_terminate_tail', 'SELECT pg_terminate_backend($1)');

let test: TestDatabase;
let tail: JournalTail | undefined;
let batches: JournalBatch[];
beforeEach(async () => {
  test = await createTestDatabase();
  batches = [];
});
afterEach(async () => {
  await tail?.close();
  await test.drop();
});

function change(n: number): NewChange {
  return { kind: 'trade', venue: 'kalshi', marketId: 'm', outcomeId: 'o', body: { trade_id: `t-${n}` } };
}

/** An address where no server listens: the tail reads by its pool. */
const NO_SESSION = 'postgres://nobody@127.0.0.1:1/nothing';

async function follow(
  options: { databaseUrl?: string; pool?: Queryable; pollMs?: number; batch?: number; log?: Logger } = {},
): Promise<JournalTail> {
  const made = followJournal({ databaseUrl: test.url, pool: test.db, log, ...options });
  tail = made;
  made.on((batch) => void batches.push(batch));
  await eventually(
    async () => made.head,
    (head) => head !== undefined,
    { everyMs: 5 },
  );
  return made;
}

/** Resolves when the session of the tail listens. */
const listening = () =>
  eventually(
    () => test.db.query(LISTENERS),
    (found) => found.length === 1,
    { everyMs: 5 },
  );
const seen = () => batches.flatMap(({ changes }) => changes.map(({ seq }) => seq));
const until = (seq: number) =>
  eventually(
    async () => seen(),
    (seqs) => seqs.includes(seq),
    { everyMs: 5 },
  );

describe('followJournal', () => {
  it('delivers every later change once and in order, in batches of the given size', async () => {
    await appendChanges(test.db, [change(1)]);
    await follow({ batch: 3 });
    await appendChanges(test.db, [2, 3, 4, 5, 6, 7, 8].map(change));
    await appendChanges(test.db, [change(9)]);
    await until(9);
    expect(seen()).toEqual([2, 3, 4, 5, 6, 7, 8, 9]);
    expect(Math.max(...batches.map(({ changes }) => changes.length))).toBeLessThanOrEqual(3);
    expect(tail?.position).toBe(9);
  });

  it('delivers the same by its pool while it has no session', async () => {
    await follow({ databaseUrl: NO_SESSION, pollMs: 20, batch: 2 });
    await appendChanges(test.db, [1, 2, 3, 4, 5].map(change));
    await until(5);
    expect(seen()).toEqual([1, 2, 3, 4, 5]);
    expect(Math.max(...batches.map(({ changes }) => changes.length))).toBeLessThanOrEqual(2);
  });

  it('reads a change at its notification', async () => {
    await follow({ pollMs: 600_000 });
    await eventually(
      () => test.db.query(LISTENERS),
      (found) => found.length === 1,
      { everyMs: 5 },
    );
    await eventually(
      async () => batches.length,
      (count) => count >= 2,
      { everyMs: 5 },
    );
    await appendChanges(test.db, [change(1)]);
    await until(1);
  });

  it('names the changes that a listener failed at with its next batch, and to no other listener', async () => {
    const taken: JournalBatch[] = [];
    const captured = capturedLog();
    await follow({ batch: 2, pollMs: 20, log: captured.log });
    tail?.on((batch) => {
      if (batch.changes.some(({ seq }) => seq === 2 || seq === 3)) throw new Error('unexpected body');
      taken.push(batch);
    });
    await appendChanges(test.db, [change(1)]);
    await until(1);
    await appendChanges(test.db, [2, 3, 4, 5, 6].map(change));
    await until(6);
    const covered = taken.flatMap(({ missed, changes }) => [
      ...Array.from({ length: missed ? missed.to + 1 - missed.from : 0 }, (_, at) => (missed?.from ?? 0) + at),
      ...changes.map(({ seq }) => seq),
    ]);
    expect(covered).toEqual([1, 2, 3, 4, 5, 6]);
    expect(taken.filter(({ missed }) => missed).map(({ missed }) => missed?.from)).toEqual([2]);
    expect(batches.some(({ missed }) => missed)).toBe(false);
    const line = captured.lines.find((each) => each.includes('a listener of the journal failed'));
    expect(JSON.parse(line ?? '{}')).toMatchObject({ from: 2, err: { message: 'unexpected body' } });
  });

  it('delivers the changes of the time without its connection, each once', async () => {
    await follow();
    await appendChanges(test.db, [change(1)]);
    await until(1);
    const [listener] = await test.db.query<{ pid: number }>(LISTENERS);
    await test.db.query(TERMINATE, [listener?.pid]);
    await appendChanges(test.db, [change(2), change(3)]);
    await until(3);
    await eventually(
      () => test.db.query<{ pid: number }>(LISTENERS),
      (found) => found.some(({ pid }) => pid !== listener?.pid),
    );
    await appendChanges(test.db, [change(4)]);
    await until(4);
    expect(seen()).toEqual([1, 2, 3, 4]);
  });

  it('reports its age while it cannot read, and continues behind its position', async () => {
    let isCut = false;
    const pool: Queryable = {
      query: (statement, values) => (isCut ? Promise.reject(new Error('cut')) : test.db.query(statement, values ?? [])),
    };
    const made = await follow({ databaseUrl: NO_SESSION, pool, pollMs: 20 });
    await appendChanges(test.db, [change(1)]);
    await until(1);
    isCut = true;
    await appendChanges(test.db, [change(2)]);
    await eventually(
      async () => made.staleMs(),
      (ms) => ms > 300,
      { everyMs: 20 },
    );
    expect(seen()).toEqual([1]);
    isCut = false;
    await until(2);
    expect(seen()).toEqual([1, 2]);
  });

  it('reads by its pool, without a failed read, while its session is silent', async () => {
    const proxy = await startTcpProxy(test.url);
    const { log: captured, lines } = capturedLog();
    await follow({ databaseUrl: proxy.url, pollMs: 20, log: captured });
    await listening();
    await appendChanges(test.db, [change(1)]);
    await until(1);
    proxy.hold();
    await appendChanges(test.db, [change(2)]);
    await until(2);
    expect(seen()).toEqual([1, 2]);
    expect(lines.join('')).not.toContain('journal not read');
    proxy.resume();
    await tail?.close();
    await proxy.close();
  });

  it('names the changes that were dropped before its session could read them', async () => {
    await follow();
    await listening();
    await test.db.transaction(async (tx) => {
      await appendChanges(tx, [1, 2, 3, 4].map(change));
      await tx.query(DROP_CHANGES);
    });
    await until(4);
    expect(batches.find(({ missed }) => missed)).toMatchObject({ missed: { from: 1, to: 2 } });
    expect(seen()).toEqual([3, 4]);
  });

  it('continues at the head of another epoch, whose numbers it does not compare', async () => {
    await follow();
    await listening();
    await appendChanges(test.db, [1, 2, 3].map(change));
    await until(3);
    await test.db.query(OTHER_EPOCH);
    await eventually(
      async () => tail?.position,
      (position) => position === 10,
      { everyMs: 5 },
    );
    await appendChanges(test.db, [change(4)]);
    await eventually(
      async () => seen(),
      (seqs) => seqs.length === 4,
      { everyMs: 5 },
    );
    expect(seen()).toEqual([1, 2, 3, 11]);
  });

  it('does not take a head of a later clock for a confirmation', async () => {
    const made = await follow({ pollMs: 20 });
    await test.db.query(
      sql(
        'test_later_head',
        `INSERT INTO journal_head SELECT turn + 1, epoch, origin, seq, oldest_seq, at, clock_timestamp() + interval '1 hour', closed_until, published
         FROM (SELECT * FROM journal_head ORDER BY turn DESC LIMIT 1) h`,
      ),
    );
    await eventually(
      async () => made.staleMs(),
      (ms) => ms > 3_000_000,
      { everyMs: 20 },
    );
  });

  it('names the changes that were dropped before it could read them', async () => {
    let isCut = false;
    const pool: Queryable = {
      query: (statement, values) => (isCut ? Promise.reject(new Error('cut')) : test.db.query(statement, values ?? [])),
    };
    await follow({ databaseUrl: NO_SESSION, pool, pollMs: 20 });
    isCut = true;
    await appendChanges(test.db, [1, 2, 3, 4].map(change));
    await test.db.query(DROP_CHANGES);
    isCut = false;
    await until(4);
    expect(batches.find(({ missed }) => missed)).toMatchObject({ missed: { from: 1, to: 2 } });
    expect(seen()).toEqual([3, 4]);
  });
});
