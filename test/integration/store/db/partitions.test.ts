import pg from 'pg';
import { beforeEach, describe, expect, it } from 'vitest';
import {
  listPartitions,
  type PartitionedTable,
  Partitions,
  partitionStartMs,
} from '../../../../src/store/db/partitions.ts';
import { sql } from '../../../../src/store/db/tx.ts';
import { writeTrades } from '../../../../src/store/series/trades.ts';
import { aTrade } from '../../../factories/trades.ts';
import { eventually, GUARD_MS } from '../../../support/eventually.ts';
import { createTestDatabase, useTestDatabase } from '../../../support/postgres/database.ts';

const LIST = sql(
  'test_partitions',
  `SELECT c.relname AS name, pg_get_expr(c.relpartbound, c.oid) AS bound
   FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid WHERE i.inhparent = $1::regclass ORDER BY 1`,
);

const INDEXES = sql(
  'test_partition_indexes',
  `SELECT p.indexrelid::regclass::text AS parent, i.inhrelid::regclass::text AS child
   FROM pg_index p LEFT JOIN pg_inherits i ON i.inhparent = p.indexrelid WHERE p.indrelid = $1::regclass`,
);

const test = useTestDatabase({ poolSize: 12 });
let partitions: Partitions;
beforeEach(async () => {
  for (const table of ['trade', 'price_history', 'book_history', 'observation'] as const) {
    for (const { name } of await listPartitions(test.db, table)) await test.db.dataSource.query(`DROP TABLE ${name}`);
  }
  partitions = new Partitions(test.db);
});

const names = async (table: PartitionedTable) =>
  (await test.db.query<{ name: string }>(LIST, [table])).map((row) => row.name);

