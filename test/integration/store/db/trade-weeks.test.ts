import { beforeEach, describe, expect, it } from 'vitest';
import { setKeepDays, switchArchiveOn } from '../../../../src/store/archive/catalog.ts';
import { listPartitions, moveSeam, Partitions } from '../../../../src/store/db/partitions.ts';
import { sql } from '../../../../src/store/db/tx.ts';
import { writeTrades } from '../../../../src/store/series/trades.ts';
import { aTrade } from '../../../factories/trades.ts';
import { useTestDatabase } from '../../../support/postgres/database.ts';

const DAY_MS = 86_400_000;
const SEPTEMBER = Date.UTC(2026, 8);
const WEEKS = ['trade_20260901', 'trade_20260908', 'trade_20260915', 'trade_20260922', 'trade_20260929'];

const test = useTestDatabase({ poolSize: 12 });
beforeEach(async () => {
  for (const { name } of await listPartitions(test.db, 'trade')) await test.db.dataSource.query(`DROP TABLE ${name}`);
  await test.db.dataSource.query('DELETE FROM archive_switch');
  await test.db.dataSource.query('DELETE FROM archive_seam');
  await switchArchiveOn(test.db, ['trades']);
});

const names = async () => (await listPartitions(test.db, 'trade')).map(({ name }) => name);
const ensure = (...moments: number[]) => new Partitions(test.db).ensure('trade', moments);
const keepDays = (days: number | null) => setKeepDays(test.db, 'trades', days);
const write = (...moments: number[]) =>
  test.db.transaction((tx) =>
    writeTrades(
      tx,
      moments.map((tsMs) => aTrade({ tsMs })),
      'USD',
    ),
  );

const FORMER_EXISTS = sql(
  'test_former_partition_exists',
  `SELECT EXISTS (SELECT FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
     WHERE i.inhparent = $1::regclass AND c.relname = $2) AS exists`,
);
const FORMER_CREATE = sql('test_former_create', 'SELECT create_partition($1, $2)');

/** The statements of a process of the former release before it writes trades of a month. */
async function formerEnsures(atMs: number): Promise<void> {
  const month = new Date(atMs).toISOString().slice(0, 7);
  const [found] = await test.db.query<{ exists: boolean }>(FORMER_EXISTS, ['trade', `trade_${month.replace('-', '')}`]);
  if (!found?.exists) await test.db.query(FORMER_CREATE, ['trade', `${month}-01T00:00:00Z`]);
}

/** A moment of each day of a month, and its first and last one. */
function momentsOf(monthMs: number): number[] {
  const endMs = Date.UTC(new Date(monthMs).getUTCFullYear(), new Date(monthMs).getUTCMonth() + 1);
  const days = Array.from({ length: (endMs - monthMs) / DAY_MS }, (_, day) => monthMs + day * DAY_MS + 3_600_000);
  return [monthMs, ...days, endMs - 1];
}

describe('create_partition', () => {
  it.each([null, 401])(
    'makes one partition of a month when Postgres keeps archived trades for %s days',
    async (days) => {
      await keepDays(days);
      await ensure(SEPTEMBER + 9 * DAY_MS);
      expect(await names()).toEqual(['trade_202609']);
    },
  );

  it('makes the week of a moment when Postgres keeps archived trades for some days', async () => {
    await keepDays(30);
    await ensure(SEPTEMBER + 9 * DAY_MS, SEPTEMBER + 29 * DAY_MS);
    expect(await listPartitions(test.db, 'trade')).toEqual([
      { name: 'trade_20260908', fromMs: SEPTEMBER + 7 * DAY_MS, untilMs: SEPTEMBER + 14 * DAY_MS },
      { name: 'trade_20260929', fromMs: SEPTEMBER + 28 * DAY_MS, untilMs: SEPTEMBER + 30 * DAY_MS },
    ]);
  });

  it.each([
    ['February of 28 days', Date.UTC(2026, 1), 4],
    ['February of 29 days', Date.UTC(2024, 1), 5],
    ['a month of 31 days', Date.UTC(2026, 9), 5],
  ])('makes weeks for each moment of %s', async (_title, monthMs, count) => {
    await keepDays(30);
    const moments = momentsOf(monthMs);
    await ensure(...moments);
    expect(await names()).toHaveLength(count);
    expect(await write(...moments)).toMatchObject({ inserted: moments.length });
  });

  it('makes all weeks for a process of the former release that comes after one of this release', async () => {
    await keepDays(30);
    await ensure(SEPTEMBER + 9 * DAY_MS);
    await formerEnsures(SEPTEMBER + 20 * DAY_MS);
    expect(await names()).toEqual(WEEKS);
    expect(await write(...momentsOf(SEPTEMBER))).toMatchObject({ inserted: momentsOf(SEPTEMBER).length });
  });

  it('makes all weeks for a process of the former release that comes first', async () => {
    await keepDays(30);
    await formerEnsures(SEPTEMBER + 20 * DAY_MS);
    await ensure(SEPTEMBER + 9 * DAY_MS);
    expect(await names()).toEqual(WEEKS);
    expect(await write(...momentsOf(SEPTEMBER))).toMatchObject({ inserted: momentsOf(SEPTEMBER).length });
  });

  it('keeps the one partition of a month that was made before its weeks were wanted', async () => {
    await formerEnsures(SEPTEMBER);
    await keepDays(30);
    await ensure(...momentsOf(SEPTEMBER));
    await formerEnsures(SEPTEMBER);
    expect(await names()).toEqual(['trade_202609']);
  });

  it('keeps the weeks of a month when they are no longer wanted', async () => {
    await keepDays(30);
    await ensure(SEPTEMBER + 9 * DAY_MS);
    await keepDays(null);
    await ensure(SEPTEMBER + 20 * DAY_MS, Date.UTC(2026, 9, 5));
    expect(await names()).toEqual(['trade_20260908', 'trade_20260915', 'trade_202610']);
    await formerEnsures(SEPTEMBER);
    expect(await names()).toEqual([...WEEKS, 'trade_202610']);
  });

  it('makes no partition on both sides of the seam when the earlier weeks of its month are gone', async () => {
    await test.db.transaction((tx) => moveSeam(tx, 'trades', SEPTEMBER + 14 * DAY_MS));
    await formerEnsures(SEPTEMBER);
    expect(await names()).toEqual(WEEKS);
    await ensure(SEPTEMBER + 20 * DAY_MS);
    expect(await names()).toEqual(WEEKS);
  });

  it('makes weeks once when processes of both releases ask at once', async () => {
    await keepDays(30);
    await Promise.all(
      momentsOf(SEPTEMBER)
        .slice(0, 10)
        .map((moment, index) => (index % 2 === 0 ? ensure(moment) : formerEnsures(moment))),
    );
    expect(await names()).toEqual(WEEKS);
  });
});
