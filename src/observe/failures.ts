import { OddswireError } from '../domain/values/errors.ts';

/** Whether the n-th consecutive failure gets a log line: the 1st, 2nd, 4th, 8th … do, so that an outage does not flood the log. */
export function shouldLog(inARow: number): boolean {
  return inARow > 0 && (inARow & (inARow - 1)) === 0;
}

/** Counts consecutive failures by name, so that an outage produces a few log lines instead of one per tick. */
export class FailureStreaks {
  readonly #counts = new Map<string, number>();

  /** Records a failure; returns the number of consecutive failures, and whether to log. */
  failed(name: string): { inARow: number; shouldLog: boolean } {
    const inARow = (this.#counts.get(name) ?? 0) + 1;
    this.#counts.set(name, inARow);
    return { inARow, shouldLog: shouldLog(inARow) };
  }

  /** Ends a streak; returns the number of its failures. */
  succeeded(name: string): number {
    const failures = this.#counts.get(name) ?? 0;
    this.#counts.delete(name);
    return failures;
  }
}

/** The fields of an error in a log line. The message of our own errors is complete; any other error needs its stack. */
export function failureFields(error: Error): { code: string; reason: string } | { err: Error } {
  return error instanceof OddswireError ? { code: error.code, reason: error.message } : { err: error };
}
