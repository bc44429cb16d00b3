import type { Frame } from './frame.ts';

/**
 * The latest changes of the journal, so that a client that reconnects after a short loss costs no database query. Bounded by its bytes,
 * which does not grow with the number of clients.
 */
export class RecentFrames {
  readonly #maxBytes: number;
  #frames: Frame[] = [];
  /** The index of the oldest kept frame; the earlier ones are dropped in blocks. */
  #start = 0;
  #bytes = 0;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** Adds the next change. */
  push(frame: Frame): void {
    this.#frames.push(frame);
    this.#bytes += bytesOf(frame);
    while (this.#bytes > this.#maxBytes && this.#start < this.#frames.length) {
      this.#bytes -= bytesOf(this.#frames[this.#start] as Frame);
      this.#start += 1;
    }
    if (this.#start > 1_024 && this.#start * 2 > this.#frames.length) {
      this.#frames = this.#frames.slice(this.#start);
      this.#start = 0;
    }
  }

  clear(): void {
    this.#frames = [];
    this.#start = 0;
    this.#bytes = 0;
  }

  /** Up to `limit` changes after a number. Undefined when it does not have all of them. */
  after(seq: number, limit: number): readonly Frame[] | undefined {
    const oldest = this.#frames[this.#start];
    if (!oldest || seq < oldest.seq - 1) return undefined;
    // The numbers have no holes.
    const from = this.#start + Math.max(0, seq + 1 - oldest.seq);
    return this.#frames.slice(from, from + limit);
  }
}

function bytesOf({ head, data }: Frame): number {
  return 2 * (head.length + data.length) + 300;
}
