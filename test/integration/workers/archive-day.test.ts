import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Writable } from 'node:stream';
import { DuckDBInstance } from '@duckdb/node-api';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { openDuckdb } from '../../../src/archive/duckdb.ts';
import { checksumSql, writeSql } from '../../../src/archive/parquet.ts';
import { type ArchiveDay, folderOf, formerPlaceOf } from '../../../src/domain/archive/file.ts';
import { ARCHIVE_KIND_NAMES, fileColumns } from '../../../src/domain/archive/kinds.ts';
import {
  isPartitionArchived,
  readDueDays,
  readPresentFile,
  switchArchiveOn,
} from '../../../src/store/archive/catalog.ts';
import { copyDay } from '../../../src/store/archive/copy.ts';
import { createTokens } from '../../../src/store/catalog/tokens.ts';
import { listPartitions, Partitions } from '../../../src/store/db/partitions.ts';
import { sql } from '../../../src/store/db/tx.ts';
import { archiveDay } from '../../../workers/jobs/archive-day.ts';
import { maintainStorage } from '../../../workers/jobs/maintain-storage.ts';
import { aStoredMarket } from '../../factories/stored-market.ts';
import { storedCandles, storedTrades } from '../../factories/stored-series.ts';
import { useTestDatabase } from '../../support/postgres/database.ts';
import { jobContext, testConfig, wakeRecorder } from './worker-harness.ts';

const DATE = '2026-03-05';
const START = Date.parse(`${DATE}T00:00:00Z`);
const DAY_MS = 86_400_000;

/** The ids of the processes of DuckDB that this one has. */
function duckdbProcesses(): number[] {
  const lines = execFileSync('ps', ['-A', '-ww', '-o', 'pid=,ppid=,args='], { encoding: 'utf8' }).split('\n');
  const ours = lines.filter(
    (line) => line.includes('archive/duckdb.js') && Number(line.trim().split(/\s+/)[1]) === process.pid,
  );
  return ours.map((line) => Number.parseInt(line.trim(), 10));
}

const test = useTestDatabase();
let dir = '';
let market: Awaited<ReturnType<typeof aStoredMarket>>;
/** The day of the first version of the market. */
let today = '';
const [WEIRD, HUGE] = ['a "quoted", id\nwith lines', `9${'0'.repeat(21)}.5`];

const INSERT_PRICE = sql(
  'test_archive_price',
  `INSERT INTO price_history (token_id, received_at, as_of, price, bid, ask) VALUES ($1, $2, $2, $3, $4, NULL)`,
);
const INSERT_BOOK = sql(
  'test_archive_book',
  `INSERT INTO book_history (token_id, received_at, as_of, bids, asks) VALUES ($1, $2, $2, $3, '[]')`,
);
const AGE_TOKENS = sql('test_age_tokens', 'UPDATE token SET created_at = $1');
const AGE_FILES = sql('test_age_files', `UPDATE archive_file SET made_at = made_at - interval '2 hours'`);
const SUPERSEDED = sql(
  'test_age_superseded',
  `UPDATE archive_file SET superseded_at = superseded_at - interval '25 hours'`,
);
const FOLD = sql(
  'test_archive_mark',
  `INSERT INTO mark (stage, shard, key, detail) VALUES ('fold-candles', 0, $1, $2)`,
);
const NO_MARKS = sql('test_archive_no_marks', `DELETE FROM mark WHERE stage = 'fold-candles'`);
const NO_DESCRIPTION = sql('test_undescribed', 'UPDATE archive_file SET described_at = NULL');
const FILL_PRICES = sql(
  'test_fill_prices',
  `INSERT INTO price_history (token_id, received_at, as_of, price)
   SELECT $1, $2::timestamptz + n * interval '400 milliseconds', $2::timestamptz, 0.5 FROM generate_series(1, 200000) AS n`,
);
const FORGET_CANDLES = sql('test_forget_candles', `DELETE FROM archive_file WHERE kind = 'candles'`);
const SETTLE = sql(
  'test_settle_coverage',
  `INSERT INTO coverage_settled (venue, kind, since, settled_to) VALUES ('polymarket', 'trades', $1, $1::timestamptz + interval '30 days')
   ON CONFLICT DO NOTHING`,
);
const JUDGE = sql(
  'test_judge_coverage',
  `INSERT INTO coverage AS c (venue, kind, hour, market_id, class, reason, stored, total, missing, tolerance, pause_ms, markets, checked_at)
   SELECT 'polymarket', 'trades', $1, m, $2, $3, 10.5, 12, 0, 0.25, 1500, 1, now() FROM unnest(ARRAY[0, $4::bigint]) AS m
   ON CONFLICT (venue, kind, hour, market_id) DO UPDATE SET class = excluded.class, reason = excluded.reason, checked_at = clock_timestamp()`,
);
const NO_CHANGES = sql('test_no_archive_changes', 'DELETE FROM archive_change');
const CHANGES = sql('test_archive_changes', 'SELECT kind, date::text AS date FROM archive_change');

