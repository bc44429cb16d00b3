import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { describe, expect, it } from 'vitest';
import { anchorsOf, PAGES, pageText, proseOf, ROOT } from '../../support/markdown.ts';

const FOLDERS = /^(?:src|workers|api|bin|sim|test|bench|deploy|scripts|docs|clients)\//;
const ROOT_FILES = /^(?:Procfile|Dockerfile|[\w.-]+\.(?:yml|json|md|mjs))$/;
/** A path with a placeholder or a pattern names no file. */
const PATTERN = /[<>*{}\s]/;
const MAX_LINE = 140;
const MAX_IMAGE_BYTES = 300 * 1024;

const SOURCES = ['api', 'bench', 'bin', 'cli', 'clients/cli/src', 'deploy', 'scripts', 'sim', 'src', 'test', 'workers'];
const OWN_PATH = 'test/unit/docs/links.test.ts';

function filesOf(folder: string): string[] {
  return readdirSync(join(ROOT, folder), { recursive: true }).map((name) => join(folder, String(name)));
}

const SCRIPTS = Object.keys(
  (JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { scripts: Record<string, string> }).scripts,
);

/** The targets of links and images of a page that point into the repository. */
function linksOf(page: string): string[] {
  const prose = proseOf(page).replaceAll(/`[^`\n]*`/g, '');
  const inline = [...prose.matchAll(/\]\(([^)\s]+)\)/g)].map(([, target = '']) => target);
  const referenced = [...prose.matchAll(/^\[[^\]]+\]: (\S+)/gm)].map(([, target = '']) => target);
  return [...inline, ...referenced].filter((target) => !/^[a-z]+:/.test(target));
}

function problemOf(page: string, target: string): string | undefined {
  const [path = '', anchor] = target.split('#');
  const file = path === '' ? page : normalize(join(dirname(page), path));
  if (!existsSync(join(ROOT, file))) return `${target}: no such file`;
  if (anchor !== undefined && !anchorsOf(file).has(anchor)) return `${target}: no such heading`;
  return undefined;
}

function codeSpansOf(page: string): string[] {
  return [...proseOf(page).matchAll(/`([^`\n]+)`/g)].map(([, text = '']) => text);
}

describe.each(PAGES)('%s', (page) => {
  it('links only to files and headings that exist', () => {
    expect(linksOf(page).flatMap((target) => problemOf(page, target) ?? [])).toEqual([]);
  });

  it('names only files and folders that exist', () => {
    const named = codeSpansOf(page).filter((text) => FOLDERS.test(text) && !PATTERN.test(text));
    const base = page.startsWith('clients/') ? join(ROOT, dirname(page)) : ROOT;
    expect(named.filter((path) => !existsSync(join(ROOT, path)) && !existsSync(join(base, path)))).toEqual([]);
    const rootFiles = page.startsWith('clients/') ? [] : codeSpansOf(page).filter((text) => ROOT_FILES.test(text));
    const known = rootFiles.filter((name) => /^(?:Procfile|Dockerfile|docker-compose|package)/.test(name));
    expect(known.filter((name) => !existsSync(join(ROOT, name)))).toEqual([]);
  });

  it('names only commands of package.json', () => {
    const named = codeSpansOf(page).flatMap((text) => /\bnpm run (?:--silent )?([\w:]+)/.exec(text)?.[1] ?? []);
    const known = page.startsWith('clients/')
      ? [...SCRIPTS, ...clientScripts()]
      : [...SCRIPTS, ...(/\bclients\/typescript\b/.test(proseOf(page)) ? clientScripts() : [])];
    expect(named.filter((name) => !known.includes(name))).toEqual([]);
  });
});