describe('Partitions', () => {
  it('creates each requested month once', async () => {
    const moments = [Date.UTC(2026, 0, 1), Date.UTC(2026, 0, 31, 23, 59, 59, 999), Date.UTC(2024, 1, 29)];
    await partitions.ensure('trade', moments);
    await partitions.ensure('trade', moments);
    expect(await names('trade')).toEqual(['trade_202402', 'trade_202601']);
    const [first] = await test.db.query<{ bound: string }>(LIST, ['trade']);
    expect(first?.bound).toMatch(/FROM \('2024-02-01 00:00:00.*TO \('2024-03-01 00:00:00/);
  });

  it.each(['observation', 'book_history'] as const)('creates days for %s', async (table) => {
    await partitions.ensure(table, [Date.UTC(2026, 1, 28, 23), Date.UTC(2026, 2, 1)]);
    expect(await names(table)).toEqual([`${table}_20260228`, `${table}_20260301`]);
    expect(partitionStartMs(table, Date.UTC(2026, 2, 1) - 1)).toBe(Date.UTC(2026, 1, 28));
  });

  it('lists partitions with their bounds, oldest first', async () => {
    await partitions.ensure('price_history', [Date.UTC(2026, 0, 9), Date.UTC(2025, 11, 9)]);
    expect(await listPartitions(test.db, 'price_history')).toEqual([
      { name: 'price_history_202512', fromMs: Date.UTC(2025, 11), untilMs: Date.UTC(2026, 0) },
      { name: 'price_history_202601', fromMs: Date.UTC(2026, 0), untilMs: Date.UTC(2026, 1) },
    ]);
    expect(partitionStartMs('price_history', Date.UTC(2026, 0, 31))).toBe(Date.UTC(2026, 0));
  });

  it('creates the same bounds in any session time zone', async () => {
    const newYork = await createTestDatabase({ poolSize: 1 });
    try {
      await newYork.db.query(sql('test_zone', `SET TIME ZONE 'America/New_York'`));
      await new Partitions(newYork.db).ensure('observation', [Date.UTC(2026, 0, 1)]);
      const insert = `INSERT INTO observation VALUES (1, $1, $1, 0.5)`;
      for (const at of ['2026-01-01T00:00:00Z', '2026-01-01T23:59:59.999Z']) {
        await newYork.db.query(sql('test_insert_observation', insert), [at]);
      }
      await expect(newYork.db.query(sql('test_insert_observation', insert), ['2026-01-02T00:00:00Z'])).rejects.toThrow(
        'no partition',
      );
      expect(await listPartitions(newYork.db, 'observation')).toEqual([
        { name: 'observation_20260101', fromMs: Date.UTC(2026, 0, 1), untilMs: Date.UTC(2026, 0, 2) },
      ]);
    } finally {
      await newYork.drop();
    }
  });

  it('creates partitions around now for every timestamp of the process clock and the database clock', async () => {
    await partitions.ensureAroundNow('observation');
    await partitions.ensureAroundNow('price_history');
    const days = (await names('observation')).length;
    expect(days).toBe(4);
    const insert = sql(
      'test_insert_skewed',
      `INSERT INTO observation SELECT 1, now() + skew * interval '1 hour', now(), 0.5 FROM unnest('{-24,0,24,48}'::int[]) skew`,
    );
    await test.db.query(insert);
  });

  it('creates a partition once when many processes request it at once', async () => {
    const moments = Array.from({ length: 6 }, (_, month) => Date.UTC(2025, month));
    await Promise.all(
      Array.from({ length: 10 }, (_, process) =>
        new Partitions(test.db).ensure('trade', process % 2 === 0 ? moments : [...moments].reverse()),
      ),
    );
    expect(await names('trade')).toHaveLength(6);
  });

  it('lets no statement see a page whose partition it was planned without', async () => {
    const { db, url } = test;
    await partitions.ensure('trade', [Date.UTC(2026, 0)]);
    const [holder, reader] = [new pg.Client({ connectionString: url }), new pg.Client({ connectionString: url })];
    await Promise.all([holder.connect(), reader.connect()]);
    try {
      await holder.query('CREATE TABLE stored_page (n int)');
      // The planner runs a stable function for its estimates.
      await holder.query(`CREATE FUNCTION planned() RETURNS numeric STABLE LANGUAGE plpgsql AS
        $$ BEGIN PERFORM pg_advisory_lock_shared(1); PERFORM pg_advisory_unlock_shared(1); RETURN 0; END $$`);
      await holder.query('SELECT pg_advisory_lock(1)');
      const answer = reader.query(`SELECT (SELECT count(*)::int FROM trade t WHERE t.price > planned()) AS trades,
        (SELECT count(*)::int FROM stored_page) AS pages`);
      const isPlanning = `SELECT FROM pg_locks WHERE locktype = 'advisory' AND NOT granted`;
      await eventually(
        async () => (await holder.query(isPlanning)).rows.length,
        (waiting) => waiting === 1,
      );
      const stored = new Partitions(db, GUARD_MS).ensure('trade', [Date.UTC(2026, 1)]).then(() =>
        db.transaction(async (tx) => {
          await writeTrades(tx, [aTrade({ tsMs: Date.UTC(2026, 1, 5) })], 'USD');
          await tx.query(sql('test_page', 'INSERT INTO stored_page VALUES (1)'));
        }),
      );
      await eventually(
        () => names('trade'),
        (found) => found.includes('trade_202602'),
      );
      // More than enough statements for the write, if nothing kept it.
      for (let look = 0; look < 100; look += 1) await names('trade');
      await holder.query('SELECT pg_advisory_unlock(1)');
      expect((await answer).rows).toEqual([{ trades: 0, pages: 0 }]);
      await stored;
    } finally {
      await Promise.all([holder.end(), reader.end()]);
    }
  });

  it('creates a partition without waiting for concurrent reads and writes', async () => {
    await partitions.ensure('trade', [Date.UTC(2026, 0)]);
    await test.db.transaction(async (tx) => {
      await writeTrades(tx, [aTrade({ tsMs: Date.UTC(2026, 0, 5) })], 'USD');
      await partitions.ensure('trade', [Date.UTC(2026, 1)]);
      expect(await names('trade')).toEqual(['trade_202601', 'trade_202602']);
      const later = [aTrade({ tsMs: Date.UTC(2026, 1, 5), outcomeId: 'another' })];
      expect(await test.db.transaction((other) => writeTrades(other, later, 'USD'))).toMatchObject({ inserted: 1 });
    });
  });

  it.each(['trade', 'price_history', 'book_history', 'observation'] as const)(
    'creates partitions of %s with its keys and indexes',
    async (table) => {
      await partitions.ensure(table, [Date.UTC(2026, 0)]);
      const rows = await test.db.query<{ parent: string; child: string }>(INDEXES, [table]);
      expect(rows).toHaveLength(1);
      expect(rows[0]?.child).toContain(`${table}_202601`);
    },
  );

  it('creates the partition of a late trade from an old month', async () => {
    const old = aTrade({ tsMs: Date.UTC(2019, 4, 5) });
    const write = () => test.db.transaction((tx) => writeTrades(tx, [old], 'USD'));
    await expect(write()).rejects.toThrow('no partition');
    await partitions.ensure('trade', [old.tsMs]);
    expect(await write()).toMatchObject({ inserted: 1 });
    expect(await write()).toMatchObject({ inserted: 0 });
  });
});
