/** Durations in milliseconds. */
export interface SilenceTiming {
  /**
   * Without data for so long, the connection requests snapshots, which the venue must answer with data: they contain each change of which
   * the message was lost. The wait doubles with each request up to `probeAfterMs`, and halves after a minute without one.
   */
  readonly quietAfterMs: number;
  /** The longest wait. A connection that is so quiet requests one snapshot at a time. */
  readonly probeAfterMs: number;
  /** Without data for so long, the feed is silent, although its pings are answered. */
  readonly silentAfterMs: number;
  readonly checkEveryMs: number;
}

/** A quiet connection that became busy waits less again. */
const QUIET_MEMORY_MS = 60_000;

/** When one connection got frames and data, and what their absence means. Times are epoch milliseconds. */
export class FeedSilence {
  readonly #timing: SilenceTiming;
  #lastDataMs: number;
  #lastFrameMs: number;
  #gotDataMs: number;
  #heardMs: number;
  #lastCheckMs: number;
  #probedMs = 0;
  #quietMs: number;

  constructor(timing: SilenceTiming, nowMs: number) {
    this.#timing = timing;
    this.#quietMs = timing.quietAfterMs;
    this.#lastDataMs = nowMs;
    this.#lastFrameMs = nowMs;
    this.#gotDataMs = nowMs;
    this.#heardMs = nowMs;
    this.#lastCheckMs = nowMs;
  }

  /** The last frame, without the forgiven stalls of this process: a gap begins there. */
  get heardMs(): number {
    return this.#heardMs;
  }

  /** The last data, likewise. */
  get gotDataMs(): number {
    return this.#gotDataMs;
  }

  /** The checks begin now. */
  start(nowMs: number): void {
    this.#lastCheckMs = nowMs;
  }

  /** A handshake begins, so the next frame is due from now on. */
  connecting(nowMs: number): void {
    this.#lastFrameMs = nowMs;
  }

  heard(nowMs: number): void {
    this.#lastFrameMs = nowMs;
    this.#heardMs = nowMs;
  }

  gotData(nowMs: number): void {
    this.#lastDataMs = nowMs;
    this.#gotDataMs = nowMs;
  }

  withoutFrameMs(nowMs: number): number {
    return nowMs - this.#lastFrameMs;
  }

  withoutDataMs(nowMs: number): number {
    return nowMs - this.#lastDataMs;
  }

  /** After a stall of this process, its frames are still unread: the stall is no silence of the venue. Returns whether there was one. */
  forgiveStall(nowMs: number): boolean {
    const { checkEveryMs } = this.#timing;
    const lateMs = nowMs - this.#lastCheckMs - checkEveryMs;
    this.#lastCheckMs = nowMs;
    if (lateMs < checkEveryMs) return false;
    this.#lastFrameMs = Math.min(nowMs, this.#lastFrameMs + lateMs);
    this.#lastDataMs = Math.min(nowMs, this.#lastDataMs + lateMs);
    return true;
  }

  /** The answer to the time without data: a new connection, a snapshot of each market or of one; undefined for none. */
  answer(nowMs: number): 'reconnect' | 'probe_all' | 'probe_one' | undefined {
    const { silentAfterMs, probeAfterMs, quietAfterMs } = this.#timing;
    const withoutMs = this.withoutDataMs(nowMs);
    if (withoutMs >= silentAfterMs) return 'reconnect';
    if (withoutMs >= this.#quietMs && nowMs - this.#probedMs >= this.#quietMs) {
      const isQuiet = this.#quietMs >= probeAfterMs;
      this.#probedMs = nowMs;
      this.#quietMs = Math.min(2 * this.#quietMs, probeAfterMs);
      return isQuiet ? 'probe_one' : 'probe_all';
    }
    if (nowMs - this.#probedMs >= QUIET_MEMORY_MS) {
      this.#probedMs = nowMs;
      this.#quietMs = Math.max(this.#quietMs / 2, quietAfterMs);
    }
    return undefined;
  }
}
