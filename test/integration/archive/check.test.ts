import {
  appendFile,
  copyFile,
  cp,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  rename,
  rm,
  truncate,
  writeFile,
} from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { type CheckFilter, checkArchive } from '../../../src/archive/check/check-archive.ts';
import { type ArchiveDay, folderOf, formerPlaceOf } from '../../../src/domain/archive/file.ts';
import { createLogger } from '../../../src/observe/logger.ts';
import { lockingDay, readPresentFile, switchArchiveOn } from '../../../src/store/archive/catalog.ts';
import { moveSeam, Partitions } from '../../../src/store/db/partitions.ts';
import { sql } from '../../../src/store/db/tx.ts';
import { archiveDay } from '../../../workers/jobs/archive-day.ts';
import { aStoredMarket } from '../../factories/stored-market.ts';
import { storedTrades } from '../../factories/stored-series.ts';
import { eventually } from '../../support/eventually.ts';
import { useTestDatabase } from '../../support/postgres/database.ts';
import { oddswire } from '../bin/run-command.ts';
import { jobContext, testConfig } from '../workers/worker-harness.ts';

const DAYS = ['2026-03-04', '2026-03-05', '2026-03-06'] as const;
const DAY = DAYS[1];
const at = (date: string, seconds: number) => new Date(Date.parse(`${date}T00:00:00Z`) + seconds * 1_000);
const dayOf = (kind: ArchiveDay['kind'], date: string = DAY): ArchiveDay => ({ kind, venue: 'kalshi', date });

const PRICE = sql(
  'test_check_price',
  'INSERT INTO price_history (token_id, received_at, as_of, price) VALUES ($1, $2, $2, $3)',
);
const WIPE = [
  'archive_seam',
  'archive_file',
  'archive_change',
  'archive_switch',
  'trade',
  'price_history',
  'candle',
  'coverage',
  'mark',
].map((table) => sql(`test_wipe_${table}`, `DELETE FROM ${table}`));
/** In an order in which no trigger notes a change of an archived day. */
const KEPT = ['trade', 'price_history', 'archive_switch', 'archive_file'];
const KEEP = KEPT.map((table) => sql(`test_check_keep_${table}`, `CREATE TABLE kept_${table} AS TABLE ${table}`));
const PUT_BACK = KEPT.map((table) => sql(`test_check_put_back_${table}`, `INSERT INTO ${table} TABLE kept_${table}`));
const DELETE_TRADE = sql('test_check_delete', 'DELETE FROM trade WHERE trade_id = $1');
const DROP_TRADES = sql('test_check_drop', 'DROP TABLE trade_202603');
const FORGET = sql('test_check_forget', 'DELETE FROM archive_file WHERE kind = $1 AND date = $2::date');
const REMEMBER = sql('test_check_remember', 'INSERT INTO archive_file SELECT * FROM kept_archive_file WHERE kind = $1');
const STATE_CHECKSUM = sql(
  'test_check_checksum',
  `UPDATE archive_file SET checksum = '1.2' WHERE kind = $1 AND date = $2::date`,
);
const STATE_SCHEMA = sql(
  'test_check_schema',
  'UPDATE archive_file SET schema_version = 99 WHERE kind = $1 AND date = $2::date',
);
const WAITING = sql(
  'test_check_waiting',
  `SELECT count(*)::int AS waiting FROM pg_locks WHERE locktype = 'advisory' AND NOT granted
     AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`,
);
const NAME_FILE = sql('test_check_name', 'UPDATE archive_file SET file = $2 WHERE file = $1');
const NO_CHANGES = sql('test_check_no_changes', 'DELETE FROM archive_change');
const COVERED = sql(
  'test_check_covered',
  `INSERT INTO coverage (venue, kind, hour, market_id, class, stored, checked_at)
   VALUES ('kalshi', 'trades', $1, $2, 'complete', $3, now())`,
);

const test = useTestDatabase();
let dir = '';
/** The folder of four archived days, of which each test gets a copy. */
let archivedDir = '';
let market: Awaited<ReturnType<typeof aStoredMarket>>;
const tokenOf = () => market.outcomes[0]?.tokenId ?? 0n;
const run = (kind: ArchiveDay['kind'], date: string = DAY) =>
  archiveDay.run(
    dayOf(kind, date),
    jobContext({ db: test.db, config: testConfig(test.url, { ARCHIVE_DIR: dir, VENUES: 'kalshi' }) }),
  );
