import { setImmediate as nextTurn } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createLogger } from '../../../../src/observe/logger.ts';
import { Partitions } from '../../../../src/store/db/partitions.ts';
import { type Queryable, sql } from '../../../../src/store/db/tx.ts';
import { startPublisher } from '../../../../src/store/journal/publisher.ts';
import { readJournalHead } from '../../../../src/store/journal/read-journal.ts';
import { followJournal, type JournalBatch, type JournalTail } from '../../../../src/store/journal/tail.ts';
import { writeTrades } from '../../../../src/store/series/trades.ts';
import { aStoredMarket, type TestMarket } from '../../../factories/stored-market.ts';
import { eventually } from '../../../support/eventually.ts';
import { gate } from '../../../support/gate.ts';
import { publishPending } from '../../../support/journal.ts';
import { createTestDatabase, type TestDatabase } from '../../../support/postgres/database.ts';

const log = createLogger({ process: 'test', level: 'silent' });
const CLOCK = sql('test_clock', 'SELECT clock_timestamp() AS at');
const LAST = sql('test_last_head', 'SELECT turn, checked_at FROM journal_head ORDER BY turn DESC LIMIT 1');
const PUBLISHERS = sql(
  'test_publishing_sessions',
  `SELECT pid FROM pg_stat_activity WHERE application_name = 'oddswire-publisher' AND datname = current_database()`,
);
const TERMINATE = sql('test_terminate_publishing', 'SELECT pg_terminate_backend($1)');
const BLOCK_HEADS = sql('test_block_heads', 'LOCK TABLE journal_head IN SHARE ROW EXCLUSIVE MODE');
const OF_ANOTHER_DATABASE = sql(
  'test_head_of_another_database',
  `UPDATE journal_head SET origin = 'other' WHERE turn = (SELECT max(turn) FROM journal_head)`,
);
const OPEN_MINUTE = sql(
  'test_open_minute',
  `UPDATE journal_head SET closed_until = 0 WHERE turn = (SELECT max(turn) FROM journal_head)`,
);
/** So that no minute ends during a test. */
const CLOSED_AHEAD = sql(
  'test_closed_ahead',
  `UPDATE journal_head SET closed_until = closed_until + 3600 WHERE turn = (SELECT max(turn) FROM journal_head)`,
);

let test: TestDatabase;
let market: TestMarket;
const closers: (() => Promise<unknown>)[] = [];
beforeEach(async () => {
  test = await createTestDatabase({ poolSize: 20 });
  market = await aStoredMarket(test.db);
  const partitions = new Partitions(test.db);
  await partitions.ensureAroundNow('observation');
  await partitions.ensure('trade', [Date.now()]);
});
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
  await test.drop();
});

const clock = async (db: Queryable = test.db) => (await db.query<{ at: Date }>(CLOCK))[0]?.at ?? new Date(0);

async function store(tradeId: string, beforeCommit: () => Promise<unknown> = async () => undefined): Promise<void> {
  const outcomeId = market.outcomes[0]?.outcomeId ?? '';
  const trade = { tradeId, outcomeId, marketId: market.marketId, tsMs: Date.now(), price: '0.5', size: '1' };
  await test.db.transaction(async (tx) => {
    await writeTrades(tx, [trade] as never, 'USD');
    await beforeCommit();
  });
}

/** Publishes every mark, so that nothing waits. */
async function settle(): Promise<void> {
  await publishPending(test.db);
  await test.db.query(CLOSED_AHEAD);
}

function publish() {
  const publisher = startPublisher({ databaseUrl: test.url, log, retentionMinutes: 120, maxBytes: 1e9 });
  closers.push(() => publisher.stop());
  return publisher;
}

function follow(pollMs?: number): { tail: JournalTail; batches: JournalBatch[] } {
  const batches: JournalBatch[] = [];
  const tail = followJournal({ databaseUrl: test.url, pool: test.db, log, ...(pollMs !== undefined && { pollMs }) });
  tail.on((batch) => void batches.push(batch));
  closers.push(() => tail.close());
  return { tail, batches };
}

