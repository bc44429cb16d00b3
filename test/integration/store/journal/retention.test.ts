import pg from 'pg';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type Queryable, sessionQueryable, sql } from '../../../../src/store/db/tx.ts';
import { readJournalHead } from '../../../../src/store/journal/read-journal.ts';
import { journalPartitions, keepPartitions, pruneJournal } from '../../../../src/store/journal/retention.ts';
import { markMarkets } from '../../../../src/store/marks/publish-marks.ts';
import { aStoredMarket } from '../../../factories/stored-market.ts';
import { publishPending } from '../../../support/journal.ts';
import { createTestDatabase, type TestDatabase } from '../../../support/postgres/database.ts';

const MAKE = sql(
  'test_old_journal_partition',
  `SELECT m.at, create_journal_partition(m.at)
   FROM (SELECT date_trunc('milliseconds', clock_timestamp()) - $1::int * interval '1 minute' AS at) m`,
);
const FILL = sql(
  'test_old_changes',
  `INSERT INTO journal SELECT $2::int + n, $1::timestamptz, 'price', 'kalshi', 'm', 'o',
     json_build_object('filler', repeat(md5(n::text), 30)) FROM generate_series(1, 500) n`,
);
const MARKS = sql(
  'test_marks_by_slot',
  'SELECT slot::int AS slot, count(*)::int AS marks FROM publish_mark GROUP BY slot ORDER BY slot',
);
const OTHER_SLOT = `(extract(epoch FROM clock_timestamp())::bigint / 600 + 2) % 4`;

let test: TestDatabase;
let client: pg.Client;
let session: Queryable;
beforeEach(async () => {
  test = await createTestDatabase();
  client = new pg.Client({ connectionString: test.url });
  await client.connect();
  session = sessionQueryable(client);
  await keepPartitions(session);
});
afterEach(async () => {
  await client.end();
  await test.drop();
});

const ADVANCE = sql(
  'test_advance_head',
  `INSERT INTO journal_head SELECT h.turn + 1, h.epoch, h.origin, $1::bigint, h.oldest_seq, h.at, h.checked_at, h.closed_until, h.published,
     h.target, h.target_at, h.after_xid, h.after_id FROM (SELECT * FROM journal_head ORDER BY turn DESC LIMIT 1) h`,
);

async function aPartition(minutesAgo: number, firstSeq: number): Promise<void> {
  const [made] = await session.query<{ at: Date }>(MAKE, [minutesAgo]);
  await session.query(FILL, [made?.at.toISOString(), firstSeq]);
  await session.query(ADVANCE, [firstSeq + 500]);
}

const count = async () => (await journalPartitions(session)).length;

describe('pruneJournal', () => {
  it('drops the partitions that ended before the retention, and advances the oldest number', async () => {
    await aPartition(100, 0);
    await aPartition(60, 1_000);
    await aPartition(30, 2_000);
    expect(await readJournalHead(session)).toMatchObject({ oldestSeq: 1 });
    expect(await pruneJournal(session, { retentionMinutes: 45, maxBytes: 1e9 })).toMatchObject({
      dropped: [expect.any(String), expect.any(String)],
    });
    expect(await readJournalHead(session)).toMatchObject({ oldestSeq: 1_501 });
  });

  it('drops the oldest ended partitions while the journal is too large, and never the current one', async () => {
    await aPartition(60, 0);
    await aPartition(40, 1_000);
    const { bytes = 0 } = (await journalPartitions(session))[0] ?? {};
    expect(await pruneJournal(session, { retentionMinutes: 120, maxBytes: bytes * 1.5 + 200_000 })).toMatchObject({
      dropped: [expect.any(String)],
    });
    expect((await pruneJournal(session, { retentionMinutes: 120, maxBytes: 1 })).dropped).toHaveLength(1);
    expect(await count()).toBe(2);
  });

  it('keeps a partition that a reader holds, and drops it in a later run', async () => {
    await aPartition(60, 0);
    await test.db.transaction(async (tx) => {
      await tx.query(sql('test_hold_journal', 'SELECT count(*) FROM journal'));
      expect((await pruneJournal(session, { retentionMinutes: 10, maxBytes: 1e9 })).dropped).toEqual([]);
    });
    expect((await pruneJournal(session, { retentionMinutes: 10, maxBytes: 1e9 })).dropped).toHaveLength(1);
  });

  it('empties a slot of marks when all of its marks are published, and not before', async () => {
    const market = await aStoredMarket(test.db);
    await markMarkets(test.db, [market.pk]);
    await test.db.query(sql('test_move_slot', `UPDATE publish_mark SET slot = ${OTHER_SLOT}`));
    await pruneJournal(session, { retentionMinutes: 120, maxBytes: 1e9 });
    expect(await session.query(MARKS)).toMatchObject([{ marks: 1 }]);
    await publishPending(test.db);
    await pruneJournal(session, { retentionMinutes: 120, maxBytes: 1e9 });
    expect(await session.query(MARKS)).toEqual([]);
  });

  it('keeps the newest thousand heads', async () => {
    await session.query(
      sql(
        'test_many_heads',
        `INSERT INTO journal_head SELECT turn + n, epoch, origin, seq, oldest_seq, at, checked_at, closed_until, published
         FROM (SELECT * FROM journal_head ORDER BY turn DESC LIMIT 1) h, generate_series(1, 1500) n`,
      ),
    );
    await pruneJournal(session, { retentionMinutes: 120, maxBytes: 1e9 });
    expect(await session.query(sql('test_heads', 'SELECT count(*)::int AS heads FROM journal_head'))).toEqual([
      { heads: 1_001 },
    ]);
  });
});
