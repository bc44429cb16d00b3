import { defineConfig } from 'vitest/config';

/** Benchmarks run like tests, one at a time: same cluster, same harness, a table at the end instead of assertions on time. */
export default defineConfig({
  test: {
    include: ['bench/**/*.bench.ts'],
    globalSetup: ['test/support/global-setup.ts'],
    fileParallelism: false,
    testTimeout: 3_600_000,
    hookTimeout: 3_600_000,
    pool: 'forks',
  },
});
