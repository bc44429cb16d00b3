import { it } from 'vitest';
import { steadyOptions } from './steady/options.ts';
import { combinationsOf, runCombination } from './steady/run.ts';

const options = steadyOptions(process.env, {
  markets: [100, 10_000, 100_000],
  rates: [0, 10, 100, 1_000],
  seconds: 60,
  warmUpSeconds: 30,
  top: 30,
});

it.each(combinationsOf(options))('measures the cost of $title', async ({ asked }) => {
  await runCombination(options, asked);
});
