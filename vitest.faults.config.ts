import { defineConfig } from 'vitest/config';

/** Fail-overs, restarts and many processes: tests that mostly wait, one file at a time, too long for every run. */
export default defineConfig({
  test: {
    include: ['test/faults/**/*.test.ts'],
    globalSetup: ['test/support/global-setup.ts'],
    testTimeout: 1_200_000,
    hookTimeout: 1_200_000,
    pool: 'forks',
    fileParallelism: false,
  },
});
