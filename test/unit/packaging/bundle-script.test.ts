import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

const CONFIG = `export default {
  input: { 'bin/oddswire': 'bin/oddswire.ts' },
  platform: 'node',
  output: { dir: 'dist', format: 'esm', entryFileNames: '[name].js' },
};`;

/** A package with one program, which prints the text of `message.ts`. */
describe('scripts/bundle.mjs', () => {
  let root = '';
  const program = () => join(root, 'dist', 'bin', 'oddswire.js');
  const message = (text: string) => writeFileSync(join(root, 'bin', 'message.ts'), `export const TEXT = '${text}';`);

  beforeAll(() => {
    root = mkdtempSync(join(tmpdir(), 'oddswire-bundle-'));
    for (const folder of ['bin', 'scripts']) mkdirSync(join(root, folder));
    cpSync('scripts/bundle.mjs', join(root, 'scripts', 'bundle.mjs'), { preserveTimestamps: true });
    symlinkSync(resolve('node_modules'), join(root, 'node_modules'));
    writeFileSync(join(root, 'package.json'), '{ "type": "module" }');
    writeFileSync(join(root, 'rolldown.config.mjs'), CONFIG);
    writeFileSync(join(root, 'bin', 'oddswire.ts'), `import { TEXT } from './message.ts'; console.log(TEXT);`);
    message('first');
    expect(bundle()).toMatch(/^built oddswire in \d+\.\d s, because there is no complete build: 1 files\n$/);
  });
  afterAll(() => rmSync(root, { recursive: true, force: true }));

  /** The lines that it prints: none when it builds nothing. */
  function bundle(): string {
    const { status, stderr } = spawnSync(process.execPath, [join(root, 'scripts', 'bundle.mjs')], { encoding: 'utf8' });
    expect(status, stderr).toBe(0);
    return stderr;
  }

  const changeStamp = (change: (stamp: { node: string }) => void) => {
    const path = join(root, 'dist', 'build.json');
    const stamp = JSON.parse(readFileSync(path, 'utf8'));
    change(stamp);
    writeFileSync(path, JSON.stringify(stamp));
  };

  it('builds an executable', () => {
    expect(readFileSync(program(), 'utf8')).toContain('first');
    expect(statSync(program()).mode & 0o111).toBe(0o111);
    expect(readdirSync(join(root, 'dist')).sort()).toEqual(['bin', 'build.json']);
  });

  it('leaves the files of a current build alone, and prints nothing', () => {
    const { ino, ctimeMs } = statSync(program());
    expect(bundle()).toBe('');
    expect(statSync(program())).toMatchObject({ ino, ctimeMs });
  });

  it('leaves the build alone when a source was written again with the same text', () => {
    message('first');
    expect(bundle()).toBe('');
  });

  it('builds again when a source changed', () => {
    message('second');
    expect(bundle()).toContain('because bin/message.ts changed');
    expect(readFileSync(program(), 'utf8')).toContain('second');
  });

  it('builds again when a source has other text of the same size and the same time', () => {
    const path = join(root, 'bin', 'message.ts');
    const { atime, mtime, size } = statSync(path);
    message('secund');
    utimesSync(path, atime, mtime);
    expect(statSync(path)).toMatchObject({ size, mtime });
    expect(bundle()).toContain('because bin/message.ts changed');
    expect(readFileSync(program(), 'utf8')).toContain('secund');
  });

  it('builds again when the lock file appears, changes and is deleted', () => {
    const path = join(root, 'package-lock.json');
    for (const change of [() => writeFileSync(path, '{}'), () => writeFileSync(path, '{ }'), () => rmSync(path)]) {
      change();
      expect(bundle()).toContain('because package-lock.json changed');
      expect(bundle()).toBe('');
    }
  });

  it('fails, and builds at the next call, when a source was deleted and returns', () => {
    rmSync(join(root, 'bin', 'message.ts'));
    expect(spawnSync(process.execPath, [join(root, 'scripts', 'bundle.mjs')]).status).not.toBe(0);
    message('third');
    expect(bundle()).toContain('because there is no complete build');
    expect(readFileSync(program(), 'utf8')).toContain('third');
  });

  it('builds again when another version of Node built the files', () => {
    changeStamp((stamp) => {
      stamp.node = 'v1.2.3';
    });
    expect(bundle()).toContain(`because Node ${process.version} replaces v1.2.3`);
    expect(bundle()).toBe('');
  });

  it('builds again when another program wrote over a built file', () => {
    writeFileSync(program(), '');
    expect(bundle()).toContain('because dist/bin/oddswire.js is not of the last build');
    expect(readFileSync(program(), 'utf8')).toContain('third');
  });

  it('builds again, and removes what is not the executable, when a built file is missing', () => {
    rmSync(program());
    const stray = join(root, 'dist', 'bin', 'keys.js');
    writeFileSync(stray, '');
    bundle();
    expect(readFileSync(program(), 'utf8')).toContain('third');
    expect(existsSync(stray)).toBe(false);
  });

  it('builds again, and removes what the former build left, when that one was cut off', () => {
    const { pid } = spawnSync(process.execPath, ['-e', '']);
    mkdirSync(join(root, 'dist', `.build-${pid}`));
    writeFileSync(join(root, 'dist', 'build.json'), '{"node":');
    expect(bundle()).toContain('because there is no complete build');
    expect(readdirSync(join(root, 'dist')).sort()).toEqual(['bin', 'build.json']);
  });

  it('leaves a complete build when several commands build at the same time', async () => {
    message('fourth');
    const runs = [1, 2, 3].map(() => spawn(process.execPath, [join(root, 'scripts', 'bundle.mjs')]));
    expect(await Promise.all(runs.map((run) => once(run, 'exit')))).toEqual(runs.map(() => [0, null]));
    bundle();
    expect(bundle()).toBe('');
    expect(readFileSync(program(), 'utf8')).toContain('fourth');
    expect(readdirSync(join(root, 'dist')).sort()).toEqual(['bin', 'build.json']);
  });
});
