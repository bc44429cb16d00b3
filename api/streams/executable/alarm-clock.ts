/** The longest time of a timer of Node. */
const MAX_TIMER_MS = 2 ** 31 - 1;
/** Alarms of the same moment ring together. */
const PRECISION_MS = 50;

/** Rings for each key once after its time, with one timer for the next of them. */
export class AlarmClock<Key> {
  readonly #ring: (key: Key) => void;
  /** Milliseconds of the monotonic clock. */
  readonly #dueMs = new Map<Key, number>();
  #timer: NodeJS.Timeout | undefined;
  #timerMs = Number.POSITIVE_INFINITY;

  constructor(ring: (key: Key) => void) {
    this.#ring = ring;
  }

  /** Sets the alarm of a key, in place of its earlier one. Infinity: none. */
  set(key: Key, inMs: number): void {
    if (inMs === Number.POSITIVE_INFINITY) {
      this.#dueMs.delete(key);
      return;
    }
    const dueMs = performance.now() + inMs;
    this.#dueMs.set(key, dueMs);
    this.#schedule(dueMs);
  }

  delete(key: Key): void {
    this.#dueMs.delete(key);
    if (this.#dueMs.size === 0) this.close();
  }

  close(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#timerMs = Number.POSITIVE_INFINITY;
  }

  #schedule(dueMs: number): void {
    if (dueMs >= this.#timerMs) return;
    clearTimeout(this.#timer);
    this.#timerMs = dueMs;
    const waitMs = Math.max(PRECISION_MS, dueMs - performance.now());
    this.#timer = setTimeout(() => this.#wake(), Math.min(MAX_TIMER_MS, waitMs));
    this.#timer.unref();
  }

  #wake(): void {
    this.close();
    const nowMs = performance.now();
    const due: Key[] = [];
    let nextMs = Number.POSITIVE_INFINITY;
    for (const [key, dueMs] of this.#dueMs) {
      if (dueMs <= nowMs) due.push(key);
      else nextMs = Math.min(nextMs, dueMs);
    }
    for (const key of due) this.#dueMs.delete(key);
    if (nextMs !== Number.POSITIVE_INFINITY) this.#schedule(nextMs);
    for (const key of due) this.#ring(key);
  }
}
