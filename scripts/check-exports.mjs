#!/usr/bin/env node
// Reports exports that no other file of the product imports: an export is a promise to other files, and each one makes its file harder
// to change. A test reads only exports that production also reads.
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';

const ROOT = resolve(import.meta.dirname ?? '.', '..');
const CHECKED = ['api', 'bin', 'cli', 'clients/cli', 'sim', 'small', 'src', 'workers'];
/** Scripts make files of the product, such as the OpenAPI document. */
const PRODUCTION = [...CHECKED, 'clients/typescript', 'scripts'];
const IMPORTERS = [...PRODUCTION, 'bench', 'test'];

/** Exports that only tests read, and the reason. */
const FOR_TESTS = new Map(
  Object.entries({
    // The simulator is a tool of tests too: its two servers, their replies, and the markets that have no book.
    'sim/exchange.ts': ['*'],
    'sim/receiver.ts': ['Receiver', 'Reply', 'ReplyRule'],
    'sim/limitless/wire.ts': ['isPool'],
    // Guard tests visit every page that exists.
    'api/pages/console/app.ts': ['registerConsolePages'],
    'api/pages/ops/app.ts': ['registerPages'],
    // Checked against the signature vectors that clients share.
    'clients/cli/src/listen/forward.ts': ['signedHeaders'],
  }),
);

const DECLARED = /^export (?:async )?(?:abstract )?(?:function\*?|const|let|class|interface|type|enum) ([\w$]+)/gm;
const LISTED = /^export (?:type )?\{([^}]*)\}/gm;
const IMPORT = /(?:^|\n)(?:import|export)\s+(?:type\s+)?([^'";]*?)\s*from\s+['"](\.[^'"]+)['"]/g;
const DYNAMIC = /import\(\s*['"](\.[^'"]+)['"]\s*\)/g;

const files = IMPORTERS.flatMap((folder) =>
  readdirSync(join(ROOT, folder), { recursive: true })
    .map((name) => join(folder, String(name)).replaceAll('\\', '/'))
    .filter((name) => /\.(m?ts|mjs)$/.test(name) && !name.includes('node_modules/') && !name.includes('/dist/')),
);
const texts = new Map(files.map((file) => [file, readFileSync(join(ROOT, file), 'utf8')]));

const namesIn = (list) =>
  list
    .split(',')
    .map((name) => name.trim().replace(/^type /, ''))
    .filter(Boolean);

/** Names that production imports, and names that tests import, by file; `*` for a whole module. */
const imported = new Map();
const importedByTests = new Map();
const addImport = (file, specifier, name) => {
  // A script imports the built form of a file.
  const target = relative(ROOT, resolve(ROOT, dirname(file), specifier)).replace(/^dist\/(.*)\.js$/, '$1.ts');
  const map = PRODUCTION.some((folder) => file.startsWith(`${folder}/`)) ? imported : importedByTests;
  if (!map.has(target)) map.set(target, new Set());
  map.get(target).add(name);
};
for (const [file, text] of texts) {
  for (const [, what, specifier] of text.matchAll(IMPORT)) {
    const listed = /\{([^}]*)\}/.exec(what)?.[1];
    for (const name of namesIn(listed ?? '')) addImport(file, specifier, name.split(' as ')[0].trim());
    if (what.includes('*')) addImport(file, specifier, '*');
  }
  for (const [, specifier] of text.matchAll(DYNAMIC)) addImport(file, specifier, '*');
}

const problems = [];
for (const [file, text] of texts) {
  if (!CHECKED.some((folder) => file.startsWith(`${folder}/`))) continue;
  const used = imported.get(file) ?? new Set();
  const tested = importedByTests.get(file) ?? new Set();
  const allowed = FOR_TESTS.get(file) ?? [];
  const listed = [...text.matchAll(LISTED)].flatMap(([, list]) =>
    namesIn(list).map((name) => name.split(' as ').at(-1)),
  );
  const exported = [...[...text.matchAll(DECLARED)].map(([, name]) => name), ...listed];
  for (const name of exported) {
    const isUsed = used.has(name) || used.has('*');
    if (isUsed && allowed.includes(name))
      problems.push(`${file}: production imports ${name}, so it needs no exception`);
    if (isUsed || allowed.includes(name) || allowed.includes('*')) continue;
    problems.push(`${file}: ${tested.has(name) ? 'only tests import' : 'no other file imports'} ${name}`);
  }
}

for (const problem of problems) console.error(problem);
console.log(`exports: ${files.length} files, ${problems.length} problems`);
process.exit(problems.length === 0 ? 0 : 1);
