import { defineConfig } from 'vitest/config';

/** The soak: one long file that prints its progress. */
export default defineConfig({
  test: {
    include: ['bench/soak/soak.ts'],
    globalSetup: ['test/support/global-setup.ts'],
    // SOAK_MINUTES decides: a week at most.
    testTimeout: 604_800_000,
    hookTimeout: 300_000,
    pool: 'forks',
    disableConsoleIntercept: true,
    // Prints each test as it ends, because the file takes long.
    reporters: ['verbose'],
  },
});
