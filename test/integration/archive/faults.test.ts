import { execFile, execFileSync } from 'node:child_process';
import { chmod, mkdir, mkdtemp, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { checkArchive } from '../../../src/archive/check/check-archive.ts';
import { makeDay } from '../../../src/archive/make-day.ts';
import { claimFolder } from '../../../src/archive/owner.ts';
import { type ArchiveDay, folderOf } from '../../../src/domain/archive/file.ts';
import { createLogger } from '../../../src/observe/logger.ts';
import { readPresentFile, switchArchiveOn } from '../../../src/store/archive/catalog.ts';
import { type ArchiveFailure, readArchiveState } from '../../../src/store/archive/state.ts';
import { sql } from '../../../src/store/db/tx.ts';
import { archiveDay } from '../../../workers/jobs/archive-day.ts';
import { maintainStorage } from '../../../workers/jobs/maintain-storage.ts';
import { assertOwnFolder } from '../../../workers/process/archiving.ts';
import { aStoredMarket } from '../../factories/stored-market.ts';
import { storedTrades } from '../../factories/stored-series.ts';
import { forTests } from '../../support/for-tests.ts';
import { createTestDatabase, useTestDatabase } from '../../support/postgres/database.ts';
import { ODDSWIRE, oddswire } from '../bin/run-command.ts';
import { capturedLog, jobContext, RING, testConfig } from '../workers/worker-harness.ts';

const DATE = '2026-03-05';
const DAY: ArchiveDay = { kind: 'trades', venue: 'kalshi', date: DATE };
const ROWS = 20_000;
const WIPE = ['archive_file', 'archive_failure', 'archive_change', 'trade'].map((table) =>
  sql(`test_fault_wipe_${table}`, `DELETE FROM ${table}`),
);
const MANY = sql(
  'test_fault_trades',
  `INSERT INTO trade (token_id, ts, trade_id, price, size)
   SELECT $1, $2::timestamptz + n * interval '1 second', 'trade ' || n, 0.25, n FROM generate_series(1, $3::int) AS n`,
);
const LATER = sql('test_fault_future', `UPDATE archive_file SET made_at = clock_timestamp() + interval '1 day'`);

/** A small file system of its own: the tests with a full and a read-only one need the right to mount. */
function mounted(dir: string, options: string): boolean {
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', options, 'tmpfs', dir], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}
const unmount = (dir: string) => execFileSync('umount', [dir], { stdio: 'ignore' });
const probe = await mkdtemp(join(tmpdir(), 'archive-mount-'));
const mayMount = mounted(probe, 'size=64k');
if (mayMount) unmount(probe);

const test = useTestDatabase();
const second = forTests(createTestDatabase, (database) => database.drop());
let dir = '';
let token = 0n;
const contextOf = (folder = dir) => {
  const { log, lines } = capturedLog();
  const config = testConfig(test.url, { ARCHIVE_DIR: folder, VENUES: 'kalshi' });
  return { context: jobContext({ db: test.db, config, log }), lines };
};
const run = (folder = dir) => archiveDay.run(DAY, contextOf(folder).context);
const failures = async (): Promise<ArchiveFailure[]> => (await readArchiveState(test.db)).failures;
/** The archive is as before the fault, and the day succeeds without it. */
async function recovers(): Promise<void> {
  expect(await run()).toMatchObject({ revision: 1, rows: ROWS });
  expect(await failures()).toEqual([]);
}

beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'archive-faults-'));
  if (token === 0n) {
    const market = await aStoredMarket(test.db, { venue: 'kalshi', marketId: 'K-1' });
    token = market.outcomes[0]?.tokenId ?? 0n;
    await switchArchiveOn(test.db, ['trades']);
  }
  for (const statement of WIPE) await test.db.query(statement);
  await storedTrades(test.db, [{ tokenId: token, at: new Date(`${DATE}T23:59:59Z`), tradeId: 'last' }]);
  await test.db.query(MANY, [token, `${DATE}T00:00:00Z`, ROWS - 1]);
});
afterEach(() => rm(dir, { recursive: true, force: true }));

