import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, cp, mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { text as textOf } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { COMMANDS } from '../../../bin/commands.ts';
import { aStoredMarket } from '../../factories/stored-market.ts';
import { ROOT } from '../../support/markdown.ts';
import { createTestDatabase, type TestDatabase } from '../../support/postgres/database.ts';
import { ODDSWIRE, oddswire } from './run-command.ts';

const NAMES = Object.keys(COMMANDS);
/** A database that refuses connections: a command that starts anything fails with it. */
const NOWHERE = { DATABASE_URL: 'postgres://nobody@127.0.0.1:1/none' };

let test: TestDatabase;
let folder: string;
beforeAll(async () => {
  [test, folder] = await Promise.all([createTestDatabase(), mkdtemp(join(tmpdir(), 'oddswire-bin-'))]);
});
afterAll(async () => {
  await test?.drop();
  await rm(folder, { recursive: true, force: true });
});

describe('oddswire', () => {
  it('lists every command with --help, and without arguments as an error', async () => {
    const [help, nothing, one] = await Promise.all([oddswire(['--help']), oddswire([]), oddswire(['help', 'keys'])]);
    expect(help).toMatchObject({ code: 0, stderr: '' });
    for (const name of NAMES) expect(help.stdout).toMatch(new RegExp(`^  ${name} +\\w`, 'm'));
    expect(nothing).toEqual({ code: 2, stdout: '', stderr: help.stdout });
    expect(one).toMatchObject({ code: 0, stderr: '', stdout: expect.stringContaining('usage: oddswire keys') });
  });

  it.each(NAMES)('%s --help prints the usage and starts nothing', async (name) => {
    const help = await oddswire([name, '--help'], NOWHERE);
    expect(help).toMatchObject({ code: 0, stderr: '', stdout: expect.stringContaining(`usage: oddswire ${name}`) });
  });

  it('ends with 2 for an unknown command and suggests the nearest one', async () => {
    expect(await oddswire(['aduit'])).toEqual({
      code: 2,
      stdout: '',
      stderr: 'oddswire: unknown command "aduit"; did you mean "audit"?\n`oddswire --help` lists the commands.\n',
    });
  });

  it.each(['start', 'demo', 'db', 'keys list'])('%s names DATA_DIR when it cannot make its folder', async (command) => {
    const file = join(folder, 'file');
    await writeFile(file, '');
    const { code, stderr } = await oddswire(command.split(' '), { DATA_DIR: join(file, 'data') });
    expect({ code, lines: stderr.trimEnd().split('\n').length }).toEqual({ code: 78, lines: 1 });
    expect(stderr).toMatch(/: a file where a folder must be: .* Set DATA_DIR to a folder that this user can write/);
  });

  it.runIf(process.getuid?.() === 0)('names DATA_DIR when the user has no permission', async () => {
    const own = await mkdtemp(join(tmpdir(), 'oddswire-root-'));
    await chmod(own, 0o755);
    // The folder of the project may be private, such as one in the home of root.
    const program = join(own, 'program');
    for (const part of ['dist', 'package.json', 'Procfile']) {
      await cp(part, join(program, part), { recursive: true });
    }
    const child = spawn(process.execPath, [join(program, 'dist/bin/oddswire.js'), 'start'], {
      cwd: own,
      env: { PATH: process.env['PATH'] },
      uid: 65_534,
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    const [stderr, [code]] = await Promise.all([textOf(child.stderr), once(child, 'close')]);
    await rm(own, { recursive: true });
    expect({ code, stderr }).toEqual({
      code: 78,
      stderr: `oddswire start: no permission: ${own}/.data (EACCES of mkdir). Set DATA_DIR to a folder that this user can write; it is ${own}/.data\n`,
    });
  });

  it('rejects arguments of commands that take none', async () => {
    const names = ['start', 'demo', 'config', 'migrate', 'db'];
    const answers = await Promise.all(names.map((name) => oddswire([name, 'x'], NOWHERE)));
    for (const [at, { code, stderr }] of answers.entries())
      expect([code, stderr]).toEqual([
        2,
        expect.stringContaining(`oddswire ${names[at]}: unknown argument x\nusage: `),
      ]);
  });

  it.each([
    ['config', {}],
    ['keys', { list: true }],
  ])('%s ends without a report when the reader of its output ends', async (name, verbs) => {
    const child = spawn(process.execPath, [ODDSWIRE, name, ...Object.keys(verbs)], {
      env: { PATH: process.env['PATH'], DATABASE_URL: test.url },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    child.stdout.destroy();
    const [err, [code]] = await Promise.all([textOf(child.stderr), once(child, 'exit')]);
    expect([err, code]).toEqual(['', 141]);
  });

  it('migrates an empty database, once', async () => {
    const empty = await createTestDatabase();
    try {
      await empty.db.dataSource.query('DROP SCHEMA public CASCADE; DROP SCHEMA bullmq CASCADE; CREATE SCHEMA public');
      const place = { DATABASE_URL: empty.url };
      expect((await oddswire(['keys', 'list'], place)).stderr).toBe(
        'oddswire keys: the database has another version: `oddswire migrate` migrates it\n',
      );
      const first = await oddswire(['migrate'], place);
      expect(first).toMatchObject({ code: 0, stdout: expect.stringMatching(/^Initial\d+\n/) });
      expect(await oddswire(['migrate'], place)).toEqual({
        code: 0,
        stdout: 'The database is up to date.\n',
        stderr: '',
      });
      expect(await oddswire(['keys', 'list'], place)).toMatchObject({ code: 0, stdout: 'No keys.\n' });
    } finally {
      await empty.drop();
    }
  });
});

describe('the image', () => {
  /** The files of the last stage of the Dockerfile, in a folder. */
  async function openImage(): Promise<{ path: string; run(...argv: string[]): Promise<[string, unknown]> }> {
    const last = (await readFile(join(ROOT, 'Dockerfile'), 'utf8')).split(/^(?=FROM )/m).at(-1) ?? '';
    for (const [, from = '', to = ''] of last.matchAll(/^COPY --from=\w+ \/app\/(\S+) (\S+)$/gm)) {
      const target = join(folder, 'app', to);
      await mkdir(dirname(target), { recursive: true });
      if (from === 'node_modules') await symlink(join(ROOT, from), target);
      else await cp(join(ROOT, from), target, { recursive: true });
    }
    const [, linked = '', link = ''] = /^RUN ln -s \/app\/(\S+) (\/usr\/local\/bin\/\S+)$/m.exec(last) ?? [];
    await mkdir(join(folder, 'bin'));
    await symlink(join(folder, 'app', linked), join(folder, 'bin', link.slice('/usr/local/bin/'.length)));
    return {
      path: folder,
      async run(name = '', ...argv) {
        const env = {
          PATH: `${join(folder, 'bin')}:${dirname(process.execPath)}:/usr/bin:/bin`,
          DATABASE_URL: test.url,
        };
        const child = spawn(name, argv, { cwd: join(folder, 'app'), env, stdio: ['ignore', 'pipe', 'inherit'] });
        const [out, [code]] = await Promise.all([textOf(child.stdout), once(child, 'exit')]);
        return [out, code];
      },
    };
  }

  it('runs `oddswire` from its PATH, without a compiler', async () => {
    await aStoredMarket(test.db, { venue: 'kalshi', marketId: 'KX-IMAGE' });
    const image = await openImage();
    expect(await image.run('oddswire', 'keys', 'list')).toEqual(['No keys.\n', 0]);
    expect(await image.run('oddswire', 'rejected')).toEqual(['No rejected records.\n', 0]);
    // No trade is stored, so the audit compares nothing.
    expect((await image.run('oddswire', 'audit', 'candles', '--venue', 'kalshi'))[1]).toBe(3);
    expect((await image.run('oddswire', 'migrate'))[1]).toBe(0);
    expect((await image.run('oddswire', 'config'))[0]).toMatch(/^variable/);
    expect((await image.run('oddswire', 'start', '--help'))[1]).toBe(0);
  });
});
