import type { Options } from '../cli/arguments.ts';

/** A subcommand of `oddswire`. */
export interface Command {
  /** The text of `--help`. */
  readonly usage: string;
  /** The words that may follow its name, for the completion of a shell. */
  readonly verbs?: readonly string[];
  /** The options of all verbs. */
  readonly options?: Options;
  /** Runs until the work is done and resolves with the exit code. @throws UsageError for wrong arguments */
  run(argv: readonly string[]): Promise<number>;
}
