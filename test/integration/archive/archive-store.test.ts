import { mkdtemp, readdir, readFile, rm, stat, truncate, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { ArchiveFolder } from '../../../api/reads/archive-folder.ts';
import { checkArchive } from '../../../src/archive/check/check-archive.ts';
import { makeDay } from '../../../src/archive/make-day.ts';
import { adoptFolder } from '../../../src/archive/owner.ts';
import { FetchedFiles } from '../../../src/archive/store/fetched-files.ts';
import { storeOf } from '../../../src/archive/store/s3.ts';
import { type ArchiveDay, folderOf } from '../../../src/domain/archive/file.ts';
import { createLogger } from '../../../src/observe/logger.ts';
import { readPresentFile, switchArchiveOn } from '../../../src/store/archive/catalog.ts';
import { type CatalogFile, findFile } from '../../../src/store/archive/file-list.ts';
import { readArchiveState } from '../../../src/store/archive/state.ts';
import { sql } from '../../../src/store/db/tx.ts';
import { archiveDay } from '../../../workers/jobs/archive-day.ts';
import { maintainStorage } from '../../../workers/jobs/maintain-storage.ts';
import { assertOwnFolder } from '../../../workers/process/archiving.ts';
import { anArchivedDay } from '../../factories/archive.ts';
import { aStoredMarket } from '../../factories/stored-market.ts';
import { storedTrades } from '../../factories/stored-series.ts';
import { eventually } from '../../support/eventually.ts';
import { forTests } from '../../support/for-tests.ts';
import { createTestDatabase, useTestDatabase } from '../../support/postgres/database.ts';
import { startFaultProxy } from '../../support/s3/fault-proxy.ts';
import { hasS3, startS3 } from '../../support/s3/server.ts';
import { startTestApi, type TestApi } from '../api/api-harness.ts';
import { oddswire } from '../bin/run-command.ts';
import { capturedLog, jobContext, testConfig } from '../workers/worker-harness.ts';

const DATE = '2026-03-05';
const DAY: ArchiveDay = { kind: 'trades', venue: 'kalshi', date: DATE };
const NEXT: ArchiveDay = { ...DAY, date: '2026-03-06' };
const WIPE = ['archive_file', 'archive_failure', 'archive_change', 'trade'].map((table) =>
  sql(`test_store_wipe_${table}`, `DELETE FROM ${table}`),
);
const FORMER_RELEASE = sql('test_store_former_release', 'UPDATE archive_file SET stored_in = NULL');
const LONG_AGO = sql(
  'test_store_long_ago',
  `UPDATE archive_file SET made_at = made_at - interval '2 days', superseded_at = superseded_at - interval '2 days'`,
);
const { signal } = new AbortController();

describe.skipIf(!hasS3())('an archive with an object store', () => {
  const server = forTests(startS3, (started) => started.close());
  const proxy = forTests(
    () => startFaultProxy(server.url),
    (started) => started.close(),
  );
  const test = useTestDatabase();
  const second = forTests(createTestDatabase, (database) => database.drop());
  const api = forTests<TestApi>(
    () => startTestApi(),
    (started) => started.close(),
  );
  let dir = '';
  let elsewhere = '';
  let token = 0n;
  let tests = 0;

  const configOf = (folder = dir, url = test.url) =>
    testConfig(url, {
      ARCHIVE_DIR: folder,
      ARCHIVE_URL: `s3://${server.bucket}/test-${tests}`,
      ARCHIVE_S3_ENDPOINT: proxy.url,
      ARCHIVE_S3_ACCESS_KEY_ID: server.key.accessKeyId,
      ARCHIVE_S3_SECRET_ACCESS_KEY: server.key.secretAccessKey,
      VENUES: 'kalshi',
    });
  const contextOf = (config = configOf()) => {
    const { log, lines } = capturedLog();
    return { context: jobContext({ db: test.db, config, log }), lines };
  };
  const run = (day = DAY) => archiveDay.run(day, contextOf().context);
  const maintain = (folder = dir) => maintainStorage.run({}, contextOf(configOf(folder)).context);
  const objects = async () => {
    const store = storeOf(configOf());
    return (await store?.list('', signal))?.map(({ key }) => key) ?? [];
  };
  const placeIn = (name: string, day = DAY) => `${folderOf(day)}/${name}`;
  const present = async (day = DAY) => {
    const row = await readPresentFile(test.db, day);
    if (row?.file === undefined || row.file === null) throw new Error('the day has no file');
    return { ...row, file: row.file };
  };
  const catalogFile = async (day = DAY) => (await findFile(test.db, (await present(day)).file)) as CatalogFile;
  const log = createLogger({ process: 'test', level: 'silent' });
  const folderOn = (folder: string, options: Partial<ConstructorParameters<typeof FetchedFiles>[0]> = {}) => {
    const store = storeOf(configOf(folder));
    if (store === undefined) throw new Error('the configuration has no store');
    return new ArchiveFolder(folder, log, new FetchedFiles({ dir: folder, store, maxBytes: 1e9, signal, ...options }));
  };
  const contentOf = async (folder: ArchiveFolder, file: CatalogFile) => readFile(await folder.pathOf(file));
  const check = async (isRepair = false, folder = dir) => {
    const options = { db: test.db, dir: folder, store: storeOf(configOf()), filter: {}, log, signal, tag: 'check' };
    const { findings } = await checkArchive({ ...options, isRepair, onDay: () => undefined });
    return findings.map(({ place, problem, isRepaired }) => [place.split('/').at(-1), problem, isRepaired]);
  };
  const trade = (id: string, date = DATE) =>
    storedTrades(test.db, [{ tokenId: token, at: new Date(`${date}T12:00:00Z`), tradeId: id }]);

  beforeEach(async () => {
    tests += 1;
    proxy.requests.length = 0;
    dir = await mkdtemp(join(tmpdir(), 'archive-store-'));
    elsewhere = await mkdtemp(join(tmpdir(), 'archive-elsewhere-'));
    if (token === 0n) {
      const market = await aStoredMarket(test.db, { venue: 'kalshi', marketId: 'K-1' });
      token = market.outcomes[0]?.tokenId ?? 0n;
      await switchArchiveOn(test.db, ['trades']);
    }
    for (const statement of WIPE) await test.db.query(statement);
    await trade('first');
    await trade('next', NEXT.date);
  });
  afterEach(async () => {
    proxy.heal();
    for (const folder of [dir, elsewhere]) await rm(folder, { recursive: true, force: true });
  });

  describe('archive-day', () => {
    it('stores the file before its row, and the manifest after it', async () => {
      expect(await run()).toMatchObject({ revision: 1, rows: 1 });
      const { file, storedIn } = await present();
      expect(storedIn).toBe(`s3://${server.bucket}/test-${tests}/`);
      expect(await objects()).toEqual(['.owner', placeIn('manifest.json'), placeIn(file)].sort());
      for (const name of ['manifest.json', file]) {
        const object = await readFile(join(server.folder, `test-${tests}`, placeIn(name)));
        expect([name, object.equals(await readFile(join(dir, placeIn(name))))]).toEqual([name, true]);
      }
      expect(await check()).toEqual([]);
    });

    it.each(['error', 'half'] as const)(
      'fails and leaves nothing behind when the store answers with %s',
      async (fault) => {
        proxy.fail(fault, fault === 'error' ? /parquet/ : /^(PUT|GET) /);
        await expect(run()).rejects.toMatchObject({ code: 'store_unavailable' });
        expect((await readArchiveState(test.db)).failures).toMatchObject([
          { ...DAY, code: 'store_unavailable', message: expect.stringContaining('the object store') },
        ]);
        expect(await readPresentFile(test.db, DAY)).toBeUndefined();
        expect((await readdir(dir, { recursive: true })).filter((name) => name.endsWith('.parquet'))).toEqual([]);
        proxy.heal();
        expect(await run()).toMatchObject({ revision: 1, rows: 1 });
        expect((await readArchiveState(test.db)).failures).toEqual([]);
      },
    );

    it('uses the object of a run that died after its upload', async () => {
      const dying = new AbortController();
      proxy.fail('silence', /^HEAD .*parquet/, 1, 1);
      const options = { db: test.db, dir, store: storeOf(configOf()), log, tag: 'dying' };
      const dead = makeDay(DAY, { ...options, signal: dying.signal });
      dead.catch(() => undefined);
      const isUploaded = async () => proxy.requests.filter((each) => /^HEAD .*parquet/.test(each)).length === 2;
      await eventually(isUploaded, (isDone) => isDone);
      dying.abort(new Error('killed'));
      await expect(dead).rejects.toThrow('killed');
      expect(await readPresentFile(test.db, DAY)).toBeUndefined();
      proxy.heal();
      expect(await run()).toMatchObject({ revision: 1, rows: 1 });
      expect(proxy.requests.filter((each) => /^PUT .*parquet/.test(each))).toHaveLength(1);
      expect(await check()).toEqual([]);
    });

    it('moves a former revision to the former ones, and maintain-storage removes it', async () => {
      await run();
      const former = await catalogFile();
      await trade('late');
      await run();
      expect(await present()).toMatchObject({ revision: 2, rows: 2 });
      expect(await objects()).toContain(`.former/${former.file}`);
      expect(await objects()).not.toContain(placeIn(former.file));
      expect((await contentOf(folderOn(elsewhere), { ...former, isSuperseded: true })).length).toBe(former.bytes);
      expect(await check()).toEqual([]);
      await test.db.query(LONG_AGO);
      await maintain();
      expect((await objects()).filter((key) => key.includes(former.file))).toEqual([]);
    });
  });

  describe('maintain-storage', () => {
    it('uploads the files of a former release, and those of an archive that had no store', async () => {
      const { context } = contextOf(testConfig(test.url, { ARCHIVE_DIR: dir, VENUES: 'kalshi' }));
      for (const day of [DAY, NEXT]) await archiveDay.run(day, context);
      expect(await present()).toMatchObject({ storedIn: null });
      await maintain();
      expect((await objects()).filter((key) => key.endsWith('.parquet'))).toHaveLength(2);
      await test.db.query(FORMER_RELEASE);
      const puts = proxy.requests.filter((each) => each.startsWith('PUT')).length;
      await maintain();
      expect((await present()).storedIn).not.toBeNull();
      expect(proxy.requests.filter((each) => each.startsWith('PUT'))).toHaveLength(puts);
      expect(await check()).toEqual([]);
    });

    it('uploads the other days when one file is damaged, and reports the damage', async () => {
      const { context } = contextOf(testConfig(test.url, { ARCHIVE_DIR: dir, VENUES: 'kalshi' }));
      for (const day of [DAY, NEXT]) await archiveDay.run(day, context);
      const { file } = await present();
      await truncate(join(dir, placeIn(file)), 100);
      await expect(maintain()).rejects.toMatchObject({ code: 'store_unavailable' });
      expect((await present(NEXT)).storedIn).not.toBeNull();
      expect((await present()).storedIn).toBeNull();
      expect((await readArchiveState(test.db)).failures).toMatchObject([{ kind: '', code: 'store_unavailable' }]);
    });
  });

  describe('the aggregator', () => {
    it('continues on another machine with an empty folder', async () => {
      await run();
      await run(NEXT);
      await maintain(elsewhere);
      await trade('late');
      await archiveDay.run(DAY, contextOf(configOf(elsewhere)).context);
      expect(await present()).toMatchObject({ revision: 2, rows: 2 });
      expect(await check(false, elsewhere)).toEqual(
        expect.arrayContaining([[(await present(NEXT)).file, 'is missing', false]]),
      );
      expect((await check(true, elsewhere)).filter(([, , isRepaired]) => !isRepaired)).toEqual([]);
      expect(await check(false, elsewhere)).toEqual([]);
    });

    it('makes no folder in place of one that is not mounted while a file is not in the store', async () => {
      await run();
      await test.db.query(FORMER_RELEASE);
      await expect(maintain(elsewhere)).rejects.toMatchObject({ code: 'archive_folder_gone' });
    });

    it('ends its start when the store belongs to another database', async () => {
      await run();
      const { context } = contextOf(configOf(elsewhere, second.url));
      await expect(assertOwnFolder({ ...context, db: second.db })).rejects.toMatchObject({
        code: 'startup',
        message: expect.stringMatching(/ARCHIVE_URL s3:.* belongs to the database/),
      });
      expect(await readdir(elsewhere)).toEqual([]);
    });

    it('gives the store to another database with archive adopt', async () => {
      await run();
      await adoptFolder(elsewhere, second.db, storeOf(configOf()));
      const { context } = contextOf(configOf(elsewhere, second.url));
      await assertOwnFolder({ ...context, db: second.db });
      await expect(run(NEXT)).rejects.toMatchObject({ code: 'archive_other_owner' });
    });

    it('starts and logs the cause when the store fails', async () => {
      proxy.fail('error', /./);
      const { context, lines } = contextOf();
      await assertOwnFolder(context);
      expect(lines.join('')).toMatch(/store_unavailable.*no archive until its folder or object store is repaired/s);
      expect(lines.join('')).not.toContain(server.key.secretAccessKey);
    });
  });

  describe('ArchiveFolder', () => {
    it('fetches a file once for all requests of a machine, and again on another one', async () => {
      await run();
      const file = await catalogFile();
      const expected = await readFile(join(dir, placeIn(file.file)));
      proxy.requests.length = 0;
      const gets = () => proxy.requests.filter((each) => /^GET .*parquet/.test(each)).length;
      const folder = folderOn(elsewhere);
      const paths = await Promise.all(Array.from({ length: 10 }, () => folder.pathOf(file)));
      expect([new Set(paths).size, gets()]).toEqual([1, 1]);
      expect((await readFile(paths[0] ?? '')).equals(expected)).toBe(true);
      await contentOf(folderOn(elsewhere), file);
      expect(gets()).toBe(1);
      const third = await mkdtemp(join(tmpdir(), 'archive-third-'));
      expect((await contentOf(folderOn(third), file)).equals(expected)).toBe(true);
      expect(gets()).toBe(2);
      await rm(third, { recursive: true });
      await contentOf(folderOn(dir), file);
      expect(gets()).toBe(2);
    });

    it.each(['error', 'half', 'changed'] as const)(
      'answers 503 when the store answers with %s, then the file',
      async (fault) => {
        await run();
        const file = await catalogFile();
        const folder = folderOn(elsewhere);
        proxy.fail(fault, /^GET/);
        await expect(folder.pathOf(file)).rejects.toMatchObject({
          code: 'archive_unavailable',
          details: [{ path: 'file', message: 'store_unavailable' }],
        });
        expect(await readdir(join(elsewhere, '.fetched'))).toEqual([]);
        proxy.heal();
        expect((await contentOf(folder, file)).length).toBe(file.bytes);
      },
    );

    it('answers 503 when the store is slow, and keeps the fetch for later requests', async () => {
      await run();
      const file = await catalogFile();
      const folder = folderOn(elsewhere, { waitMs: 20 });
      proxy.requests.length = 0;
      proxy.fail('silence', /^GET/, 1);
      const slow = { code: 'archive_unavailable', details: [{ message: 'store_unavailable' }] };
      await expect(folder.pathOf(file)).rejects.toMatchObject(slow);
      proxy.heal();
      await eventually(
        () => readdir(join(elsewhere, '.fetched')),
        (names) => names.includes(file.file),
      );
      expect((await contentOf(folder, file)).length).toBe(file.bytes);
      expect(proxy.requests.filter((each) => /^GET .*parquet/.test(each))).toHaveLength(1);
    });

    it('fetches a file again when the disk changed it', async () => {
      await run();
      const file = await catalogFile();
      const folder = folderOn(elsewhere);
      await writeFile(await folder.pathOf(file), Buffer.alloc(file.bytes));
      await expect(folder.pathOf(file)).rejects.toMatchObject({ details: [{ message: 'other_content' }] });
      expect((await contentOf(folder, file)).equals(await readFile(join(dir, placeIn(file.file))))).toBe(true);
    });

    it('removes the least recently used files when they exceed the limit, and no file of the aggregator', async () => {
      await run();
      await run(NEXT);
      const [file, next] = [await catalogFile(), await catalogFile(NEXT)];
      await trade('third', '2026-03-07');
      await run({ ...DAY, date: '2026-03-07' });
      const third = await catalogFile({ ...DAY, date: '2026-03-07' });
      const names = () => readdir(join(elsewhere, '.fetched'));
      const limits = { maxBytes: file.bytes + next.bytes + third.bytes - 1, inUseMs: 0 };
      const folder = folderOn(elsewhere, limits);
      for (const each of [file, next]) {
        const path = await folder.pathOf(each);
        await utimes(path, new Date(0), (await stat(path)).mtime);
      }
      await folder.pathOf(file);
      await folder.pathOf(third);
      expect((await names()).sort()).toEqual([file.file, third.file].sort());
      const patient = folderOn(elsewhere, { ...limits, inUseMs: 3_600_000 });
      await patient.pathOf(next);
      expect(await names()).toHaveLength(3);
      const local = await readdir(dir, { recursive: true });
      const own = folderOn(dir, { maxBytes: 1, inUseMs: 0 });
      for (const each of [file, next, third]) await own.pathOf(each);
      expect(await readdir(dir, { recursive: true })).toEqual(local);
    });

    it('serves a download of a file that another machine made', async () => {
      const file = await anArchivedDay(api.db, dir, { date: DATE });
      const content = { bytes: file.content.length, sha256: file.sha256 };
      await storeOf(configOf())?.putFile(placeIn(file.file, file), file.path, content, signal);
      const remote = await startTestApi({ archive: folderOn(elsewhere) }, { beside: api });
      try {
        const { key } = await api.client(['archive']);
        const download = () =>
          fetch(`${remote.url}/v1/archive/${file.file}`, { headers: { Authorization: `Bearer ${key}` } });
        proxy.fail('error', /^GET/);
        const failed = await download();
        expect([failed.status, await failed.json()]).toMatchObject([503, { error: { code: 'archive_unavailable' } }]);
        proxy.heal();
        const answer = await download();
        expect([answer.status, Buffer.from(await answer.arrayBuffer()).equals(file.content)]).toEqual([200, true]);
        remote.checkAnswers();
      } finally {
        await remote.close();
      }
    });
  });

  describe('checkArchive', () => {
    it('finds missing, changed and unknown objects, and repairs those that the folder has', async () => {
      await run();
      await run(NEXT);
      const { file } = await present();
      const next = await present(NEXT);
      const store = storeOf(configOf());
      await store?.remove(placeIn(file), signal);
      await store?.putText(placeIn(next.file, NEXT), 'x'.repeat(next.bytes), signal);
      await store?.putText(placeIn('manifest.json'), '{}', signal);
      await store?.putText(placeIn('unknown.txt'), 'unknown', signal);
      await store?.putText('elsewhere/unknown.txt', 'unknown', signal);
      const found = [
        [file, 'is missing'],
        ['manifest.json', 'is not that of the folder'],
        [next.file, 'has another sha256 than the catalog states'],
      ];
      const unknown = ['unknown.txt', 'no row of the catalog names it', false];
      const sorted = (rows: unknown[][]) => rows.map(String).sort();
      expect(sorted(await check())).toEqual(sorted([...found.map((each) => [...each, false]), unknown, unknown]));
      expect(sorted(await check(true))).toEqual(sorted([...found.map((each) => [...each, true]), unknown, unknown]));
      expect(await check()).toEqual([unknown, unknown]);
    });

    it('is what oddswire archive check runs, which prints no secret', async () => {
      await run();
      const { file } = await present();
      await storeOf(configOf())?.remove(placeIn(file), signal);
      const environment = {
        DATABASE_URL: test.url,
        ARCHIVE_DIR: dir,
        ARCHIVE_URL: `s3://${server.bucket}/test-${tests}`,
        ARCHIVE_S3_ENDPOINT: proxy.url,
        ARCHIVE_S3_ACCESS_KEY_ID: server.key.accessKeyId,
        ARCHIVE_S3_SECRET_ACCESS_KEY: server.key.secretAccessKey,
      };
      const checked = await oddswire(['archive', 'check'], environment);
      expect([checked.code, checked.stdout]).toEqual([
        1,
        `s3://${server.bucket}/test-${tests}/${placeIn(file)}: is missing; --repair describes the day again: its folder and its objects\n`,
      ]);
      expect((await oddswire(['archive', 'check', '--repair'], environment)).code).toBe(0);
      const { ARCHIVE_S3_SECRET_ACCESS_KEY: _, ...withoutKey } = environment;
      const refused = await oddswire(['archive', 'check'], withoutKey);
      expect([refused.code, refused.stderr]).toEqual([
        78,
        expect.stringContaining('ARCHIVE_URL needs ARCHIVE_S3_SECRET_ACCESS_KEY'),
      ]);
      expect((await oddswire(['keys', 'list'], withoutKey)).code).toBe(0);
      // docker-compose.yml empties them for processes that do not use the store.
      const emptied = { ...withoutKey, ARCHIVE_S3_ACCESS_KEY_ID: '', ARCHIVE_S3_SECRET_ACCESS_KEY: '' };
      expect((await oddswire(['keys', 'list'], emptied)).code).toBe(0);
      proxy.fail('error', /./);
      const failed = await oddswire(['archive', 'check'], environment);
      expect([failed.code, failed.stderr]).toEqual([1, expect.stringContaining('the object store answered 500')]);
      expect(checked.stderr + failed.stderr + failed.stdout).not.toContain(server.key.secretAccessKey);
    });

    it('brings a damaged file of the folder back from the store', async () => {
      await run();
      const { file, bytes } = await present();
      await writeFile(join(dir, placeIn(file)), Buffer.alloc(bytes));
      expect(await check(true)).toEqual([[file, 'has another sha256 than the catalog states', true]]);
      expect(await present()).toMatchObject({ revision: 1 });
      expect(await check()).toEqual([]);
    });
  });
});
