import { UsageError } from '../../../bin/command-arguments.ts';

/** What is wrong with the arguments that `parse` is given; empty when nothing is. */
export function problemsIn(parse: () => unknown): readonly string[] {
  try {
    parse();
  } catch (error) {
    if (error instanceof UsageError) return error.problems;
    throw error;
  }
  return [];
}
