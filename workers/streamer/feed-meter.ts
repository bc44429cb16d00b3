const WINDOW_MS = 5_000;
const MAX_SAMPLES = 1_000;

/** The messages of one venue in the last five seconds, and their lag. */
export class FeedMeter {
  readonly #now: () => number;
  #counts: { atMs: number; messages: number }[] = [];
  #lags: { atMs: number; lagMs: number }[] = [];

  constructor(now: () => number) {
    this.#now = now;
  }

  /** Counts messages that arrived now. `venueAtMs`: the newest time of the venue in them, epoch milliseconds. */
  count(messages: number, venueAtMs: number | undefined): void {
    const nowMs = this.#now();
    const last = this.#counts.at(-1);
    if (last !== undefined && nowMs - last.atMs < 100) last.messages += messages;
    else this.#counts.push({ atMs: nowMs, messages });
    if (venueAtMs === undefined || this.#lags.length >= MAX_SAMPLES) return;
    this.#lags.push({ atMs: nowMs, lagMs: Math.max(0, nowMs - venueAtMs) });
  }

  /** Messages per second, and the median lag in milliseconds; null without a time of the venue. */
  read(): { messagesPerSecond: number; lagMs: number | null } {
    const sinceMs = this.#now() - WINDOW_MS;
    this.#counts = this.#counts.filter(({ atMs }) => atMs > sinceMs);
    this.#lags = this.#lags.filter(({ atMs }) => atMs > sinceMs);
    const messages = this.#counts.reduce((sum, each) => sum + each.messages, 0);
    const sorted = this.#lags.map(({ lagMs }) => lagMs).sort((a, b) => a - b);
    return {
      messagesPerSecond: (messages * 1_000) / WINDOW_MS,
      lagMs: sorted[Math.floor(sorted.length / 2)] ?? null,
    };
  }
}