describe('the head of a read', () => {
  beforeEach(settle);
  const head = () => readJournalHead(test.db);
  const stored = async () => (await test.db.query<{ turn: bigint; checkedAt: Date }>(LAST))[0];

  it('has the time of the read when nothing waits, without a new head', async () => {
    const before = await stored();
    const from = await clock();
    const { checkedAt, readAt } = await head();
    expect(checkedAt.getTime()).toBeGreaterThanOrEqual(from.getTime());
    expect(checkedAt.getTime()).toBeLessThanOrEqual(readAt.getTime());
    expect(await stored()).toEqual(before);
  });

  it('has the time of the last claim while marks wait, and not those of a transaction in progress', async () => {
    await store('t-1', async () => {
      const from = await clock();
      expect((await head()).checkedAt.getTime()).toBeGreaterThanOrEqual(from.getTime());
    });
    expect((await head()).checkedAt).toEqual((await stored())?.checkedAt);
    await settle();
    const from = await clock();
    expect((await head()).checkedAt.getTime()).toBeGreaterThanOrEqual(from.getTime());
  });

  it('has the time of the last claim while a mark waits whose transaction was in progress then', async () => {
    const mayCommit = gate();
    const isWritten = gate();
    const writing = store('t-1', () => {
      isWritten.open();
      return mayCommit.opened;
    });
    await isWritten.opened;
    await publishPending(test.db);
    mayCommit.open();
    await writing;
    expect((await head()).checkedAt).toEqual((await stored())?.checkedAt);
  });

  it.each([
    ['of another database', OF_ANOTHER_DATABASE],
    ['before the candles of the last minute were closed', OPEN_MINUTE],
  ])('has the time of the last claim when the head is %s', async (_, change) => {
    await test.db.query(change);
    expect((await head()).checkedAt).toEqual((await stored())?.checkedAt);
    await settle();
    const from = await clock();
    expect((await head()).checkedAt.getTime()).toBeGreaterThanOrEqual(from.getTime());
  });
});

describe('the evidence of a tail', () => {
  it('stays fresh at rest without a claim, grows old when a mark waits and no publisher works, and is fresh after it', async () => {
    await settle();
    const { tail, batches } = follow(20);
    await eventually(
      async () => batches.filter(({ head }) => head.checkedAt >= (batches[0]?.head.readAt ?? new Date())).length,
      (fresh) => fresh > 20,
      { everyMs: 5 },
    );
    await store('t-1');
    const committedAt = await clock();
    await eventually(
      async () => tail.staleMs(),
      (ms) => ms > 1_000,
      { everyMs: 20 },
    );
    expect(tail.head?.checkedAt.getTime()).toBeLessThan(committedAt.getTime());
    const publisher = publish();
    await eventually(
      async () => tail.head?.checkedAt ?? committedAt,
      (at) => at > committedAt,
      { everyMs: 5 },
    );
    expect(batches.flatMap(({ changes }) => changes.map(({ body }) => body['trade_id']))).toContain('t-1');
    await publisher.stop();
  });

  it('never passes a commit that was not delivered, while writers commit and publishers stop, are killed and wait', async () => {
    await publishPending(test.db);
    const { tail, batches } = follow(1);
    const committed = new Map<string, Date>();
    let isOver = false;
    const writers = Array.from({ length: 3 }, async (_, writer) => {
      for (let n = 0; !isOver; n += 1) {
        const id = `t-${writer}-${n}`;
        await store(id, async () => {
          for (let turn = 0; turn < n % 7; turn += 1) await nextTurn();
        });
        committed.set(id, await clock());
        for (let turn = 0; turn < (n * 31) % 400; turn += 1) await nextTurn();
      }
    });
    const until = (count: number) =>
      eventually(
        async () => batches.flatMap(({ changes }) => changes).length,
        (found) => found >= count,
        { everyMs: 5 },
      );
    let delivered = 0;
    for (let round = 0; round < 6; round += 1) {
      const publisher = publish();
      await until(delivered + 5);
      if (round % 3 === 0) await publisher.stop();
      if (round % 3 === 1)
        for (const { pid } of await test.db.query<{ pid: number }>(PUBLISHERS)) await test.db.query(TERMINATE, [pid]);
      if (round % 3 === 2)
        await test.db.transaction(async (tx) => {
          await tx.query(BLOCK_HEADS);
          const from = committed.size;
          await eventually(
            async () => committed.size,
            (now) => now > from + 5,
            { everyMs: 5 },
          );
        });
      delivered = batches.flatMap(({ changes }) => changes).length;
    }
    isOver = true;
    await Promise.all(writers);
    const lastAt = await clock();
    await eventually(
      async () => tail.head?.checkedAt ?? lastAt,
      (at) => at > lastAt,
      { everyMs: 5 },
    );
    const known = new Set<unknown>();
    const passed: string[] = [];
    let fresh = 0;
    for (const { changes, head, upTo } of batches) {
      for (const { body } of changes) known.add(body['trade_id']);
      if (upTo < head.seq) continue;
      fresh += 1;
      // Both times are cut to milliseconds: of two equal ones, either may be the earlier.
      for (const [id, at] of committed) if (at < head.checkedAt && !known.has(id)) passed.push(id);
    }
    expect(passed).toEqual([]);
    expect(fresh).toBeGreaterThan(10);
    expect(known.size).toBe(committed.size);
  });
});