const at = (seconds: number) => new Date(START + seconds * 1000);
const context = (producer = wakeRecorder(), variables: Record<string, string> = {}) =>
  jobContext({ db: test.db, config: testConfig(test.url, { ARCHIVE_DIR: dir, ...variables }), producer });
const dayOf = (kind: ArchiveDay['kind'], date = DATE): ArchiveDay => ({ kind, venue: 'polymarket', date });
const run = (kind: ArchiveDay['kind'], date = DATE) => archiveDay.run(dayOf(kind, date), context());
const pathOf = (day: ArchiveDay, file: string | null | undefined) => join(dir, folderOf(day), file ?? '');

async function read(statement: string): Promise<Record<string, unknown>[]> {
  const connection = await (await DuckDBInstance.create(':memory:')).connect();
  return (await connection.runAndReadAll(statement)).getRowObjectsJson();
}

beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), 'archive-'));
  market = await aStoredMarket(test.db, { marketId: 'm1' });
  today = new Date().toISOString().slice(0, 10);
  const [yes, no] = market.outcomes.map(({ tokenId }) => tokenId) as [bigint, bigint];
  await storedTrades(test.db, [
    { tokenId: yes, at: at(0), tradeId: WEIRD, price: '0.123456789012345678', size: '3', side: 'buy' },
    { tokenId: yes, at: new Date(START + DAY_MS - 1), tradeId: 'last', price: '0.5', size: HUGE, side: 'sell' },
    { tokenId: no, at: at(60), tradeId: 'plain', price: '0.1234567890123456789', size: '7', ordinal: 2 },
    { tokenId: no, at: at(-1), tradeId: 'the day before' },
    { tokenId: no, at: new Date(START + DAY_MS), tradeId: 'the day after' },
  ]);
  await storedCandles(test.db, yes, 60, [{ bucket: START / 1000, close: '0.5' }]);
  await storedCandles(test.db, yes, 3600, [{ bucket: START / 1000, close: '0.5' }]);
  await storedCandles(test.db, yes, 86_400, [{ bucket: START / 1000 - 86_400, close: '0.5' }]);
  const partitions = new Partitions(test.db);
  for (const table of ['price_history', 'book_history'] as const)
    await partitions.ensure(table, [START - DAY_MS, START]);
  await test.db.query(INSERT_PRICE, [yes, at(-100).toISOString(), '0.4', null]);
  await test.db.query(INSERT_PRICE, [yes, at(100).toISOString(), '0.5', '0.49']);
  await test.db.query(INSERT_BOOK, [yes, at(-5).toISOString(), '[["0.4", "10"]]']);
  await test.db.query(INSERT_BOOK, [yes, at(5).toISOString(), '[["0.41", "10", 3]]']);
  await test.db.query(AGE_TOKENS, [at(-DAY_MS / 1000).toISOString()]);
  await switchArchiveOn(test.db, ARCHIVE_KIND_NAMES);
});
afterAll(() => rm(dir, { recursive: true, force: true }));
afterEach(() => test.db.query(NO_MARKS));

