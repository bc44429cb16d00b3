import { defineConfig } from 'rolldown';

/**
 * Programs load these from `node_modules`: bull-board looks for files beside its own code, two packages are optional and native, and two
 * are development packages, which are not shipped. One of them makes the certificates of the demo, and needs `reflect-metadata` before it.
 */
const EXTERNAL = [
  /^@bull-board\//,
  ...['pg-native', 'msgpackr-extract'],
  // Optional packages of the archive.
  /^@duckdb\//,
  ...['hyparquet', 'hyparquet-compressors'],
  ...['supports-color', 'reflect-metadata', '@peculiar/x509'],
];

/** Optional drivers of TypeORM are not installed, and never loaded; `depd` of Koa makes functions with `eval`. */
const EXPECTED = new Set(['UNRESOLVED_IMPORT', 'EVAL']);

/** TypeORM loads the drivers of all databases to choose one by its name: a sixth of the code of a process. */
const OTHER_DRIVERS = /\/typeorm\/driver\/(?!postgres\/|types\/)[\w-]+\/\w+\.js$/;

/** The index of undici also loads its `fetch`, caches and mocks. An import that is missing here fails the build. */
const UNDICI = /\/undici\/index\.js$/;
const USED_OF_UNDICI = `
  import api from './lib/api/index.js';
  import errors from './lib/core/errors.js';
  import Dispatcher from './lib/dispatcher/dispatcher.js';
  Object.assign(Dispatcher.prototype, api);
  export { default as buildConnector } from './lib/core/connect.js';
  export { default as Agent } from './lib/dispatcher/agent.js';
  export { default as Pool } from './lib/dispatcher/pool.js';
  export { errors };`;

/** Leaves code out that no process runs: each process would compile it at its start and keep it in memory. */
const onlyUsedCode = {
  name: 'only-used-code',
  load: {
    filter: { id: [OTHER_DRIVERS, UNDICI] },
    handler: (id) => (UNDICI.test(id) ? USED_OF_UNDICI : 'module.exports = {};'),
  },
};

/**
 * A few files per program instead of a thousand modules, with the packages inside: loading them is most of the time that a process or a
 * command needs to start. A command loads the files of its own code only.
 */
export default defineConfig({
  input: {
    'api/main': 'api/main.ts',
    'workers/main': 'workers/main.ts',
    'bin/oddswire': 'bin/oddswire.ts',
    'archive/duckdb': 'src/archive/duckdb-child.ts',
    'small/main': 'small/main.ts',
    'sim/main': 'sim/main.ts',
    'sim/receiver-main': 'sim/receiver-main.ts',
  },
  platform: 'node',
  external: EXTERNAL,
  plugins: [onlyUsedCode],
  onLog(level, log, report) {
    if (!EXPECTED.has(log.code)) report(level, log);
  },
  output: {
    dir: 'dist',
    format: 'esm',
    entryFileNames: '[name].js',
    chunkFileNames: 'processes/[name].js',
    comments: false,
    // Errors are recognised and logged by their names.
    keepNames: true,
  },
});
