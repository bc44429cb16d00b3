import { UsageError } from '../../cli/arguments.ts';

/** The problems that `parse` reports for these arguments; empty for valid ones. */
export function problemsIn(parse: () => unknown): readonly string[] {
  try {
    parse();
  } catch (error) {
    if (error instanceof UsageError) return error.problems;
    throw error;
  }
  return [];
}
