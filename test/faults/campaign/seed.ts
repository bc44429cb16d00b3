import { randomInt } from 'node:crypto';
import { relative } from 'node:path';
import { expect } from 'vitest';
import { RandomStream } from '../../../sim/random.ts';

const given = process.env['FAULTS_SEED'];

/** The seed of every choice of this run: FAULTS_SEED, or a new one each time. */
export const SEED = given === undefined ? randomInt(1, 2 ** 31) : Number(given);

/** The command that repeats the same choices. */
export function replayCommand(): string {
  const { testPath } = expect.getState();
  const file = testPath === undefined ? 'test/faults' : relative(process.cwd(), testPath);
  return `FAULTS_SEED=${SEED} npm run test:faults -- ${file}`;
}

/** The choices of one campaign, independent of other campaigns of the run. */
export function streamOf(...names: readonly string[]): RandomStream {
  return new RandomStream(SEED, ...names.flatMap((name) => [...name].map((letter) => letter.charCodeAt(0))));
}