const presentOf = async (day: ArchiveDay) => (await readPresentFile(test.db, day))?.file ?? '';
const pathOf = async (day: ArchiveDay) => join(dir, folderOf(day), await presentOf(day));
const check = async (isRepair = false, filter: CheckFilter = {}) => {
  const log = createLogger({ process: 'test', level: 'silent' });
  const { signal } = new AbortController();
  const checked = await checkArchive({
    db: test.db,
    dir,
    filter,
    isRepair,
    log,
    signal,
    tag: 'test',
    onDay: () => undefined,
  });
  return checked.findings.map(({ place, problem, remedy, isRepaired }) => ({ place, problem, remedy, isRepaired }));
};
const clean = async () => expect(await check()).toEqual([]);

beforeAll(async () => {
  market = await aStoredMarket(test.db, { venue: 'kalshi', marketId: 'K-1' });
  archivedDir = await mkdtemp(join(tmpdir(), 'archive-checked-'));
  dir = archivedDir;
  await new Partitions(test.db).ensure('price_history', [at(DAY, 0).getTime()]);
  for (const date of DAYS) {
    await storedTrades(test.db, [
      { tokenId: tokenOf(), at: at(date, 5), tradeId: `${date} first`, size: '3' },
      { tokenId: tokenOf(), at: at(date, 3_700), tradeId: `${date} second`, size: '4.5' },
    ]);
    await test.db.query(PRICE, [tokenOf(), at(date, 10).toISOString(), '0.4']);
  }
  await switchArchiveOn(test.db, ['trades']);
  for (const date of DAYS) await run('trades', date);
  await run('prices');
  for (const statement of KEEP) await test.db.query(statement);
});
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'archive-check-'));
  await cp(archivedDir, dir, { recursive: true });
  for (const statement of WIPE) await test.db.query(statement);
  await new Partitions(test.db).ensure('trade', [at(DAY, 0).getTime()]);
  for (const statement of PUT_BACK) await test.db.query(statement);
});
afterEach(() => rm(dir, { recursive: true, force: true }));
afterAll(() => rm(archivedDir, { recursive: true, force: true }));

