import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { dropPartitionsBefore, type PartitionedTable, Partitions } from '../../../src/store/partitions.ts';
import { writeTrades } from '../../../src/store/trades.ts';
import { sql } from '../../../src/store/tx.ts';
import { aTrade } from '../../factories/trades.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';

const LIST = sql(
  'test_partitions',
  `SELECT c.relname AS name, pg_get_expr(c.relpartbound, c.oid) AS bound
   FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid WHERE i.inhparent = $1::regclass ORDER BY 1`,
);
const COUNT_TRADES = sql('test_count_trades', 'SELECT count(*)::int AS trades FROM trade');

const DAY_MS = 86_400_000;

let test: TestDatabase;
let partitions: Partitions;
beforeAll(async () => {
  test = await createTestDatabase({ poolSize: 12 });
});
afterAll(() => test.drop());
beforeEach(async () => {
  for (const table of ['trade', 'price_history', 'observation'] as const) {
    await dropPartitionsBefore(test.db, table, Date.UTC(9000, 0));
  }
  partitions = new Partitions(test.db);
});

const names = async (table: PartitionedTable) =>
  (await test.db.query<{ name: string }>(LIST, [table])).map((row) => row.name);

describe('partitions', () => {
  it('are made for each month that is named, once', async () => {
    const moments = [Date.UTC(2026, 0, 1), Date.UTC(2026, 0, 31, 23, 59, 59, 999), Date.UTC(2024, 1, 29)];
    await partitions.ensure('trade', moments);
    await partitions.ensure('trade', moments);
    expect(await names('trade')).toEqual(['trade_202402', 'trade_202601']);
    const [first] = await test.db.query<{ bound: string }>(LIST, ['trade']);
    expect(first?.bound).toMatch(/FROM \('2024-02-01 00:00:00.*TO \('2024-03-01 00:00:00/);
  });

  it('are days for observations', async () => {
    await partitions.ensure('observation', [Date.UTC(2026, 1, 28, 23), Date.UTC(2026, 2, 1)]);
    expect(await names('observation')).toEqual(['observation_20260228', 'observation_20260301']);
  });

  it('do not depend on the time zone of the session', async () => {
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
      expect(await dropPartitionsBefore(newYork.db, 'observation', Date.UTC(2026, 0, 2) - 1)).toEqual([]);
      expect(await dropPartitionsBefore(newYork.db, 'observation', Date.UTC(2026, 0, 2))).toEqual([
        'observation_20260101',
      ]);
    } finally {
      await newYork.drop();
    }
  });

  it('around now: what our clock and the database may stamp has a place', async () => {
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

  it('ensured at once by many processes are made once', async () => {
    const moments = Array.from({ length: 6 }, (_, month) => Date.UTC(2025, month));
    await Promise.all(
      Array.from({ length: 10 }, (_, process) =>
        new Partitions(test.db).ensure('trade', process % 2 === 0 ? moments : [...moments].reverse()),
      ),
    );
    expect(await names('trade')).toHaveLength(6);
  });

  it('can be made while another transaction writes to the table', async () => {
    await partitions.ensure('trade', [Date.UTC(2026, 0)]);
    let made: Promise<void> | undefined;
    await test.db.transaction(async (tx) => {
      await writeTrades(tx, [aTrade({ tsMs: Date.UTC(2026, 0, 5) })], 'USD');
      made = partitions.ensure('trade', [Date.UTC(2026, 1)]);
    });
    await made;
    expect(await names('trade')).toEqual(['trade_202601', 'trade_202602']);
  });

  it('a late trade of an old month finds its place', async () => {
    const old = aTrade({ tsMs: Date.UTC(2019, 4, 5) });
    const write = () => test.db.transaction((tx) => writeTrades(tx, [old], 'USD'));
    await expect(write()).rejects.toThrow('no partition');
    await partitions.ensure('trade', [old.tsMs]);
    expect(await write()).toMatchObject({ inserted: 1 });
    expect(await write()).toMatchObject({ inserted: 0 });
  });
});

describe('dropping old partitions', () => {
  it('drops those that ended by then, whole, and no other', async () => {
    const at = [Date.UTC(2025, 10, 15), Date.UTC(2025, 11, 15), Date.UTC(2026, 0, 15)];
    await partitions.ensure('trade', at);
    await test.db.transaction((tx) =>
      writeTrades(
        tx,
        at.map((tsMs) => aTrade({ tsMs })),
        'USD',
      ),
    );
    expect(await dropPartitionsBefore(test.db, 'trade', Date.UTC(2026, 0, 1) - 1)).toEqual(['trade_202511']);
    expect(await dropPartitionsBefore(test.db, 'trade', Date.UTC(2026, 0, 1))).toEqual(['trade_202512']);
    expect(await dropPartitionsBefore(test.db, 'trade', Date.UTC(2026, 0, 1))).toEqual([]);
    expect(await test.db.query(COUNT_TRADES)).toEqual([{ trades: 1 }]);
  });

  it('twice at once harms nobody', async () => {
    await partitions.ensure(
      'observation',
      Array.from({ length: 5 }, (_, day) => Date.UTC(2020, 0, 1) + day * DAY_MS),
    );
    await Promise.all(Array.from({ length: 4 }, () => dropPartitionsBefore(test.db, 'observation', Date.UTC(2021, 0))));
    expect(await names('observation')).toEqual([]);
  });

  it('what another process dropped is made again, once it is forgotten', async () => {
    const tsMs = Date.UTC(2020, 0, 5);
    await partitions.ensure('trade', [tsMs]);
    await dropPartitionsBefore(test.db, 'trade', Date.UTC(2021, 0));
    partitions.forget();
    await partitions.ensure('trade', [tsMs]);
    const written = await test.db.transaction((tx) => writeTrades(tx, [aTrade({ tsMs, tradeId: 'again' })], 'USD'));
    expect(written).toMatchObject({ inserted: 1 });
  });
});
