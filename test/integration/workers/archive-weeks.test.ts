import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { readDueDays, switchArchiveOn } from '../../../src/store/archive/catalog.ts';
import { listPartitions, Partitions, readSeam } from '../../../src/store/db/partitions.ts';
import { sql } from '../../../src/store/db/tx.ts';
import { archiveDay } from '../../../workers/jobs/archive-day.ts';
import { maintainStorage } from '../../../workers/jobs/maintain-storage.ts';
import { aStoredMarket } from '../../factories/stored-market.ts';
import { storedTrades } from '../../factories/stored-series.ts';
import { useTestDatabase } from '../../support/postgres/database.ts';
import { jobContext, testConfig, wakeRecorder } from './worker-harness.ts';

const DAY_MS = 86_400_000;
const JANUARY = Date.UTC(2026, 0);
const FEBRUARY = Date.UTC(2026, 1);
const AGE_TOKENS = sql('test_weeks_age', 'UPDATE token SET created_at = $1');
const NO_CHANGES = sql('test_weeks_no_changes', 'DELETE FROM archive_change');
const NO_MARKS = sql('test_weeks_no_marks', 'DELETE FROM mark');
const COUNT = sql('test_weeks_count', 'SELECT count(*)::int AS count FROM trade');
const CANDLE = sql(
  'test_weeks_candle',
  `INSERT INTO candle (token_id, interval_seconds, bucket, open, high, low, close, volume, notional, trades)
   VALUES ($1, 86400, $2, 0.5, 0.5, 0.5, 0.5, 1, 1, 1)`,
);

const test = useTestDatabase();
let dir = '';
let tokenId = 0n;
beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), 'oddswire-weeks-'));
  const [yes] = (await aStoredMarket(test.db)).outcomes;
  tokenId = yes?.tokenId ?? 0n;
});
afterAll(() => rm(dir, { recursive: true, force: true }));

const contextAt = (nowMs: number, keepDays = 7) =>
  jobContext({
    db: test.db,
    config: testConfig(test.url, { ARCHIVE_DIR: dir, ARCHIVE_KINDS: 'trades', ARCHIVE_KEEP_DAYS: String(keepDays) }),
    producer: wakeRecorder(),
    partitions: new Partitions(test.db),
    now: () => nowMs,
  });
const names = async () =>
  (await listPartitions(test.db, 'trade')).map(({ name }) => name).filter((name) => name < 'trade_2026030');

async function archiveUntil(untilMs: number): Promise<void> {
  await test.db.query(NO_MARKS);
  const pairs = [{ kind: 'trades', venue: 'polymarket' }] as const;
  for (;;) {
    const [day] = await readDueDays(test.db, { pairs, afterHours: 6, limit: 1 });
    if (day === undefined || Date.parse(day.date) >= untilMs) return;
    await archiveDay.run(day, contextAt(untilMs));
  }
}

describe('maintain-storage with months and weeks of trades', () => {
  it('drops a month, then each week that ended before ARCHIVE_KEEP_DAYS, and moves the seam behind it', async () => {
    const partitions = new Partitions(test.db);
    await partitions.ensure('trade', [JANUARY]);
    await switchArchiveOn(test.db, ['trades']);
    await maintainStorage.run({}, contextAt(JANUARY + 20 * DAY_MS));
    const days = Array.from({ length: 50 }, (_, day) => JANUARY + day * DAY_MS);
    await new Partitions(test.db).ensure('trade', days);
    expect(await names()).toEqual([
      'trade_202601',
      'trade_20260201',
      'trade_20260208',
      'trade_20260215',
      'trade_20260222',
    ]);
    // A day without trades is archived too, and needs no file.
    const traded = days.filter((_, day) => day % 6 === 0);
    await storedTrades(
      test.db,
      traded.map((ms) => ({ tokenId, at: new Date(ms + 3_600_000), tradeId: `t${ms}` })),
    );
    await test.db.query(CANDLE, [tokenId, JANUARY / 1000]);
    await test.db.query(AGE_TOKENS, [new Date(JANUARY).toISOString()]);
    await test.db.query(NO_CHANGES);
    await archiveUntil(FEBRUARY + 10 * DAY_MS);

    // 7 days before the 17th are before the end of the second week.
    await maintainStorage.run({}, contextAt(FEBRUARY + 16 * DAY_MS));
    expect(await names()).toEqual(['trade_20260208', 'trade_20260215', 'trade_20260222']);
    expect(await readSeam(test.db, 'trades')).toBe(FEBRUARY + 7 * DAY_MS);

    // The second week is old enough, but files lack its last days.
    expect(await maintainStorage.run({}, contextAt(FEBRUARY + 22 * DAY_MS))).toMatchObject({ postponed: 1 });
    expect(await names()).toContain('trade_20260208');
    await archiveUntil(FEBRUARY + 21 * DAY_MS);
    await maintainStorage.run({}, contextAt(FEBRUARY + 22 * DAY_MS));
    expect(await names()).toEqual(['trade_20260215', 'trade_20260222']);
    expect(await readSeam(test.db, 'trades')).toBe(FEBRUARY + 14 * DAY_MS);
    const [left] = await test.db.query<{ count: number }>(COUNT);
    expect(left?.count).toBe(traded.filter((ms) => ms >= FEBRUARY + 14 * DAY_MS).length);
  });

  it('makes whole months again when the archive keeps its trades in Postgres for years', async () => {
    await maintainStorage.run({}, contextAt(Date.UTC(2026, 4, 10), 36_500));
    expect((await listPartitions(test.db, 'trade')).map(({ name }) => name)).toContain('trade_202605');
  });
});
