import { appendFile } from 'node:fs/promises';
import { expect, inject } from 'vitest';
import { note, report } from '../support/report.ts';
import { type Combination, measureCombination } from './combination.ts';
import type { SteadyOptions } from './options.ts';
import { factsBeyondRest, figuresOf, jsonLine, textOf } from './report.ts';

interface Asked {
  readonly markets: number;
  readonly rate: number;
}

/** The combinations of a run; the demo is one. */
export function combinationsOf({ world, markets, rates }: SteadyOptions): { title: string; asked?: Asked }[] {
  if (world === 'demo') return [{ title: 'the demo' }];
  const matrix = markets.flatMap((count) => rates.map((rate) => ({ markets: count, rate })));
  return matrix.map((asked) => ({ title: `${asked.markets} markets at ${asked.rate} trades/s`, asked }));
}

/** The combination at rest of each number of markets. */
const atRest = new Map<number, Combination>();

/** Measures a combination and prints its tables and its JSON line. */
export async function runCombination(options: SteadyOptions, asked?: Asked): Promise<void> {
  const redisUrl = options.queues === 'redis' ? inject('redisUrl') : null;
  if (options.queues === 'redis' && redisUrl === null) throw new Error('STEADY_QUEUES=redis, and there is no Redis');
  const combination = await measureCombination(options, redisUrl, asked);
  console.log(`\n${textOf(combination, options.top)}\n`);
  report(figuresOf(combination));
  const line = jsonLine(combination, options.top);
  if (options.output) await appendFile(options.output, `${line}\n`);
  console.log(line);
  const { facts, title, load, baselines } = combination;
  const rest = asked && atRest.get(asked.markets);
  if (rest !== undefined) note(factsBeyondRest(combination, rest));
  if (asked?.rate === 0) atRest.set(asked.markets, combination);
  note(`${title}: load average ${load[0]} before, ${load[1]} after`);
  if (baselines.failures > 0) note(`${title}: ${baselines.failures} polls of the plain program failed`);
  if (asked?.rate !== 0) expect(facts.trades, 'stored trades').toBeGreaterThan(0);
}
