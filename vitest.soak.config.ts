import { defineConfig } from 'vitest/config';

/** The soak: one file that takes as long as it is told to, and prints as it goes. */
export default defineConfig({
  test: {
    include: ['bench/soak/soak.ts'],
    globalSetup: ['test/support/global-setup.ts'],
    // As long as SOAK_MINUTES says: a week at most.
    testTimeout: 604_800_000,
    hookTimeout: 120_000,
    pool: 'forks',
    disableConsoleIntercept: true,
    // Each test as it ends: the file takes long.
    reporters: ['verbose'],
  },
});