const WORD = /[A-Za-z_]\w*/g;
/** camelCase, PascalCase of two words, or UPPER_CASE of two words: a name of the code. */
const CODE_NAME =
  /^(?:[a-z][a-z0-9]*(?:[A-Z][a-zA-Z0-9]*)+|[A-Z][a-z0-9]+(?:[A-Z][A-Za-z0-9]*)+|[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+)$/;
/** Fields of venues that oddswire does not read. */
const FOREIGN = new Set(['bodyHash', 'tradeAmount']);

it('the pages name only identifiers that the code has', () => {
  const folders = [...SOURCES, 'clients/typescript/src', 'clients/python/src'];
  const paths = [...readdirSync(ROOT), ...folders.flatMap(filesOf)];
  const read = paths.filter(
    (path) => /\.(?:ts|mjs|js|py|json|yml|ini|toml)$|Dockerfile$/.test(path) && path !== OWN_PATH,
  );
  const words = new Set(read.flatMap((path) => readFileSync(join(ROOT, path), 'utf8').match(WORD) ?? []));
  const unknown = PAGES.flatMap((page) =>
    codeSpansOf(page)
      .flatMap((text) => text.match(WORD) ?? [])
      .filter((word) => CODE_NAME.test(word) && !words.has(word) && !FOREIGN.has(word))
      .map((word) => `${page}: ${word}`),
  );
  expect(unknown).toEqual([]);
});

it('the pages name identifiers beside the files that have them', () => {
  const wrong = PAGES.flatMap((page) =>
    [...pageText(page).matchAll(/`([A-Za-z_]\w*)`\s(?:in|of)\s`([\w./-]+\.(?:ts|js|mjs|py))`/g)]
      .filter(([, , path = '']) => existsSync(join(ROOT, path)))
      .filter(
        ([, name, path = '']) =>
          !readFileSync(join(ROOT, path), 'utf8')
            .match(WORD)
            ?.some((word) => word === name),
      )
      .map(([, name, path]) => `${page}: ${name} in ${path}`),
  );
  expect(wrong).toEqual([]);
});

function clientScripts(): string[] {
  return ['typescript', 'cli'].flatMap((name) => {
    const text = readFileSync(join(ROOT, `clients/${name}/package.json`), 'utf8');
    return Object.keys((JSON.parse(text) as { scripts: Record<string, string> }).scripts);
  });
}

describe('the pages of docs', () => {
  it('can all be reached from docs/README.md', () => {
    const reached = new Set(['docs/README.md']);
    for (const page of reached) {
      for (const target of linksOf(page)) {
        const file = normalize(join(dirname(page), target.split('#')[0] ?? ''));
        if (file.endsWith('.md') && existsSync(join(ROOT, file))) reached.add(file);
      }
    }
    expect(PAGES.filter((page) => page.startsWith('docs/') && !reached.has(page))).toEqual([]);
  });

  it('have lines that fit a window, except tables', () => {
    const wide = PAGES.filter((page) => page !== 'docs/spec.md').flatMap((page) =>
      proseOf(page)
        .split('\n')
        .flatMap((line, index) =>
          line.length > MAX_LINE && !/^\s*\|/.test(line) ? [`${page}:${index + 1}: ${line.length}`] : [],
        ),
    );
    expect(wide).toEqual([]);
  });

  it('show images of moderate size', () => {
    const images = PAGES.flatMap((page) =>
      linksOf(page)
        .filter((target) => target.endsWith('.png'))
        .map((target) => normalize(join(dirname(page), target))),
    );
    expect(images.length).toBeGreaterThan(0);
    expect(images.filter((image) => statSync(join(ROOT, image)).size > MAX_IMAGE_BYTES)).toEqual([]);
  });

  it('let the README stay short', () => {
    expect(readFileSync(join(ROOT, 'README.md'), 'utf8').split('\n').length).toBeLessThanOrEqual(120);
  });
});

describe('comments and configuration files', () => {
  const files = SOURCES.flatMap(filesOf).filter((file) => /\.(?:ts|mjs|yml|ini)$/.test(file));

  it('refer only to pages and headings that exist', () => {
    const problems = files.flatMap((file) =>
      [...readFileSync(join(ROOT, file), 'utf8').matchAll(/\bdocs\/[\w/-]+\.md(?:#[\w-]+(?![\w$-]))?/g)].flatMap(
        ([target]) => problemOf('README.md', target)?.replace(/^/, `${file}: `) ?? [],
      ),
    );
    expect(problems).toEqual([]);
  });
});
