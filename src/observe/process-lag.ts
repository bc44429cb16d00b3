/** How often the lateness is sampled. */
const SAMPLE_MS = 100;
/** A timer of an idle process fires this late at most. */
const TOLERATED_MS = 20;
/** `share` covers this time. */
const WINDOW_MS = 10_000;
/** A wait is never stretched beyond this factor. */
const MAX_STRETCH = 4;
/** A process was late in a time when it was late for this part of it, and for this long. */
const LATE_SHARE = 0.2;
const LATE_MS = 500;

/** The lateness of the process since a moment. */
export interface LagMeter {
  /** Milliseconds in which the process could not run although it was due. */
  lateMs(): number;
  /** Whether the process was so late that a missed deadline may be its own fault. */
  wasLate(): boolean;
  /** A limit in milliseconds since that moment, longer by the lateness, and at most four times as long. */
  stretched(limitMs: number): number;
}

interface Sample {
  readonly atMs: number;
  readonly lateMs: number;
}

/**
 * Measures how late the timers of this process fire: its own long tasks and a machine without free processors delay them alike. All values
 * are milliseconds.
 */
export class ProcessLag {
  readonly #now: () => number;
  readonly #startedMs: number;
  readonly #samples: Sample[] = [];
  #lateMs = 0;
  #dueMs: number;

  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
    this.#startedMs = now();
    this.#dueMs = now() + SAMPLE_MS;
    setInterval(() => this.sample(), SAMPLE_MS).unref();
  }

  /** A sample by the timer of this object. */
  sample(): void {
    const nowMs = this.#now();
    this.#lateMs = this.#total(nowMs);
    this.#dueMs = nowMs + SAMPLE_MS;
    this.#samples.push({ atMs: nowMs, lateMs: this.#lateMs });
    while ((this.#samples[1]?.atMs ?? nowMs) <= nowMs - WINDOW_MS) this.#samples.shift();
  }

  /** Begins a measurement. */
  begin(): LagMeter {
    const beganMs = this.#now();
    const lateBefore = this.#total(beganMs);
    const lateMs = () => this.#total(this.#now()) - lateBefore;
    return {
      lateMs,
      wasLate: () => lateMs() >= Math.max(LATE_MS, LATE_SHARE * (this.#now() - beganMs)),
      stretched: (limitMs) => Math.min(limitMs + lateMs(), MAX_STRETCH * limitMs),
    };
  }

  /** The part of the last ten seconds in which the process was late, 0..1. */
  share(): number {
    const nowMs = this.#now();
    const first = this.#samples[0] ?? { atMs: this.#startedMs, lateMs: 0 };
    const spanMs = nowMs - first.atMs;
    return spanMs <= 0 ? 0 : Math.min(1, (this.#total(nowMs) - first.lateMs) / spanMs);
  }

  /** The longest single lateness of the last ten seconds, milliseconds, also one that lasts. */
  longestMs(): number {
    const totals = [...this.#samples.map(({ lateMs }) => lateMs), this.#total(this.#now())];
    return totals.reduce((longest, total, at) => Math.max(longest, total - (totals[at - 1] ?? total)), 0);
  }

  /** A limit for work that begins now, longer by the measured lateness. */
  stretched(limitMs: number): number {
    return Math.min(MAX_STRETCH, 1 / Math.max(1 - this.share(), 1 / MAX_STRETCH)) * limitMs;
  }

  /** With the delay that lasts: code that runs before the late timer must know it. */
  #total(nowMs: number): number {
    const lateMs = nowMs - this.#dueMs;
    return this.#lateMs + (lateMs > TOLERATED_MS ? lateMs : 0);
  }
}

let ofThisProcess: ProcessLag | undefined;

/** The lateness of this process, measured from the first call on. */
export function processLag(): ProcessLag {
  ofThisProcess ??= new ProcessLag();
  return ofThisProcess;
}