describe('archive check', () => {
  /** Each archived day has its own damage: one check finds them all. */
  const ARCHIVED = [...DAYS.map((date) => dayOf('trades', date)), dayOf('prices')];
  const DAMAGE: readonly (readonly [(path: string) => Promise<void>, RegExp])[] = [
    [(path) => rm(path), /is missing/],
    [(path) => truncate(path, 200), /has 200 bytes in place of \d+/],
    [(path) => appendFile(path, 'more'), /bytes in place of/],
    [
      async (path) => {
        const bytes = await readFile(path);
        bytes[60] = (bytes[60] ?? 0) ^ 1;
        await writeFile(path, bytes);
      },
      /another sha256/,
    ],
  ];
  it('names files that are gone, cut, longer or have a changed byte, and makes them again from Postgres', async () => {
    const damaged = await Promise.all(
      ARCHIVED.map(async (day, index) => {
        const [damage, problem] = DAMAGE[index] ?? [rm, /^$/];
        const file = await presentOf(day);
        await damage(join(dir, folderOf(day), file));
        return {
          place: `${folderOf(day)}/${file}`,
          former: formerPlaceOf(file),
          problem: expect.stringMatching(problem),
        };
      }),
    );
    const remedy = '--repair archives the day again';
    const named = damaged.map(({ place, problem }) => ({ place, problem, remedy, isRepaired: false }));
    const found = await check();
    expect(found).toHaveLength(ARCHIVED.length);
    expect(found).toEqual(expect.arrayContaining(named));
    const repaired = await check(true);
    const places = damaged.flatMap(({ place, former }) => [place, former]);
    expect(repaired.map(({ place, isRepaired }) => [place, isRepaired]).sort()).toEqual(
      places.map((place) => [place, true]).sort(),
    );
    for (const day of ARCHIVED) expect((await readPresentFile(test.db, day))?.revision).toBe(2);
    await clean();
  });

  it('keeps a damaged file as it is when Postgres no longer has its rows', async () => {
    const path = await pathOf(dayOf('trades'));
    await appendFile(path, 'more');
    await test.db.query(DROP_TRADES);
    const [found] = await check(true);
    expect(found).toMatchObject({ isRepaired: false, problem: expect.stringMatching(/bytes in place of/) });
    expect(found?.remedy).toMatch(/the repair failed: Postgres has 0 of the 2 rows that the catalog states/);
    expect((await readFile(path)).length).toBeGreaterThan(0);
    expect((await readPresentFile(test.db, dayOf('trades')))?.revision).toBe(1);
  });

  it('leaves a damaged file behind the seam as it is, because files alone have its rows', async () => {
    const path = await pathOf(dayOf('trades'));
    await appendFile(path, 'more');
    await test.db.query(DROP_TRADES);
    await moveSeam(test.db, 'trades', Date.parse('2026-04-01T00:00:00Z'));
    const bytes = await readFile(path);
    const [found] = await check(true);
    expect(found).toMatchObject({ isRepaired: false, problem: expect.stringMatching(/bytes in place of/) });
    expect(found?.remedy).toMatch(/the repair failed: only the file has the rows of this day/);
    expect((await readFile(path)).equals(bytes)).toBe(true);
  });

  it('names a missing or different manifest, and describes the folder again', async () => {
    const faults: readonly (readonly [(right: string) => string | undefined, unknown])[] = [
      [(right) => right.replace(/"rows": \d+/, '"rows": 7'), 'states another rows than the catalog'],
      [(right) => right.replace('"kalshi"', '"manifold"'), 'describes another day'],
      [() => '{"files"', expect.stringMatching(/cannot be read/)],
      [() => undefined, 'is missing'],
    ];
    const manifests = await Promise.all(
      ARCHIVED.map(async (day, index) => {
        const path = join(dir, folderOf(day), 'manifest.json');
        const right = await readFile(path, 'utf8');
        const [change, problem] = faults[index] ?? [() => right, ''];
        const text = change(right);
        if (text === undefined) await rm(path);
        else await writeFile(path, text);
        return { path, right, found: expect.objectContaining({ place: `${folderOf(day)}/manifest.json`, problem }) };
      }),
    );
    const found = await check();
    expect(found).toHaveLength(ARCHIVED.length);
    expect(found).toEqual(expect.arrayContaining(manifests.map((each) => each.found)));
    expect((await check(true)).map(({ isRepaired }) => isRepaired)).toEqual(ARCHIVED.map(() => true));
    for (const { path, right } of manifests) expect(await readFile(path, 'utf8')).toBe(right);
    await clean();
  });

  it('moves the file that counts back from the former ones', async () => {
    const path = await pathOf(dayOf('trades'));
    const former = join(dir, formerPlaceOf(await presentOf(dayOf('trades'))));
    await mkdir(join(dir, formerPlaceOf('')));
    await rename(path, former);
    expect((await check(true))[0]).toMatchObject({
      problem: 'is in .former, but the catalog names it',
      isRepaired: true,
    });
    await clean();
  });

  it('names nothing in the folder of a day whose row a job adds after the list of days was read', async () => {
    const day = dayOf('prices');
    await test.db.query(FORGET, [day.kind, day.date]);
    let checked: ReturnType<typeof check> | undefined;
    await lockingDay(test.db, day, async (tx) => {
      checked = check();
      await eventually(
        () => test.db.query<{ waiting: number }>(WAITING),
        ([found]) => found?.waiting === 1,
      );
      await tx.query(REMEMBER, [day.kind]);
    });
    expect(await checked).toEqual([]);
  });

  it('keeps a file whose row a job adds while the repair waits for the day', async () => {
    const day = dayOf('trades');
    const path = await pathOf(day);
    const kept = await presentOf(day);
    const stranger = kept.replace('-r1-', '-r2-');
    await copyFile(path, join(dir, folderOf(day), stranger));
    let repair: Promise<unknown> | undefined;
    await lockingDay(test.db, day, async (tx) => {
      repair = check(true);
      await eventually(
        () => test.db.query<{ waiting: number }>(WAITING),
        ([found]) => found?.waiting === 1,
      );
      await tx.query(NAME_FILE, [kept, stranger]);
    });
    await repair;
    expect(await readdir(join(dir, folderOf(day)))).toContain(stranger);
  });

  it('removes a file without a row only when the file of the day has each of its rows', async () => {
    const folder = join(dir, folderOf(dayOf('trades')));
    const copied = 'trades-kalshi-2026-03-05-r1-0123456789ab.parquet';
    await copyFile(await pathOf(dayOf('trades')), join(folder, copied));
    expect(await check()).toMatchObject([{ problem: 'no row of the catalog names it' }]);
    expect(await check(true)).toMatchObject([{ isRepaired: true }]);
    expect(await readdir(folder)).not.toContain(copied);
    const other = 'trades-kalshi-2026-03-05-r9-0123456789ab.parquet';
    await copyFile(await pathOf(dayOf('trades', DAYS[0])), join(folder, other));
    await writeFile(join(folder, 'notes.txt'), 'mine');
    await writeFile(join(dir, 'readme'), 'mine');
    const found = await check(true);
    expect(found.map(({ place, isRepaired }) => [place.split('/').at(-1), isRepaired])).toEqual([
      ['notes.txt', false],
      [other, false],
      ['readme', false],
    ]);
    expect(found[1]?.problem).toMatch(/2 of its rows are not in the file of the day/);
    expect(await readdir(folder)).toEqual(expect.arrayContaining([other, 'notes.txt']));
  });

  it('names a file that a repair of its day moved and that no row of the catalog names', async () => {
    await rename(await pathOf(dayOf('trades')), join(dir, folderOf(dayOf('trades')), 'other.parquet'));
    const moved = { place: formerPlaceOf('other.parquet'), isRepaired: false };
    const found = await check(true, { kinds: ['trades'] });
    expect(found).toEqual(expect.arrayContaining([expect.objectContaining(moved)]));
    expect(found.filter(({ place }) => place.endsWith('other.parquet'))).toHaveLength(1);
    expect(await check()).toMatchObject([moved]);
  });

  it('compares a day of a folder into which it cannot write', async () => {
    await rm(join(dir, '.work'), { recursive: true, force: true });
    await writeFile(join(dir, '.work'), 'no folder can be made here');
    await storedTrades(test.db, [{ tokenId: tokenOf(), at: at(DAY, 50), tradeId: 'unnoted' }]);
    await test.db.query(NO_CHANGES);
    expect(await check()).toMatchObject([{ problem: 'lacks 1 rows of Postgres' }]);
  });

  it('names a day that the catalog lacks between two others, and archives it', async () => {
    await test.db.query(FORGET, ['trades', DAY]);
    const found = await check(true, { kinds: ['trades'] });
    expect(found[0]).toMatchObject({ place: folderOf(dayOf('trades')), isRepaired: true });
    expect(await readPresentFile(test.db, dayOf('trades'))).toMatchObject({ rows: 2 });
    await clean();
  });

  it('names rows that Postgres has and the file lacks, and archives the day again', async () => {
    await storedTrades(test.db, [{ tokenId: tokenOf(), at: at(DAY, 50), tradeId: 'unnoted' }]);
    await test.db.query(NO_CHANGES);
    expect(await check()).toMatchObject([{ problem: 'lacks 1 rows of Postgres' }]);
    expect(await check(true)).toMatchObject([{ isRepaired: true }]);
    expect(await readPresentFile(test.db, dayOf('trades'))).toMatchObject({ rows: 3, revision: 2 });
    await clean();
  });

  it('names rows that Postgres lost, and leaves the file alone', async () => {
    await test.db.query(DELETE_TRADE, [`${DAY} second`]);
    const file = await presentOf(dayOf('trades'));
    expect(await check(true)).toMatchObject([
      { problem: 'has 1 rows that Postgres does not have, and lacks 0 rows of Postgres', isRepaired: false },
    ]);
    expect(await presentOf(dayOf('trades'))).toBe(file);
  });

  it('accepts files of rows whose partition is dropped, and days with noted changes', async () => {
    await clean();
    await storedTrades(test.db, [{ tokenId: tokenOf(), at: at(DAY, 50), tradeId: 'noted' }]);
    await clean();
    await test.db.query(NO_CHANGES);
    await test.db.query(DROP_TRADES);
    await clean();
  });

  it('names a checksum of the catalog that the file does not have, and a newer schema', async () => {
    await test.db.query(STATE_CHECKSUM, ['prices', DAY]);
    const problems = async () => (await check()).map(({ problem }) => problem);
    expect(await problems()).toContain('has other rows than the checksum of the catalog states');
    await test.db.query(STATE_SCHEMA, ['prices', DAY]);
    expect(await problems()).toContain('has the schema 99, and this program knows schemas up to 1');
  });

  it('names an hour that coverage calls complete with volume that the file lacks', async () => {
    await test.db.query(COVERED, [at(DAY, 0).toISOString(), market.pk, '3']);
    await clean();
    await test.db.query(COVERED, [at(DAY, 3_600).toISOString(), market.pk, '5']);
    expect((await check())[0]?.problem).toBe(
      'lacks volume that coverage states (K-1 01:00: complete with 5, archived 4.5)',
    );
    expect(await check(true)).toMatchObject([{ isRepaired: false }]);
    expect((await readPresentFile(test.db, dayOf('trades')))?.revision).toBe(1);
  });

  it('names a former file that is damaged', async () => {
    await storedTrades(test.db, [{ tokenId: tokenOf(), at: at(DAY, 50), tradeId: 'late' }]);
    const former = await presentOf(dayOf('trades'));
    await run('trades');
    await clean();
    await truncate(join(dir, formerPlaceOf(former)), 5);
    expect(await check()).toMatchObject([{ place: formerPlaceOf(former), isRepaired: false }]);
    expect(await check(true)).toMatchObject([{ isRepaired: true }]);
    await clean();
  });

  it('checks only the asked days', async () => {
    await rm(await pathOf(dayOf('trades', DAYS[0])));
    expect(await check(false, { kinds: ['prices'] })).toEqual([]);
    expect(await check(false, { from: DAY })).toEqual([]);
    expect(await check(false, { venues: ['polymarket'] })).toEqual([]);
    expect(await check(false, { to: DAYS[0] })).toHaveLength(1);
  });
});

