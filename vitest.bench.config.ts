import { defineConfig } from 'vitest/config';

/** Set for a profile: see bench/profile.mjs. */
const nodeOptions = process.env['BENCH_NODE_OPTIONS'];

/**
 * Benchmarks run like tests, one at a time, on the same cluster and harness, with a table at the end instead of assertions on time.
 * `--mode curves` runs the cost curves (bench/*.curve.ts) instead, which take long.
 */
export default defineConfig(({ mode }) => ({
  test: {
    include: [mode === 'curves' ? 'bench/**/*.curve.ts' : 'bench/**/*.bench.ts'],
    globalSetup: ['test/support/global-setup.ts', 'bench/figure-run.ts'],
    fileParallelism: false,
    testTimeout: 2 * 3_600_000,
    hookTimeout: 3_600_000,
    pool: 'forks',
    execArgv: nodeOptions?.split(' ') ?? [],
    setupFiles: nodeOptions === undefined ? [] : ['bench/profile-setup.ts'],
  },
}));
