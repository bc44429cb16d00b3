/**
 * The end of a process of several parts: after its last part, and at once when a part fails, because the runner then starts all of them
 * again. After a request to stop, a part that does not stop cleanly leaves the others their time. The exit code is the worst one.
 */
export class Parts {
  readonly #running: Set<string>;
  readonly #exit: (code: number) => void;
  #isStopping = false;
  #worst = 0;

  constructor(names: Iterable<string>, exit: (code: number) => void) {
    this.#running = new Set(names);
    this.#exit = exit;
  }

  /** A stop was requested of all parts, each of which ends within its own limit. */
  stopping(): void {
    this.#isStopping = true;
  }

  ended(name: string, code: number): void {
    this.#running.delete(name);
    this.#worst = Math.max(this.#worst, code);
    if (this.#running.size === 0 || (code !== 0 && !this.#isStopping)) this.#exit(this.#worst);
  }
}
