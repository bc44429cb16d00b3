const BAR_EVERY_MS = 200;
const LINE_EVERY_MS = 10_000;
const BAR_WIDTH = 24;

/** A part of some work: `done` of `total` units, and a text about it. */
interface Part {
  done: number;
  total: number;
  text: string;
}

/** The progress of a command: a bar that stays in its line on a terminal, elsewhere a line now and then. */
export class Progress {
  readonly #stream: Pick<NodeJS.WriteStream, 'write' | 'isTTY'>;
  readonly #now: () => number;
  readonly #beganMs: number;
  #shownAtMs: number;
  #firstDone: number | undefined;

  /** `now` is a monotonic clock, milliseconds. */
  constructor(
    stream: Pick<NodeJS.WriteStream, 'write' | 'isTTY'> = process.stderr,
    now: () => number = () => performance.now(),
  ) {
    this.#stream = stream;
    this.#now = now;
    this.#beganMs = now();
    this.#shownAtMs = this.#beganMs;
  }

  /** Shows the progress, unless it was just shown. */
  report({ done, total, text }: Part): void {
    const nowMs = this.#now();
    this.#firstDone ??= done;
    if (nowMs - this.#shownAtMs < (this.#stream.isTTY ? BAR_EVERY_MS : LINE_EVERY_MS)) return;
    this.#shownAtMs = nowMs;
    const share = total === 0 ? 1 : Math.min(1, done / total);
    const left = leftText(done - this.#firstDone, total - done, nowMs - this.#beganMs);
    const percent = `${Math.floor(share * 100)}%`.padStart(4);
    if (!this.#stream.isTTY) return void this.#stream.write(`${percent.trim()}  ${text}${left}\n`);
    const full = Math.round(share * BAR_WIDTH);
    this.#stream.write(`\r\x1b[K${'#'.repeat(full)}${'-'.repeat(BAR_WIDTH - full)} ${percent}  ${text}${left}`);
  }

  /** Replaces the bar by a line. */
  end(text: string): void {
    this.#stream.write(`${this.#stream.isTTY ? '\r\x1b[K' : ''}${text}\n`);
  }
}

/** The time for the rest, at the speed of this run; empty before the first unit. */
function leftText(done: number, rest: number, elapsedMs: number): string {
  if (done <= 0 || rest <= 0) return '';
  return `  ${spanText((rest * elapsedMs) / done / 1_000)} left`;
}

/** A span for a person, such as `40 s`, `12 min` or `3.5 h`. */
function spanText(seconds: number): string {
  if (seconds < 90) return `${Math.ceil(seconds)} s`;
  if (seconds < 5_400) return `${Math.round(seconds / 60)} min`;
  return `${(seconds / 3_600).toFixed(1)} h`;
}

/** A count for a person, such as `1,234,567`. */
export function countText(count: number): string {
  return count.toLocaleString('en-US');
}
