import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { licenceNotices } from '../../../scripts/third-party-licences.mjs';
import { ROOT } from '../../support/markdown.ts';

interface LockEntry {
  version?: string;
  integrity?: string;
  resolved?: string;
  link?: boolean;
  optional?: boolean;
}

/**
 * Optional packages of platforms that neither the image nor CI has. The registry that made the lock file does not serve them;
 * `node scripts/complete-lock.mjs` adds their hashes from one that does. npm installs none of them on Linux with glibc.
 */
const OTHER_PLATFORMS =
  /^node_modules\/(?:@biomejs\/cli-(?:android|darwin|win32|linux-\w+-musl)|@msgpackr-extract\/msgpackr-extract-(?:darwin|win32|linux-arm$))/;

const lockOf = (file: string) =>
  Object.entries(
    (JSON.parse(readFileSync(join(ROOT, file), 'utf8')) as { packages: Record<string, LockEntry> }).packages,
  );

describe.each(['package-lock.json', 'clients/typescript/package-lock.json', 'clients/cli/package-lock.json'])(
  '%s',
  (file) => {
    it('has the integrity hash of every package that the image or CI installs', () => {
      const without = lockOf(file).filter(([path, entry]) => path !== '' && !entry.link && !entry.integrity);
      expect(without.filter(([path, entry]) => !(entry.optional && OTHER_PLATFORMS.test(path)))).toEqual([]);
      expect(without.length).toBeLessThanOrEqual(12);
      for (const [path, { integrity }] of lockOf(file)) {
        if (integrity !== undefined) expect([path, integrity]).toEqual([path, expect.stringMatching(/^sha512-/)]);
      }
    });

    it('names no registry', () => {
      expect(lockOf(file).filter(([, { resolved, link }]) => resolved !== undefined && !link)).toEqual([]);
    });
  },
);

describe('THIRD-PARTY-LICENSES.txt', () => {
  it('is current: `npm run licences` makes it', () => {
    expect(readFileSync(join(ROOT, 'THIRD-PARTY-LICENSES.txt'), 'utf8')).toBe(licenceNotices(ROOT));
  });

  it('names every package in the dependencies, and none that only the development needs', () => {
    const { dependencies, devDependencies } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as {
      dependencies: Record<string, string>;
      devDependencies: Record<string, string>;
    };
    const text = licenceNotices(ROOT);
    const names = (name: string) => new RegExp(`^${name.replaceAll('/', '\\/')}@\\S+: \\S`, 'm').test(text);
    expect(Object.keys(dependencies).filter((name) => !names(name))).toEqual([]);
    expect(['vitest', '@biomejs/biome', 'autocannon'].filter((name) => name in devDependencies && names(name))).toEqual(
      [],
    );
    expect(text).not.toContain('no licence named');
  });
});

describe('the bill of materials', () => {
  it('lists the packages of the image', () => {
    const argv = ['sbom', '--sbom-format=cyclonedx', '--omit=dev', '--omit=optional'];
    const text = execFileSync('npm', argv, { cwd: ROOT, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] });
    const { bomFormat, components } = JSON.parse(text) as { bomFormat: string; components: { name: string }[] };
    const names = components.map(({ name }) => name);
    expect(bomFormat).toBe('CycloneDX');
    expect(names).toEqual(expect.arrayContaining(['koa', 'pg', 'bullmq']));
    expect(names).not.toContain('vitest');
    const run = readFileSync(join(ROOT, '.ci/run'), 'utf8');
    expect(run).toContain(`npm ${argv.join(' ')}`);
    expect(readFileSync(join(ROOT, '.gitignore'), 'utf8')).toMatch(/^\.artifacts\/$/m);
  });
});

describe('the project files', () => {
  it('exist', () => {
    const files = ['SECURITY.md', 'CONTRIBUTING.md', 'CHANGELOG.md', 'THIRD-PARTY-LICENSES.txt'];
    expect(files.filter((file) => !existsSync(join(ROOT, file)))).toEqual([]);
  });
});
