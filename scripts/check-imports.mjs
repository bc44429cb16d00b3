#!/usr/bin/env node
// Enforces the rules of docs/architecture.md: imports of folders and packages, cycles,
// files per folder, the longest chain of imports, and the environment only in src/config.
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';

const ROOT = resolve(import.meta.dirname ?? '.', '..');
const FOLDERS = ['api', 'bench', 'bin', 'cli', 'clients/cli/src', 'sim', 'small', 'src', 'workers'];

/** Area of a file: `src/<folder>`, `clients/<folder>`, else the top folder. */
const areaOf = (file) =>
  file
    .split('/')
    .slice(0, /^(src|clients)\//.test(file) ? 2 : 1)
    .join('/');

/** The first folder below a folder, '.' for its own files; undefined outside of it. */
const roomOf = (folder, file) => {
  if (!file.startsWith(`${folder}/`)) return undefined;
  const inside = file.slice(folder.length + 1).split('/');
  return inside.length > 1 ? inside[0] : '.';
};

/** The areas of ours that each area may import, beside itself. */
const MAY_IMPORT = {
  'src/domain': [],
  'src/config': ['src/domain'],
  'src/observe': ['src/domain', 'src/config'],
  'src/venues': ['src/domain', 'src/config', 'src/observe'],
  'src/webhooks': ['src/domain', 'src/config', 'src/observe'],
  'src/store': ['src/domain', 'src/config', 'src/observe'],
  'src/queues': ['src/domain', 'src/config', 'src/observe'],
  'src/archive': ['src/domain', 'src/config', 'src/observe', 'src/store'],
  'src/runtime': ['src/domain', 'src/config', 'src/observe', 'src/webhooks', 'src/store', 'src/queues'],
  'src/embedded': ['src/domain', 'src/config', 'src/observe', 'src/store', 'src/runtime'],
  workers: [
    'src/domain',
    'src/config',
    'src/observe',
    'src/venues',
    'src/webhooks',
    'src/store',
    'src/queues',
    'src/archive',
    'src/runtime',
  ],
  api: [
    'src/domain',
    'src/config',
    'src/observe',
    'src/webhooks',
    'src/store',
    'src/queues',
    'src/archive',
    'src/runtime',
  ],
  sim: ['src/domain'],
  cli: ['src/domain'],
  'clients/cli': ['src/domain', 'cli', 'clients/typescript'],
  small: ['src/config', 'src/observe', 'src/queues', 'src/runtime', 'api', 'workers'],
  bin: [
    'cli',
    'src/domain',
    'src/config',
    'src/observe',
    'src/webhooks',
    'src/queues',
    'src/runtime',
    'src/archive',
    'src/embedded',
    'src/store',
    'src/venues',
    'sim',
  ],
  bench: [
    'src/domain',
    'src/config',
    'src/observe',
    'src/venues',
    'src/webhooks',
    'src/store',
    'src/queues',
    'src/archive',
    'src/runtime',
    'api',
    'workers',
    'sim',
    'test',
  ],
};

/**
 * The rooms inside a folder, and the rooms of the same folder that each may import. A folder's own files, such as its entry point,
 * may import every room. A room that is absent here may import none.
 */
const ROOMS = {
  'src/domain': {
    values: [],
    markets: ['values'],
    webhooks: ['values', 'markets'],
    alerts: ['values', 'markets', 'webhooks'],
    wallets: ['values', 'webhooks'],
    events: ['values', 'webhooks', 'alerts', 'wallets'],
    chat: ['values', 'webhooks', 'events'],
    wire: ['values', 'markets'],
    live: ['values', 'wire'],
    archive: ['values', 'wire'],
  },
  'src/store': {
    db: [],
    marks: ['db'],
    journal: ['db', 'marks'],
    prices: ['db', 'marks'],
    coverage: ['db'],
    catalog: ['db', 'marks', 'prices', 'journal', 'coverage'],
    series: ['db', 'marks', 'prices', 'journal', 'coverage', 'catalog'],
    feeds: ['db', 'marks', 'catalog'],
    deliveries: ['db'],
    alerts: ['db', 'marks', 'catalog', 'deliveries'],
    wallets: ['db', 'deliveries'],
    accounts: ['db', 'catalog'],
    archive: ['db', 'journal'],
    ops: ['db', 'marks', 'catalog', 'prices', 'series', 'feeds', 'deliveries', 'alerts', 'wallets', 'accounts'],
  },
  api: {
    access: ['.'],
    middleware: ['.', 'access'],
    http: ['.', 'access', 'middleware'],
    contract: ['.', 'http'],
    reads: ['.', 'access', 'middleware', 'http', 'contract'],
    openapi: ['.', 'http', 'contract'],
    streams: ['.', 'access', 'middleware', 'http', 'contract', 'reads'],
    docs: ['.', 'http', 'contract', 'openapi'],
    routes: ['.', 'access', 'http', 'contract', 'reads', 'openapi', 'streams', 'docs'],
    pages: ['.', 'access', 'middleware', 'http', 'contract', 'reads', 'streams', 'routes'],
    mcp: ['.', 'middleware', 'http', 'reads'],
    server: ['.', 'access', 'middleware', 'http', 'reads', 'openapi', 'streams', 'docs', 'routes', 'pages', 'mcp'],
  },
  'api/pages': {
    kit: [],
    ops: ['kit'],
    console: ['kit'],
  },
  workers: {
    process: [],
    ingest: [],
    polling: ['process', 'ingest'],
    delivery: ['process'],
    streamer: ['process', 'ingest'],
    jobs: ['process', 'ingest', 'polling', 'delivery'],
  },
};

/** The parts of src/webhooks that the api and the commands may import: they seal secrets, but never send. */
const SEALING = new Set(['src/webhooks/secret-box.ts']);

/** Packages with restricted importers. */
const PACKAGES = [
  { names: ['koa', '@koa/router'], allowed: (file) => file.startsWith('api/') },
  { names: ['typeorm', 'pg'], allowed: (file) => /^(src\/(store|queues|runtime|embedded)|bench)\//.test(file) },
  {
    names: ['bullmq', 'ioredis'],
    allowed: (file) => /^(src\/queues\/|workers\/(start-worker|process\/(define|close-workers))\.ts$)/.test(file),
  },
  {
    names: ['zod-openapi', 'marked', '@modelcontextprotocol/sdk'],
    allowed: (file) => file.startsWith('api/'),
  },
  { names: ['undici'], allowed: (file) => /^(src\/(venues|webhooks)|bench)\//.test(file) },
];

const files = FOLDERS.flatMap((folder) =>
  readdirSync(join(ROOT, folder), { recursive: true })
    .map((name) => join(folder, String(name)).replaceAll('\\', '/'))
    .filter((name) => name.endsWith('.ts')),
);

/** The files of the longest chain of imports at run time, counted with both ends. */
const MAX_CHAIN = 12;

/** Files of a folder with different kinds of files: more need rooms. Migrations are of one kind. */
const MAX_FILES = 26;
const ONE_KIND = new Set(['src/store/db/migrations']);

const problems = [];
const graph = new Map();
/** `graph` without type imports. */
const runtimeGraph = new Map();
const jobFiles = new Set();

for (const file of files) {
  const text = readFileSync(join(ROOT, file), 'utf8');
  if (/\bprocess\.env\b/.test(text) && !/^(bin|bench|sim|clients)\/|\/main\.ts$/.test(file)) {
    problems.push(`${file}: reads process.env; only src/config and the executables that feed it may`);
  }
  if (file.startsWith('src/') && /\bprocess\.exit\(/.test(text)) problems.push(`${file}: a library does not exit`);
  if (/\b(queryRunner|dataSource|db|tx|em)\.query\(\s*[`'"]/.test(text) && !file.startsWith('src/store/')) {
    problems.push(`${file}: SQL outside src/store`);
  }
  if (/ = defineJob\(/.test(text)) jobFiles.add(file);
  const imports = [
    ...text.matchAll(
      /(?:^|\n)\s*(?:import|export)\s(?:[^'";]*?\sfrom\s)?['"]([^'"]+)['"]|\bimport\(\s*['"]([^'"]+)['"]/g,
    ),
  ];
  // A default and names need two statements when both are types.
  const head = text.slice(0, text.search(/^(?!import\b|[ }]|\/\/|#!|$)/m));
  const statements = [...head.matchAll(/^import (?!type \w)[^'";]*?\sfrom '([^']+)';/gm)].map(([, name]) => name);
  for (const name of new Set(statements.filter((each, at) => statements.indexOf(each) !== at))) {
    problems.push(`${file}: imports ${name} twice`);
  }
  graph.set(file, []);
  runtimeGraph.set(file, []);
  for (const match of imports) check(file, match[1] ?? match[2], /^\s*import type\s/.test(match[0]));
}

/** Type imports do not exist at run time: api/server/api-deps.ts names the types of every room. */
function checkRooms(file, target, isType) {
  if (isType) return;
  for (const [folder, rooms] of Object.entries(ROOMS)) {
    const [from, to] = [roomOf(folder, file), roomOf(folder, target)];
    if (from === undefined || to === undefined || from === to || from === '.') continue;
    if (!rooms[from]?.includes(to)) problems.push(`${file}: ${folder}/${from} must not import ${folder}/${to}`);
  }
}

function check(file, specifier, isType) {
  if (!specifier.startsWith('.')) {
    const name = specifier
      .split('/')
      .slice(0, specifier.startsWith('@') ? 2 : 1)
      .join('/');
    const rule = PACKAGES.find(({ names }) => names.includes(name));
    if (rule && !rule.allowed(file)) problems.push(`${file}: must not import ${name}`);
    return;
  }
  const target = relative(ROOT, resolve(ROOT, dirname(file), specifier));
  graph.get(file).push(target);
  if (!isType) runtimeGraph.get(file).push(target);
  const [from, to] = [areaOf(file), areaOf(target)];
  if (from === to) {
    checkRooms(file, target, isType);
    return;
  }
  if (!MAY_IMPORT[from]?.includes(to)) problems.push(`${file}: ${from} must not import ${to}`);
  if ((from === 'api' || from === 'bin') && to === 'src/webhooks' && !SEALING.has(target)) {
    problems.push(`${file}: ${from} must not import ${target}`);
  }
}

for (const [file, targets] of graph) {
  for (const target of targets) {
    if (jobFiles.has(file) && jobFiles.has(target)) problems.push(`${file}: a job file never imports another`);
  }
}

const state = new Map();
function visit(file, path) {
  if (state.get(file) === 'done') return;
  if (state.get(file) === 'open') {
    problems.push(`cycle: ${[...path.slice(path.indexOf(file)), file].join(' -> ')}`);
    return;
  }
  state.set(file, 'open');
  for (const target of graph.get(file) ?? []) visit(target, [...path, file]);
  state.set(file, 'done');
}
for (const file of graph.keys()) visit(file, []);

/** Imports of the test folder lead out of the graph. A cycle has no longest chain, and is reported above. */
const chains = new Map();
function chainOf(file) {
  const known = chains.get(file);
  if (known) return known;
  chains.set(file, [file]);
  const longest = (runtimeGraph.get(file) ?? []).map(chainOf).reduce((a, b) => (b.length > a.length ? b : a), []);
  chains.set(file, [file, ...longest]);
  return chains.get(file);
}
const longestChain = [...runtimeGraph.keys()]
  .filter((file) => !file.startsWith('bench/'))
  .map(chainOf)
  .reduce((a, b) => (b.length > a.length ? b : a), []);
if (longestChain.length > MAX_CHAIN) {
  problems.push(`chain of ${longestChain.length} imports, at most ${MAX_CHAIN}: ${longestChain.join(' -> ')}`);
}

const sizes = new Map();
for (const file of files) sizes.set(dirname(file), (sizes.get(dirname(file)) ?? 0) + 1);
for (const [folder, size] of sizes) {
  if (size > MAX_FILES && !ONE_KIND.has(folder)) problems.push(`${folder}: ${size} files, at most ${MAX_FILES}`);
}

for (const problem of problems) console.error(problem);
console.log(`imports: ${files.length} files, ${problems.length} problems`);
process.exit(problems.length === 0 ? 0 : 1);
