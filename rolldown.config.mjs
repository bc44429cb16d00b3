import { defineConfig } from 'rolldown';

/**
 * Programs load these from `node_modules`: bull-board looks for files beside its own code, two packages are optional and native, and two
 * are development packages, which are not shipped. One of them makes the certificates of the demo, and needs `reflect-metadata` before it.
 */
const EXTERNAL = [
  /^@bull-board\//,
  ...['pg-native', 'msgpackr-extract'],
  ...['supports-color', 'reflect-metadata', '@peculiar/x509'],
];

/** Optional drivers of TypeORM are not installed, and never loaded; `depd` of Koa makes functions with `eval`. */
const EXPECTED = new Set(['UNRESOLVED_IMPORT', 'EVAL']);

/**
 * A few files per program instead of a thousand modules, with the packages inside: loading them is most of the time that a process or a
 * command needs to start. A command loads the files of its own code only.
 */
export default defineConfig({
  input: {
    'api/main': 'api/main.ts',
    'workers/main': 'workers/main.ts',
    'bin/oddswire': 'bin/oddswire.ts',
    'small/main': 'small/main.ts',
    'sim/main': 'sim/main.ts',
    'sim/receiver-main': 'sim/receiver-main.ts',
  },
  platform: 'node',
  external: EXTERNAL,
  onLog(level, log, report) {
    if (!EXPECTED.has(log.code)) report(level, log);
  },
  output: {
    dir: 'dist',
    format: 'esm',
    entryFileNames: '[name].js',
    chunkFileNames: 'processes/[name].js',
    // Errors are recognised and logged by their names.
    keepNames: true,
  },
});