describe('archive-day', () => {
  it('writes the trades of a day with all digits, and describes them in catalog and manifest', async () => {
    expect(await run('trades')).toMatchObject({ revision: 1, rows: 3 });
    const file = await readPresentFile(test.db, dayOf('trades'));
    const path = pathOf(dayOf('trades'), file?.file);
    const bytes = await readFile(path);
    expect(file).toMatchObject({ rows: 3, bytes: bytes.length, schemaVersion: 1, start: at(0), inEffect: 0 });
    expect(file?.sha256).toBe(createHash('sha256').update(bytes).digest('hex'));
    const rows =
      await read(`SELECT trade_id, price::VARCHAR AS price, price_text, size_text, side, ordinal, epoch_us(ts)::VARCHAR AS us,
      venue FROM read_parquet('${dir}/trades/*/*/*.parquet', hive_partitioning = true) ORDER BY ts`);
    expect(rows).toEqual([
      expect.objectContaining({
        trade_id: WEIRD,
        price: '0.123456789012345678',
        price_text: null,
        side: 'buy',
        us: `${START}000`,
      }),
      expect.objectContaining({
        trade_id: 'plain',
        price: null,
        price_text: '0.1234567890123456789',
        side: null,
        ordinal: 2,
      }),
      expect.objectContaining({
        trade_id: 'last',
        price: '0.500000000000000000',
        size_text: HUGE,
        venue: 'polymarket',
      }),
    ]);
    const manifest = JSON.parse(await readFile(join(dir, folderOf(dayOf('trades')), 'manifest.json'), 'utf8'));
    expect(manifest).toMatchObject({ kind: 'trades', files: [{ file: file?.file, rows: 3, sha256: file?.sha256 }] });
    expect(await readdir(join(dir, '.work'))).toEqual([]);
  });

  it('begins prices and books with the value in effect', async () => {
    await run('prices');
    await run('books');
    const prices = await read(`SELECT price::VARCHAR AS price, bid::VARCHAR AS bid, in_effect FROM read_parquet(
      '${dir}/prices/*/*/*.parquet') ORDER BY received_at`);
    expect(prices).toEqual([
      { price: '0.400000000000000000', bid: null, in_effect: true },
      { price: '0.500000000000000000', bid: '0.490000000000000000', in_effect: false },
    ]);
    const books = await read(
      `SELECT bids, in_effect FROM read_parquet('${dir}/books/*/*/*.parquet') ORDER BY received_at`,
    );
    expect(books.map(({ bids }) => JSON.parse(String(bids)))).toEqual([[['0.4', '10']], [['0.41', '10', 3]]]);
    expect(await readPresentFile(test.db, dayOf('prices'))).toMatchObject({ rows: 2, inEffect: 1, start: at(100) });
  });

  it('writes candles of a minute and of five minutes, versions and resolutions', async () => {
    expect(await run('candles')).toMatchObject({ rows: 1 });
    expect(await run('markets', today)).toMatchObject({ rows: 1 });
    expect(await run('resolutions', today)).toMatchObject({ rows: 0 });
    const [version] = await read(`SELECT market_id, title, facts FROM read_parquet('${dir}/markets/*/*/*.parquet')`);
    expect(version).toMatchObject({ market_id: 'm1', title: 'Will it rain?' });
    expect(JSON.parse(String(version?.['facts']))['outcomes']).toHaveLength(2);
  });

  it('states a day without rows in the catalog, without a file', async () => {
    expect(await run('trades', '2026-03-07')).toMatchObject({ rows: 0, bytes: 0 });
    expect(await readPresentFile(test.db, dayOf('trades', '2026-03-07'))).toMatchObject({
      file: null,
      rows: 0,
      sha256: null,
    });
    expect(existsSync(join(dir, folderOf(dayOf('trades', '2026-03-07'))))).toBe(false);
  });

  it('makes a new revision when a late trade arrives, and keeps the former file for a day', async () => {
    await run('trades');
    const before = await readPresentFile(test.db, dayOf('trades'));
    expect(await run('trades')).toMatchObject({ skipped: 'unchanged' });
    const [, no] = market.outcomes;
    await storedTrades(test.db, [{ tokenId: no?.tokenId ?? 0n, at: at(90), tradeId: 'late' }]);
    expect(await test.db.query(CHANGES)).toContainEqual({ kind: 'trades', date: DATE });
    const due = () => readDueDays(test.db, { pairs: [dayOf('trades')], afterHours: 6, limit: 500 });
    // The first run of this test made the files of the days around it an hour ago at most.
    expect((await due()).filter(({ date }) => date === DATE)).toEqual([]);
    await test.db.query(AGE_FILES);
    expect(await due()).toContainEqual(dayOf('trades'));
    expect(await run('trades')).toMatchObject({ revision: 2, rows: 4 });
    expect((await test.db.query<{ date: string }>(CHANGES)).filter(({ date }) => date === DATE)).toEqual([]);
    const present = await readPresentFile(test.db, dayOf('trades'));
    const names = async () => (await readdir(join(dir, folderOf(dayOf('trades'))))).toSorted();
    expect(await names()).toEqual(['manifest.json', present?.file]);
    const former = join(dir, formerPlaceOf(before?.file ?? ''));
    expect(existsSync(former)).toBe(true);
    // A process died between the catalog and the folder.
    await rename(former, pathOf(dayOf('trades'), before?.file));
    await rename(pathOf(dayOf('trades'), present?.file), join(dir, formerPlaceOf(present?.file ?? '')));
    await test.db.query(NO_DESCRIPTION);
    await maintainStorage.run({}, context());
    expect(await names()).toEqual(['manifest.json', present?.file]);
    expect(existsSync(former)).toBe(true);
    await test.db.query(SUPERSEDED);
    await maintainStorage.run({}, context());
    expect(existsSync(former)).toBe(false);
  });

  it('keeps the file that counts when several processes archive one day at once', async () => {
    const day = dayOf('candles', '2026-03-05');
    await test.db.query(FORGET_CANDLES);
    const reports = await Promise.all([1, 2, 3].map(() => archiveDay.run(day, context())));
    expect(reports.filter((report) => report['revision'] === 1)).toHaveLength(1);
    expect(existsSync(pathOf(day, (await readPresentFile(test.db, day))?.file))).toBe(true);
  });

  it('waits while trades of the day are not in their candles', async () => {
    await test.db.query(FOLD, [market.outcomes[0]?.tokenId, START / 1000 + 120]);
    expect(await run('candles')).toMatchObject({ skipped: 'trades are not in their candles' });
  });

  it('leaves no file and no row when the folder cannot be written, and names the folder', async () => {
    const blocked = join(dir, 'blocked');
    await writeFile(blocked, '');
    const failing = archiveDay.run(dayOf('prices', '2026-03-06'), context(wakeRecorder(), { ARCHIVE_DIR: blocked }));
    await expect(failing).rejects.toThrow(/blocked/);
    expect(await readPresentFile(test.db, dayOf('prices', '2026-03-06'))).toBeUndefined();
  });

  it('has a checksum that both readers of a file compute, and that one changed digit changes', async () => {
    const duckdb = await openDuckdb(
      { folders: [`${dir}/`], spillFolder: join(dir, 'spill'), memoryMb: 256, threads: 1 },
      new AbortController().signal,
    );
    const columns = fileColumns('resolutions');
    const checksums = [];
    for (const digit of [1, 2]) {
      const csv = join(dir, `${digit}.csv`);
      const parquet = join(dir, `${digit}.parquet`);
      await writeFile(csv, `"m","${digit}","proposed","proposed",,"-1","${START}000","","[]","a","{}"\n`);
      await duckdb.run(writeSql(dayOf('resolutions'), csv, parquet));
      const [byDuckdb] = await duckdb.run(checksumSql('resolutions', parquet));
      expect(await duckdb.digest(parquet, columns)).toEqual(byDuckdb);
      checksums.push(byDuckdb?.['checksum']);
    }
    expect(checksums[0]).not.toBe(checksums[1]);
    await expect(duckdb.run(`SELECT * FROM read_csv('/etc/hostname')`)).rejects.toThrow(/disabled by configuration/);
    await expect(duckdb.run('SET threads = 8')).rejects.toThrow(/locked/);
    await expect(duckdb.run('INSTALL httpfs')).rejects.toThrow(/disabled by configuration/);
    await duckdb.run('CREATE TABLE left_over (n int)');
    await duckdb.close();
    const other = join(dir, 'other');
    const next = await openDuckdb(
      { folders: [`${other}/`], spillFolder: join(other, 'spill'), memoryMb: 128, threads: 2 },
      new AbortController().signal,
    );
    await expect(duckdb.run('SELECT 1')).rejects.toThrow(/DuckDB is closed/);
    await expect(next.run('FROM left_over')).rejects.toThrow(/does not exist/);
    expect(await next.run(`SELECT current_setting('threads') AS threads`)).toEqual([{ threads: '2' }]);
    const outside = next.run(`SELECT * FROM read_parquet('${join(dir, '1.parquet')}')`);
    await expect(outside).rejects.toThrow(/disabled by configuration/);
    await next.close();
  });

  it('ends its process of DuckDB when the signal fires, also one that worked before', async () => {
    const limits = { folders: [`${dir}/`], spillFolder: '', memoryMb: 256, threads: 1 };
    await (await openDuckdb(limits, new AbortController().signal)).close();
    const stop = new AbortController();
    const duckdb = await openDuckdb(limits, stop.signal);
    const endless = duckdb.run('SELECT sum(hash(a.range + b.range)) FROM range(1000000000) a, range(1000000000) b');
    stop.abort();
    await expect(endless).rejects.toThrow(/ended \(SIGKILL\)/);
    await duckdb.close();
  });

  it('starts another process of DuckDB when the system has killed the one that worked before', async () => {
    const limits = { folders: [`${dir}/`], spillFolder: '', memoryMb: 256, threads: 1 };
    const open = () => openDuckdb(limits, new AbortController().signal);
    await (await open()).close();
    const [resting] = duckdbProcesses();
    if (resting === undefined) throw new Error('no process rests');
    process.kill(resting, 'SIGKILL');
    // Before this process learns of the end.
    const duckdb = await open();
    expect(await duckdb.run('SELECT 1 AS one')).toEqual([{ one: 1 }]);
    expect(duckdbProcesses()).not.toContain(resting);
    await duckdb.close();
  });

  it('ends with the error of the disk, also in the middle of a large copy, and leaves the connection usable', async () => {
    const [yes] = market.outcomes;
    const day = dayOf('prices', '2026-03-09');
    await test.db.query(FILL_PRICES, [yes?.tokenId, `${day.date}T00:00:00Z`]);
    const full = () => new Writable({ write: (_chunk, _encoding, done) => done(new Error('no space left on device')) });
    await expect(copyDay(test.db, day, full, new AbortController().signal)).rejects.toThrow('no space left on device');
    const stopped = new AbortController();
    const slow = () => new Writable({ highWaterMark: 1, write: () => stopped.abort() });
    await expect(copyDay(test.db, day, slow, stopped.signal)).rejects.toThrow(/abort/i);
    expect(await Promise.all(Array.from({ length: 12 }, () => test.db.query(CHANGES)))).toHaveLength(12);
  });

  it('writes the coverage of a day, and again when a judgement changed', async () => {
    const day = dayOf('coverage');
    const judge = (name: string, reason: string | null) => test.db.query(JUDGE, [at(3_600), name, reason, market.pk]);
    const noted = async () =>
      (await test.db.query<{ kind: string }>(CHANGES)).filter(({ kind }) => kind === 'coverage');
    const due = async () => {
      await test.db.query(AGE_FILES);
      return (await readDueDays(test.db, { pairs: [day], afterHours: 6, limit: 500 })).filter(
        ({ date }) => date === DATE,
      );
    };
    await test.db.query(SETTLE, [at(0)]);
    expect(await due()).toEqual([day]);
    await judge('unknown', 'imprecise');
    expect(await run('coverage')).toMatchObject({ revision: 1, rows: 2 });
    const rows =
      await read(`SELECT market_id, kind, class, reason, stored::VARCHAR AS stored, longest_pause::VARCHAR AS pause,
      epoch_us(start)::VARCHAR AS us FROM read_parquet('${dir}/coverage/*/*/*.parquet') ORDER BY market_id NULLS FIRST`);
    const hour = { kind: 'trades', class: 'unknown', reason: 'imprecise', stored: '10.500000000000000000' };
    const us = `${at(3_600).getTime()}000`;
    expect(rows).toEqual([null, 'm1'].map((id) => ({ market_id: id, ...hour, pause: '1.500000000000000000', us })));
    expect([await noted(), await due()]).toEqual([[], []]);
    await judge('unknown', 'imprecise');
    expect([await noted(), await due()]).toEqual([[], []]);
    await judge('complete', null);
    expect([await noted(), await due()]).toEqual([[{ kind: 'coverage', date: DATE }], [day]]);
    expect(await run('coverage')).toMatchObject({ revision: 2, rows: 2 });
    expect([await noted(), await due()]).toEqual([[], []]);
  });

  it("describes a day of trades with the venue's totals, and gives the reason when there are none", async () => {
    const manifestOf = async (day: ArchiveDay) => {
      const { files } = JSON.parse(await readFile(join(dir, folderOf(day), 'manifest.json'), 'utf8'));
      return files[0];
    };
    await test.db.query(SETTLE, [at(0)]);
    await test.db.query(JUDGE, [at(7_200), 'complete', null, market.pk]);
    const [, no] = market.outcomes;
    await storedTrades(test.db, [{ tokenId: no?.tokenId ?? 0n, at: at(91), tradeId: 'for the witness' }]);
    await run('trades');
    const { witness, witness_reason: reason } = await manifestOf(dayOf('trades'));
    expect(witness).toMatchObject({ total: null, missing: '0', hours: { gap: 0, quiet: 0 } });
    expect(witness.hours.complete + witness.hours.open).toBe(24);
    expect(reason).toBeNull();
    await run('trades', '2026-03-04');
    expect(await manifestOf(dayOf('trades', '2026-03-04'))).toMatchObject({
      witness: null,
      witness_reason: 'not_settled',
    });
    await run('prices');
    expect(await manifestOf(dayOf('prices'))).toMatchObject({ witness: null, witness_reason: 'not_trades' });
  });

  it('refuses a file of a newer schema when it reads it back', async () => {
    const duckdb = await openDuckdb(
      { folders: [`${dir}/`], spillFolder: join(dir, 'spill'), memoryMb: 256, threads: 1 },
      new AbortController().signal,
    );
    const path = join(dir, 'newer.parquet');
    const write = (schema: string) =>
      duckdb.run(`COPY (SELECT 1 AS n) TO '${path}' (FORMAT parquet, KV_METADATA {${schema}})`);
    const columns = [{ name: 'n', type: 'integer' }] as const;
    await write("oddswire_schema: '1', kind: 'trades'");
    expect(await duckdb.digest(path, columns)).toMatchObject({ rows: '1' });
    await write("oddswire_schema: '2'");
    await expect(duckdb.digest(path, columns)).rejects.toThrow(/schema version 2; this release reads versions up to 1/);
    await write("kind: 'trades'");
    await expect(duckdb.digest(path, columns)).rejects.toThrow(/no oddswire_schema/);
    await writeFile(path, 'short');
    await expect(duckdb.digest(path, columns)).rejects.toThrow(/not a whole file/);
    await duckdb.close();
  });

  it('does nothing without a folder', async () => {
    const off = jobContext({ db: test.db, config: testConfig(test.url), producer: wakeRecorder() });
    expect(await archiveDay.run(dayOf('trades'), off)).toEqual({ skipped: 'off' });
  });
});

