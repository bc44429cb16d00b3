/** Node options of every process of a bench, beside its own variables: BENCH_NODE_OPTIONS, see profile.mjs. */
export const NODE_OPTIONS: Readonly<Record<string, string>> =
  process.env['BENCH_NODE_OPTIONS'] === undefined ? {} : { NODE_OPTIONS: process.env['BENCH_NODE_OPTIONS'] };