describe('archive-day', () => {
  it.skipIf(!mayMount)(
    'fails with the error of the disk when it is full, and leaves no part (needs the right to mount)',
    async () => {
      const full = join(dir, 'full');
      await mkdir(full);
      mounted(full, 'size=256k');
      try {
        await expect(run(full)).rejects.toThrow(/ENOSPC|space/i);
        expect(await failures()).toMatchObject([{ ...DAY, code: 'ENOSPC', failures: 1 }]);
        expect(await readPresentFile(test.db, DAY)).toBeUndefined();
        expect(await readdir(join(full, '.work'))).toEqual([]);
        await expect(run(full)).rejects.toThrow(/ENOSPC|space/i);
        expect(await failures()).toMatchObject([{ failures: 2 }]);
      } finally {
        unmount(full);
      }
      await recovers();
    },
  );

  it.skipIf(!mayMount)('fails with the error of the disk when it is read-only (needs the right to mount)', async () => {
    const fixed = join(dir, 'fixed');
    await mkdir(fixed);
    mounted(fixed, 'ro');
    try {
      await expect(run(fixed)).rejects.toThrow(/EROFS.*fixed/);
      expect(await failures()).toMatchObject([{ code: 'EROFS', message: expect.stringContaining('read-only') }]);
    } finally {
      unmount(fixed);
    }
    await recovers();
  });

  it('fails in a process whose files may not grow, in place of a full disk', async () => {
    await run();
    await rm(join(dir, folderOf(DAY)), { recursive: true });
    const repair = (limit: string) =>
      new Promise<{ code: unknown; stdout: string }>((done) => {
        const command = `${limit} exec "${process.execPath}" "${ODDSWIRE}" archive check --repair --json`;
        const env = { PATH: process.env['PATH'], DATABASE_URL: test.url, ARCHIVE_DIR: dir };
        execFile('sh', ['-c', command], { env }, (error, stdout) => done({ code: error?.code ?? 0, stdout }));
      });
    const failed = await repair('ulimit -f 200;');
    expect(failed.code).toBe(1);
    expect(JSON.parse(failed.stdout).problems).toContainEqual(
      expect.objectContaining({
        problem: 'is missing',
        repaired: false,
        remedy: expect.stringMatching(/EFBIG|too large/),
      }),
    );
    expect(await readPresentFile(test.db, DAY)).toMatchObject({ revision: 1 });
    expect(await readdir(join(dir, '.work'))).toEqual([]);
    expect((await repair('')).code).toBe(0);
    expect(await readPresentFile(test.db, DAY)).toMatchObject({ revision: 2, rows: ROWS });
  });

  it('makes no new folder in place of one that is not mounted', async () => {
    await run();
    const away = `${dir}-away`;
    await rename(dir, away);
    await expect(run()).rejects.toMatchObject({ code: 'archive_folder_gone', message: expect.stringContaining(dir) });
    await mkdir(dir);
    await expect(run()).rejects.toMatchObject({ code: 'archive_folder_gone' });
    expect(await readdir(dir)).toEqual([]);
    expect(await failures()).toMatchObject([{ code: 'archive_folder_gone', failures: 2 }]);
    await rm(dir, { recursive: true });
    await rename(away, dir);
    expect(await run()).toMatchObject({ skipped: 'unchanged' });
    expect(await failures()).toEqual([]);
  });

  it('archives nothing while the clocks of the machine and of Postgres differ', async () => {
    const { signal } = new AbortController();
    const log = createLogger({ process: 'test', level: 'silent' });
    const at = (aheadMs: number) =>
      makeDay(DAY, { db: test.db, dir, log, signal, tag: 'clock', nowMs: Date.now() + aheadMs });
    await expect(at(7_200_000)).rejects.toMatchObject({
      code: 'archive_clock',
      message: 'the clock of this machine is 120 minutes ahead of that of Postgres: no day is archived',
    });
    await expect(at(-7_200_000)).rejects.toThrow('120 minutes behind');
    expect(await readdir(dir)).toEqual([]);
    await recovers();
  });

  it('makes a file again that a clock of the future made, when check repairs it', async () => {
    await run();
    await test.db.query(LATER);
    const { signal } = new AbortController();
    const log = createLogger({ process: 'test', level: 'silent' });
    const options = { db: test.db, dir, filter: {}, log, signal, tag: 'clock', onDay: () => undefined };
    const { findings } = await checkArchive({ ...options, isRepair: true });
    expect(findings).toMatchObject([{ problem: expect.stringMatching(/a clock was wrong/), isRepaired: true }]);
    expect(await readPresentFile(test.db, DAY)).toMatchObject({ revision: 2 });
  });

  it('keeps no failure when the process stops', async () => {
    const stopped = new AbortController();
    stopped.abort();
    const config = testConfig(test.url, { ARCHIVE_DIR: dir, VENUES: 'kalshi' });
    const context = jobContext({ db: test.db, config, stopping: stopped.signal });
    await expect(archiveDay.run(DAY, { ...context, signal: stopped.signal })).rejects.toThrow(/abort/i);
    expect(await failures()).toEqual([]);
  });
});