describe('maintain-storage with an archive', () => {
  it('wakes the first due day of each kind and venue, and finishes manifests that a death left open', async () => {
    await mkdir(join(dir, '.work'), { recursive: true });
    await run('trades');
    const manifest = join(dir, folderOf(dayOf('trades')), 'manifest.json');
    await rm(manifest);
    await test.db.query(NO_DESCRIPTION);
    const woken: unknown[] = [];
    await maintainStorage.run({}, context({ ...wakeRecorder(), wake: (_name, data) => void woken.push(data) }));
    expect(existsSync(manifest)).toBe(true);
    expect(woken).toContainEqual({ kind: 'candles', venue: 'polymarket', date: '2026-03-06' });
    expect(woken.every((data) => (data as { venue: string }).venue === 'polymarket')).toBe(true);
  });

  it('keeps a partition past its retention until its rows are in files', async () => {
    const variables = { RETENTION_PRICE_HISTORY_DAYS: '30' };
    const names = async () => (await listPartitions(test.db, 'price_history')).map(({ name }) => name);
    const [yes] = market.outcomes;
    await test.db.query(INSERT_PRICE, [yes?.tokenId, new Date(START + DAY_MS + 1).toISOString(), '0.6', null]);
    await maintainStorage.run({}, context(wakeRecorder(), variables));
    expect(await names()).toContain('price_history_202603');
    for (const date of ['2026-03-04', DATE, '2026-03-06', '2026-03-09']) await run('prices', date);
    await maintainStorage.run({}, context(wakeRecorder(), variables));
    expect(await names()).not.toContain('price_history_202603');
  });

  it('keeps a partition with a trade that no file has, also when the files count more trades at its first moment', async () => {
    const at = new Date('2026-01-01T00:00:00Z');
    const [yes] = market.outcomes;
    await storedTrades(test.db, [
      { tokenId: yes?.tokenId ?? 0n, at, tradeId: 'first' },
      { tokenId: yes?.tokenId ?? 0n, at, tradeId: 'second' },
    ]);
    await run('trades', '2026-01-01');
    const [partition] = await listPartitions(test.db, 'trade');
    expect(partition?.name).toBe('trade_202601');
    await test.db.query(NO_CHANGES);
    const isArchived = () => isPartitionArchived(test.db, 'trades', partition as NonNullable<typeof partition>);
    expect(await isArchived()).toBe(true);
    const [unlisted = 0n] = await createTokens(test.db, ['unlisted'], 'USDC');
    await storedTrades(test.db, [{ tokenId: unlisted, at: new Date('2026-01-29T00:00:00Z'), tradeId: 'of no market' }]);
    await test.db.query(NO_CHANGES);
    expect(await isArchived()).toBe(false);
  });
});
