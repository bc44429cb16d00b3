import { setMaxListeners } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';

/** The counts of a steady client. */
export interface Tally {
  done: number;
  failed: number;
  /** Milliseconds of each since the last `takeLatencies`. */
  latencies: number[];
}

/** Work at a fixed rate: late rounds are skipped and never caught up, so that the load stays constant. */
export class Steady {
  readonly #tallies = new Map<string, Tally>();
  readonly #running: Promise<void>[] = [];
  readonly #stopping = new AbortController();
  /** The first few failures, for the report at the end. */
  readonly failures: string[] = [];

  constructor() {
    // One entry for each kind of work.
    setMaxListeners(0, this.#stopping.signal);
  }

  /** Runs `work` each `everyMs`, one at a time. Errors are counted. */
  start(name: string, everyMs: number, work: (turn: number) => Promise<void>): void {
    this.#running.push(this.#loop(this.tally(name), name, everyMs, work));
  }

  async #loop(tally: Tally, name: string, everyMs: number, work: (turn: number) => Promise<void>): Promise<void> {
    const { signal } = this.#stopping;
    let nextAt = performance.now() + Math.random() * everyMs;
    for (let turn = 0; !signal.aborted; turn++) {
      const startedAt = performance.now();
      try {
        await work(turn);
        tally.done += 1;
        tally.latencies.push(performance.now() - startedAt);
      } catch (error) {
        tally.failed += 1;
        if (this.failures.length < 10) this.failures.push(`${name}: ${String(error)}`);
      }
      nextAt = Math.max(nextAt + everyMs, performance.now());
      await delay(nextAt - performance.now(), undefined, { signal }).catch(() => undefined);
    }
  }

  tally(name: string): Tally {
    const known = this.#tallies.get(name);
    if (known) return known;
    const made: Tally = { done: 0, failed: 0, latencies: [] };
    this.#tallies.set(name, made);
    return made;
  }

  /** The latencies of all kinds of work with this prefix; clears them. */
  takeLatencies(prefix: string): number[] {
    const matching = [...this.#tallies].filter(([name]) => name.startsWith(prefix));
    return matching.flatMap(([, tally]) => tally.latencies.splice(0));
  }

  count(prefix: string): number {
    return [...this.#tallies].reduce((sum, [name, { done }]) => sum + (name.startsWith(prefix) ? done : 0), 0);
  }

  /** Resolves when no round is in flight. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    await Promise.all(this.#running);
  }
}
