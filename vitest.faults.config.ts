import { defineConfig } from 'vitest/config';

/** Fail-overs, restarts and many processes: tests that mostly wait, one file at a time, too long for every run. */
export default defineConfig({
  test: {
    include: ['test/faults/**/*.test.ts'],
    globalSetup: ['test/support/global-setup.ts'],
    testTimeout: 600_000,
    hookTimeout: 300_000,
    pool: 'forks',
    fileParallelism: false,
  },
});
