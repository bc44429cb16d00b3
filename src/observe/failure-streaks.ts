/** Whether the n-th failure in a row gets a log line: the 1st, 2nd, 4th, 8th … do, so that an outage does not flood the log. */
export function shouldLog(inARow: number): boolean {
  return inARow > 0 && (inARow & (inARow - 1)) === 0;
}

/** Counts failures in a row by name, to tell an outage with a few lines instead of one per tick. */
export class FailureStreaks {
  readonly #counts = new Map<string, number>();

  /** Notes a failure; returns how many in a row, and whether to say so. */
  failed(name: string): { inARow: number; shouldLog: boolean } {
    const inARow = (this.#counts.get(name) ?? 0) + 1;
    this.#counts.set(name, inARow);
    return { inARow, shouldLog: shouldLog(inARow) };
  }

  succeeded(name: string): void {
    this.#counts.delete(name);
  }
}