describe('oddswire archive', () => {
  const command = (...argv: string[]) => oddswire(['archive', ...argv], { DATABASE_URL: test.url, ARCHIVE_DIR: dir });

  it('exits with 0 without problems, with 1 and a line per problem, and with 2 for wrong arguments', async () => {
    const right = await command('check');
    expect([right.code, right.stdout]).toEqual([0, '']);
    expect(right.stderr).toBe('4 days, 4 files, 8 rows: 0 problems\n');
    await rm(await pathOf(dayOf('trades')));
    const wrong = await command('check', '--kind', 'trades');
    expect(wrong.code).toBe(1);
    expect(wrong.stdout).toBe(
      `${folderOf(dayOf('trades'))}/${await presentOf(dayOf('trades'))}: is missing; --repair archives the day again\n`,
    );
    const json = JSON.parse((await command('check', '--json', '--repair')).stdout);
    expect(json).toMatchObject({
      days: 4,
      files: 4,
      problems: [{ problem: 'is missing', repaired: true }, { repaired: true }],
    });
    const usage = await command('check', '--from', '2026-02-30', '--to', 'today');
    expect(usage.code).toBe(2);
    expect(usage.stderr).toContain('--from must be a day');
    expect(usage.stderr).toContain('--to must be a day');
    expect((await command()).code).toBe(2);
  });

  it('names the variables of the object store that are not set', async () => {
    const url = { DATABASE_URL: test.url, ARCHIVE_DIR: dir, ARCHIVE_URL: 's3://bucket/prefix' };
    const { code, stderr } = await oddswire(['archive', 'check'], url);
    expect(code).toBe(78);
    expect(stderr).toContain('ARCHIVE_URL needs ARCHIVE_S3_ACCESS_KEY_ID');
    expect(stderr).toContain('ARCHIVE_URL needs ARCHIVE_S3_SECRET_ACCESS_KEY');
  });

  it('names a folder that is gone', async () => {
    const gone = await command('check', '--dir', join(dir, 'gone'));
    expect(gone.code).toBe(1);
    expect(gone.stderr).toMatch(/the folder of the archive cannot be read: ENOENT.*gone/);
  });
});