describe('the folder of the archive', () => {
  it('belongs to the database that used it first, and another one writes nothing there', async () => {
    await run();
    const names = await readdir(dir, { recursive: true });
    await expect(claimFolder(dir, second.db)).rejects.toMatchObject({ code: 'archive_other_owner' });
    const log = createLogger({ process: 'test', level: 'silent' });
    const { signal } = new AbortController();
    await expect(makeDay(DAY, { db: second.db, dir, log, signal, tag: 'other' })).rejects.toThrow(
      /belongs to the database .*set another folder.*oddswire archive adopt/,
    );
    expect(await readdir(dir, { recursive: true })).toEqual(names);
    expect(await run()).toMatchObject({ skipped: 'unchanged' });
  });

  it('ends the start of an aggregator of another database with a clear error', async () => {
    await claimFolder(dir, second.db);
    await expect(assertOwnFolder(contextOf().context)).rejects.toMatchObject({
      code: 'startup',
      message: expect.stringMatching(/ARCHIVE_DIR .* belongs to the database/),
    });
    const adopted = await oddswire(['archive', 'adopt'], { DATABASE_URL: test.url, ARCHIVE_DIR: dir });
    expect([adopted.code, adopted.stderr]).toEqual([0, '']);
    await assertOwnFolder(contextOf().context);
    expect((await readFile(join(dir, '.owner'), 'utf8')).trim()).toMatch(/^\d+\.\d+$/);
    const wrong = await oddswire(['archive', 'adopt', '--repair'], { DATABASE_URL: test.url, ARCHIVE_DIR: dir });
    expect([wrong.code, wrong.stderr.includes('--repair is of archive check')]).toEqual([2, true]);
  });

  it('ends the process of the aggregator with code 78, which a supervisor does not restart', async () => {
    await claimFolder(dir, second.db);
    const settings = {
      DATABASE_URL: test.url,
      SECRETS_KEYS: RING,
      ARCHIVE_DIR: dir,
      VENUES: 'kalshi',
      METRICS_PORT: '0',
    };
    const ended = await new Promise<{ code: unknown; text: string }>((done) => {
      const env = { PATH: process.env['PATH'], ...settings };
      execFile(process.execPath, ['dist/workers/main.js', 'aggregator'], { env }, (error, stdout, stderr) =>
        done({ code: error?.code ?? 0, text: stdout + stderr }),
      );
    });
    expect(ended.text).toMatch(/ARCHIVE_DIR .* belongs to the database/);
    expect(ended.code).toBe(78);
  });

  it('lets an aggregator start when the disk fails, and logs the cause', async () => {
    const file = join(dir, 'file');
    await writeFile(file, '');
    const { context, lines } = contextOf(join(file, 'inside'));
    await assertOwnFolder(context);
    expect(lines.join('')).toMatch(/ENOTDIR.*no archive until its folder or object store is repaired/s);
  });

  it('takes over the files of a former release, and refuses files that the catalog does not have', async () => {
    await run();
    await rm(join(dir, '.owner'));
    await expect(claimFolder(dir, second.db)).rejects.toThrow(/has files of an archive, and the catalog .* has none/);
    expect(await run()).toMatchObject({ skipped: 'unchanged' });
    expect(await readdir(dir)).toContain('.owner');
  });

  it('is written by two processes of one database at once without a loss', async () => {
    const reports = await Promise.all([run(), run(), run()]);
    expect(reports.filter((report) => report['revision'] === 1)).toHaveLength(1);
    const present = await readPresentFile(test.db, DAY);
    expect(await readdir(join(dir, folderOf(DAY)))).toEqual(expect.arrayContaining(['manifest.json', present?.file]));
    expect(await readdir(join(dir, folderOf(DAY)))).toHaveLength(2);
  });
});

describe('maintain-storage', () => {
  it('stores a failure of the folder for the overview, and forgets it when the folder is right again', async () => {
    await claimFolder(dir, second.db);
    await expect(maintainStorage.run({}, contextOf().context)).rejects.toMatchObject({ code: 'archive_other_owner' });
    expect(await failures()).toMatchObject([{ kind: '', venue: '', code: 'archive_other_owner' }]);
    await rm(join(dir, '.owner'));
    await maintainStorage.run({}, contextOf().context);
    expect(await failures()).toEqual([]);
  });

  it('keeps a file that no row of the catalog names', async () => {
    await run();
    const name = `trades-kalshi-${DATE}-r1-0123456789ab.parquet`;
    await mkdir(join(dir, '.former'));
    await writeFile(join(dir, '.former', name), 'of a restored database');
    await chmod(join(dir, '.former', name), 0o444);
    await maintainStorage.run({}, contextOf().context);
    expect(await readdir(join(dir, '.former'))).toEqual([name]);
  });
});
