/** Allows a burst, and then a rate. */
export class TokenBucket {
  readonly #burst: number;
  readonly #perSecond: number;
  readonly #nowMs: () => number;
  #tokens: number;
  #filledAtMs: number;

  constructor(burst: number, perSecond: number, nowMs: () => number = () => performance.now()) {
    this.#burst = burst;
    this.#perSecond = perSecond;
    this.#nowMs = nowMs;
    this.#tokens = burst;
    this.#filledAtMs = nowMs();
  }

  /** Whether one more is allowed. Counts it. */
  take(): boolean {
    const nowMs = this.#nowMs();
    this.#tokens = Math.min(this.#burst, this.#tokens + ((nowMs - this.#filledAtMs) / 1_000) * this.#perSecond);
    this.#filledAtMs = nowMs;
    if (this.#tokens < 1) return false;
    this.#tokens -= 1;
    return true;
  }
}
