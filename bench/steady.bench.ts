import { it } from 'vitest';
import { steadyOptions } from './steady/options.ts';
import { combinationsOf, runCombination } from './steady/run.ts';

const options = steadyOptions(process.env, {
  markets: [100],
  rates: [0, 10],
  seconds: 20,
  warmUpSeconds: 5,
  top: 10,
});

it.each(combinationsOf(options))('measures the cost of $title', async ({ asked }) => {
  await runCombination(options, asked);
});
