import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, readFile, rename, rm, stat, truncate, writeFile } from 'node:fs/promises';
import { createServer, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { rolldown } from 'rolldown';
import { beforeEach, describe, expect, it } from 'vitest';
import { ArchiveFolder } from '../../../api/reads/archive-folder.ts';
import { folderOf } from '../../../src/domain/archive/file.ts';
import { createLogger } from '../../../src/observe/logger.ts';
import { setAccountQuotas } from '../../../src/store/accounts/quotas.ts';
import { sql } from '../../../src/store/db/tx.ts';
import { anArchivedDay, anArchiveFolder, anEmptyDay, archiveContent, type TestFile } from '../../factories/archive.ts';
import { oddswireCli } from '../../support/cli-io.ts';
import { eventually } from '../../support/eventually.ts';
import { forTests } from '../../support/for-tests.ts';
import { startTestApi, type TestApi } from '../api/api-harness.ts';

const MEGABYTE = 1_000_000;
const NAME_OF = sql('test_cli_account_name', 'SELECT name FROM account WHERE id = $1');
const log = createLogger({ process: 'test', level: 'silent' });
const source = forTests(anArchiveFolder, ({ remove }) => remove());
const api = forTests<TestApi>(
  () => startTestApi({ archive: new ArchiveFolder(source.dir, log) }),
  (started) => started.close(),
);
const reader = forTests(() => api.client(['archive']));
const days = forTests(async () => ({
  first: await anArchivedDay(api.db, source.dir, { date: '2026-01-01' }),
  empty: await anEmptyDay(api.db, { date: '2026-01-02' }),
  third: await anArchivedDay(api.db, source.dir, { date: '2026-01-03' }),
  large: await anArchivedDay(api.db, source.dir, { kind: 'books', content: archiveContent(20 * MEGABYTE) }),
}));

/** Between the program and the API: it may break off downloads, change their bytes, and remembers their headers. */
const between = forTests(
  async () => {
    const state = { endAfter: Number.POSITIVE_INFINITY, holds: false, flips: false };
    const seen: { range: string | undefined; ifRange: string | undefined }[] = [];
    const server = createServer((req, res) => {
      const isFile = req.url?.startsWith('/v1/archive/') ?? false;
      const { endAfter, holds, flips } = state;
      if (isFile) seen.push({ range: req.headers.range, ifRange: req.headers['if-range'] as string | undefined });
      const onward = request(`${api.url}${req.url}`, { method: req.method, headers: req.headers }, (answer) => {
        res.writeHead(answer.statusCode ?? 500, answer.headers);
        let left = isFile ? endAfter : Number.POSITIVE_INFINITY;
        answer.on('data', (chunk: Buffer) => {
          if (left <= 0) return;
          const sent = Buffer.from(chunk.subarray(0, left));
          if (isFile && flips) sent[0] = (sent[0] ?? 0) ^ 1;
          left -= sent.length;
          res.write(sent, () => {
            if (left <= 0 && !holds) res.destroy();
          });
        });
        answer.once('end', () => {
          if (left > 0) res.end();
        });
      });
      onward.once('error', () => res.destroy());
      res.once('close', () => onward.destroy());
      onward.end();
    });
    await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
    return { state, seen, server, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` };
  },
  ({ server }) => {
    server.closeAllConnections();
    server.close();
  },
);

let out: string;
beforeEach(async () => {
  out = await mkdtemp(join(tmpdir(), 'oddswire-copy-'));
  Object.assign(between.state, { endAfter: Number.POSITIVE_INFINITY, holds: false, flips: false });
  between.seen.length = 0;
  return () => rm(out, { recursive: true, force: true });
});

const env = (key = reader.key) => ({ ODDSWIRE_URL: between.url, ODDSWIRE_KEY: key });
const cli = (...argv: string[]) => oddswireCli(['archive', ...argv], { env: env() });
const get = (...more: string[]) => cli('get', '--out', out, ...more);
const pathOf = (file: TestFile) => join(out, folderOf(file), file.file);
const partOf = (file: TestFile) => join(out, folderOf(file), `.${file.file}.part`);
const problems = async (...argv: string[]) => {
  const { code, stdout } = await cli('verify', out, '--json', ...argv);
  const { findings } = JSON.parse(stdout) as { findings: { problem: string; path: string }[] };
  return { code, found: findings.map(({ problem, path }) => `${problem} ${path.split('/').at(-1)}`) };
};

describe('archive ls', () => {
  it('lists files and empty days as a table and as JSON', async () => {
    const { stdout, code } = await cli('ls', '--kind', 'trades', '--from', '2026-01-01', '--to', '2026-01-02');
    expect(code).toBe(0);
    expect(stdout).toMatch(/^KIND +VENUE +DATE +ROWS +BYTES/);
    expect(stdout).toContain(days.first.file);
    expect(stdout).toContain('(empty day)');
    const { data } = JSON.parse((await cli('ls', '--json')).stdout);
    expect(data).toHaveLength(4);
  });

  it('ends with 1 for a day of no calendar and with 3 for a key without the scope', async () => {
    expect((await cli('ls', '--from', 'yesterday')).code).toBe(2);
    expect((await cli('ls', '--from', '2026-02-30')).code).toBe(2);
    const { key } = await api.client(['markets:read']);
    expect((await oddswireCli(['archive', 'ls'], { env: env(key) })).code).toBe(3);
  });
});

describe('archive get', () => {
  it('copies a range with the folders of the archive, a manifest per day and equal bytes', async () => {
    const { code, stderr } = await get('--kind', 'trades');
    expect([code, stderr]).toEqual([
      0,
      expect.stringContaining('2 files copied (0.0 MB), 0 were there, 1 days are empty'),
    ]);
    expect((await readFile(pathOf(days.first))).equals(days.first.content)).toBe(true);
    const manifest = async (folder: string) => JSON.parse(await readFile(join(out, folder, 'manifest.json'), 'utf8'));
    expect(await manifest(folderOf(days.first))).toMatchObject({
      schema_version: 1,
      kind: 'trades',
      venue: 'kalshi',
      date: '2026-01-01',
      files: [{ file: days.first.file, revision: 1, sha256: days.first.sha256, start: '2026-01-01T01:00:00Z' }],
    });
    expect(await manifest(folderOf(days.empty))).toMatchObject({ files: [] });
    expect((await get('--kind', 'trades')).stderr).toContain('0 files copied (0.0 MB), 2 were there, 1 days are empty');
    expect(await problems('--kind', 'trades')).toEqual({ code: 0, found: [] });
  });

  it('continues a file behind its last byte when the connection breaks off', async () => {
    between.state.endAfter = 7 * MEGABYTE;
    expect((await get('--kind', 'books')).code).toBe(0);
    expect((await readFile(pathOf(days.large))).equals(days.large.content)).toBe(true);
    expect(between.seen[0]).toEqual({ range: undefined, ifRange: undefined });
    const later = between.seen.slice(1);
    expect(later.map(({ ifRange }) => ifRange)).toEqual(later.map(() => `"${days.large.sha256}"`));
    const starts = later.map(({ range }) => Number(/^bytes=(\d+)-$/.exec(range ?? '')?.[1]));
    expect(starts.length).toBeGreaterThan(1);
    expect(starts).toEqual([...new Set(starts)].sort((a, b) => a - b));
  });

  it('starts again when a part has other bytes, and keeps no file with another sha256', async () => {
    between.state.endAfter = 100;
    between.state.holds = true;
    const stopped = oddswireCli(
      ['archive', 'get', '--out', out, '--from', '2026-01-01', '--to', '2026-01-01', '--kind', 'trades'],
      {
        env: env(),
      },
    );
    await eventually(
      async () => (await stat(partOf(days.first)).catch(() => undefined))?.size,
      (size) => size === 100,
    );
    between.state.holds = false;
    between.state.endAfter = Number.POSITIVE_INFINITY;
    await writeFile(partOf(days.first), randomBytes(100));
    between.server.closeAllConnections();
    expect((await stopped).code).toBe(0);
    expect((await readFile(pathOf(days.first))).equals(days.first.content)).toBe(true);
    expect(between.seen.map(({ range }) => range)).toEqual([undefined, 'bytes=100-', undefined]);
    between.state.flips = true;
    const { code, stderr } = await get('--from', '2026-01-03', '--kind', 'trades');
    expect([code, stderr]).toEqual([1, expect.stringContaining('another sha256')]);
    await expect(stat(pathOf(days.third))).rejects.toThrow('ENOENT');
  });

  it('continues after kill -9', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'oddswire-cli-'));
    const bundle = await rolldown({
      input: resolve('clients/cli/src/oddswire-cli.ts'),
      platform: 'node',
      resolve: { modules: ['node_modules', resolve('clients/cli/node_modules')] },
    });
    await bundle.write({ dir: folder, format: 'esm', entryFileNames: '[name].mjs' });
    between.state.endAfter = 9 * MEGABYTE;
    between.state.holds = true;
    const child = spawn(
      process.execPath,
      [join(folder, 'oddswire-cli.mjs'), 'archive', 'get', '--out', out, '--kind', 'books'],
      {
        env: { PATH: process.env['PATH'] ?? '', ...env() },
        stdio: 'ignore',
      },
    );
    const part = async () => (await stat(partOf(days.large)).catch(() => undefined))?.size ?? 0;
    await eventually(part, (size) => size === 9 * MEGABYTE);
    child.kill('SIGKILL');
    await once(child, 'exit');
    await rm(folder, { recursive: true, force: true });
    expect(await problems('--kind', 'books')).toMatchObject({
      code: 1,
      found: expect.arrayContaining([`unfinished .${days.large.file}.part`]),
    });
    between.state.endAfter = Number.POSITIVE_INFINITY;
    expect((await get('--kind', 'books')).code).toBe(0);
    expect(between.seen.at(-1)?.range).toBe(`bytes=${9 * MEGABYTE}-`);
    expect((await readFile(pathOf(days.large))).equals(days.large.content)).toBe(true);
    expect(await problems('--kind', 'books')).toEqual({ code: 0, found: [] });
  });

  it('replaces the file of a former revision', async () => {
    const former = await anArchivedDay(api.db, source.dir, { kind: 'prices' });
    const range = ['--kind', 'prices', '--venue', 'kalshi'];
    await get(...range);
    const present = await anArchivedDay(api.db, source.dir, { kind: 'prices', revision: 2 });
    expect(await problems(...range)).toEqual({
      code: 1,
      found: ['superseded manifest.json', `superseded ${former.file}`, `missing ${present.file}`],
    });
    expect((await problems(...range, '--offline')).code).toBe(0);
    expect((await get(...range)).code).toBe(0);
    await expect(stat(pathOf(former))).rejects.toThrow('ENOENT');
    expect(await problems(...range)).toEqual({ code: 0, found: [] });
  });

  it('ends with 6 and the time to wait when the quota is used up', async () => {
    const client = await api.client(['archive']);
    const [account] = await api.db.query<{ name: string }>(NAME_OF, [client.accountId]);
    await setAccountQuotas(api.db, account?.name ?? '', { archiveMbPerDay: 0 });
    const { code, stderr } = await oddswireCli(['archive', 'get', '--out', out], { env: env(client.key) });
    expect([code, stderr]).toEqual([6, expect.stringMatching(/archive_quota_exceeded[\s\S]*try again in \d+ s/)]);
  });

  it('names the folder when it cannot write there', async () => {
    const file = join(out, 'file');
    await writeFile(file, '');
    const { code, stderr } = await cli('get', '--out', file, '--kind', 'trades');
    expect([code, stderr]).toEqual([1, expect.stringContaining('cannot write to')]);
  });
});

describe('archive verify', () => {
  beforeEach(() => get('--kind', 'trades'));

  it.each<[string, (file: TestFile) => Promise<unknown>, string[]]>([
    ['a changed file', (file) => writeFile(pathOf(file), randomBytes(1_000)), ['wrong FILE']],
    ['a truncated file', (file) => truncate(pathOf(file), 3), ['wrong FILE']],
    ['a missing file', (file) => rm(pathOf(file)), ['missing FILE']],
    ['a strange file', (file) => writeFile(join(dirname(pathOf(file)), 'notes.txt'), 'x'), ['unknown notes.txt']],
    ['a file outside of days', () => writeFile(join(out, 'notes.txt'), 'x'), ['unknown notes.txt']],
    [
      'a broken manifest',
      (file) => writeFile(join(dirname(pathOf(file)), 'manifest.json'), '{'),
      ['wrong manifest.json'],
    ],
    ['no manifest', (file) => rm(join(dirname(pathOf(file)), 'manifest.json')), ['no_manifest manifest.json']],
  ])('names %s', async (_, harm, expected) => {
    await harm(days.first);
    const found = expected.map((text) => text.replace('FILE', days.first.file));
    expect(await problems('--kind', 'trades')).toEqual({ code: 1, found });
  });

  it('names a file under the day of another file', async () => {
    await rename(pathOf(days.first), join(dirname(pathOf(days.third)), days.first.file));
    expect(await problems('--offline')).toEqual({
      code: 1,
      found: [`missing ${days.first.file}`, `unknown ${days.first.file}`],
    });
  });

  it.each([
    ['newer', '2026-01-04', archiveContent(1_000, 2)],
    ['wrong', '2026-01-05', Buffer.concat([archiveContent(100), Buffer.alloc(900)])],
  ])('names a %s file when its digest is right and its schema is not', async (problem, date, content) => {
    const day = await anArchivedDay(api.db, source.dir, { kind: 'candles', date, content });
    const only = ['--kind', 'candles', '--from', date, '--to', date];
    await get(...only);
    expect(await problems(...only)).toEqual({ code: 1, found: [`${problem} ${day.file}`] });
    await rm(dirname(pathOf(day)), { recursive: true });
  });

  it('compares the asked days alone', async () => {
    await rm(pathOf(days.first));
    expect((await problems('--kind', 'trades', '--from', '2026-01-02')).code).toBe(0);
    expect((await problems('--kind', 'trades', '--to', '2026-01-02')).code).toBe(1);
  });

  it('names the days that the copy lacks when the server has them', async () => {
    expect((await problems('--offline')).found).toEqual([]);
    expect((await problems()).found).toContain(`missing ${days.large.file}`);
  });
});
