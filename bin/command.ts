/** A subcommand of `oddswire`. */
export interface Command {
  /** The text of `--help`. */
  readonly usage: string;
  /** Runs until the work is done and resolves with the exit code. @throws UsageError for wrong arguments */
  run(argv: readonly string[]): Promise<number>;
}
