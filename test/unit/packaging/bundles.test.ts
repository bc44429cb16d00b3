import { readdirSync, readFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { parseProcfile } from '../../../src/embedded/procfile.ts';

const IMPORT = /(?:^import |^export |\bfrom |\bimport\()"([^"]+)"/gm;
/** The line before each module of a bundle. */
const PACKAGE = /^\/\/ (?:.*\/)?node_modules\/((?:@[^/\s]+\/)?[^/\s]+)\//gm;
/** A class in a module of TypeORM for a database other than Postgres. */
const OTHER_DRIVER =
  /^\/\/ node_modules\/typeorm\/driver\/(?!postgres|types)[\w-]+\/\w+\.js\n(?:(?!\/\/ node_modules).*\n)*?.*\bclass \w+/m;
const UNDICI_MOCK = /^\/\/ node_modules\/undici\/lib\/mock\//m;

/** The files of a program and of all files that it imports. */
function filesOf(program: string, found = new Map<string, string>()): Map<string, string> {
  if (found.has(program)) return found;
  const text = readFileSync(program, 'utf8');
  found.set(program, text);
  for (const [, path = ''] of text.matchAll(IMPORT)) {
    if (path.startsWith('.')) filesOf(join(dirname(program), path), found);
  }
  return found;
}

const { bin } = JSON.parse(readFileSync('package.json', 'utf8')) as { bin: Record<string, string> };
const { packages } = JSON.parse(readFileSync('package-lock.json', 'utf8')) as {
  packages: Record<string, { dev?: boolean }>;
};
const processes = parseProcfile(readFileSync('Procfile', 'utf8')).map(({ command }) => command[1] ?? '');
const programs = [...new Set([...processes, ...Object.values(bin), 'dist/sim/main.js', 'dist/sim/receiver-main.js'])];

describe.each(programs)('the build of %s', (program) => {
  const files = filesOf(program);

  it('consists of bundled files', () => {
    const paths = [...files.keys()];
    expect(paths.length).toBeGreaterThan(1);
    expect(paths.filter((path) => path !== program && dirname(path) !== 'dist/processes')).toEqual([]);
  });

  it('contains no development package', () => {
    const inside = new Set([...files.values()].flatMap((text) => [...text.matchAll(PACKAGE)].map(([, name]) => name)));
    expect([...inside].filter((name) => packages[`node_modules/${name}`]?.dev === true)).toEqual([]);
  });

  it('contains no driver of another database, and no mock of undici', () => {
    const text = [...files.values()].join('\n');
    expect(text.match(OTHER_DRIVER)).toBeNull();
    expect(text.match(UNDICI_MOCK)).toBeNull();
  });
});

it('dist/bin has only the executable: any other file would end without a word when it is run', () => {
  expect(readdirSync('dist/bin')).toEqual(Object.values(bin).map((path) => basename(path)));
});
