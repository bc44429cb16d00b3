import { defineConfig } from 'vitest/config';
import { LongestFirst } from './test/support/longest-first.ts';

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    // Minutes of waiting for fail-overs and restarts: `npm run test:faults`.
    exclude: ['test/faults/**'],
    globalSetup: ['test/support/global-setup-in-memory.ts'],
    testTimeout: 60_000,
    hookTimeout: 120_000,
    pool: 'forks',
    // No module of ours keeps state: files of one worker share what they import, which saves a third of the time.
    isolate: false,
    // Most tests wait for other processes: more files at once than the usual one per spare core.
    maxWorkers: 3,
    sequence: { sequencer: LongestFirst },
  },
});
