import { spawnSync } from 'node:child_process';
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
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
    bundle();
  });
  afterAll(() => rmSync(root, { recursive: true, force: true }));

  function bundle(): void {
    const { status, stderr } = spawnSync(process.execPath, [join(root, 'scripts', 'bundle.mjs')], { encoding: 'utf8' });
    expect(stderr).toBe('');
    expect(status).toBe(0);
  }

  it('builds an executable', () => {
    expect(readFileSync(program(), 'utf8')).toContain('first');
    expect(statSync(program()).mode & 0o111).toBe(0o111);
  });

  it('leaves the files of a current build alone', () => {
    const { ino, ctimeMs } = statSync(program());
    bundle();
    expect(statSync(program())).toMatchObject({ ino, ctimeMs });
  });

  it('builds again when a source changed', () => {
    message('second');
    bundle();
    expect(readFileSync(program(), 'utf8')).toContain('second');
  });

  it('builds again when another program wrote over a built file', () => {
    writeFileSync(program(), '');
    bundle();
    expect(readFileSync(program(), 'utf8')).toContain('second');
  });

  it('builds again, and removes what is not the executable, when a built file is missing', () => {
    rmSync(program());
    const stray = join(root, 'dist', 'bin', 'keys.js');
    writeFileSync(stray, '');
    bundle();
    expect(readFileSync(program(), 'utf8')).toContain('second');
    expect(existsSync(stray)).toBe(false);
  });
});
