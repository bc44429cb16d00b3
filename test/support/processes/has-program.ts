import { spawnSync } from 'node:child_process';

/** Whether a program is on PATH; prints the subject of the skipped tests when it is not. */
export function hasProgram(program: string, subject: string): boolean {
  if (spawnSync(program, ['--version']).status === 0) return true;
  console.warn(`\n!!! no ${program} on PATH: the tests of ${subject} are SKIPPED !!!\n`);
  return false;
}
