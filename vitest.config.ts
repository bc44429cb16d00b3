import { defineConfig } from 'vitest/config';
import { GUARD_MS } from './test/support/eventually.ts';
import { LongestFirst } from './test/support/longest-first.ts';

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    // These wait for minutes for fail-overs and restarts: `npm run test:faults`.
    exclude: ['test/faults/**'],
    globalSetup: ['test/support/global-setup-in-memory.ts'],
    // Guards, and no promises of a time: a busy machine can pause for seconds, and a slow one needs minutes for some tests.
    testTimeout: 600_000,
    hookTimeout: 600_000,
    expect: { poll: { timeout: GUARD_MS } },
    pool: 'forks',
    // Our modules keep no state, so the files of one worker share their imports, which saves a third of the time.
    isolate: false,
    // Most tests wait for other processes and for timers, so more files run at once than the default of one per spare core. Each may have
    // the processes of a whole system, and Postgres has 400 connections.
    maxWorkers: 4,
    sequence: { sequencer: LongestFirst },
  },
});
