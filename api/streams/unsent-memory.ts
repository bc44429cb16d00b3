/** A reader that lags behind. */
export interface SlowReader {
  /** Bytes of its unsent messages; 0 when its connection is closed. */
  readonly unsentBytes: number;
  /** When it last accepted a message, on a monotonic clock. */
  readonly writtenAtMs: number;
  /** Frees the memory: ends the stream, or cuts the connection of a stream that has ended. */
  relieve(): void;
}

/** Streams end until this share of the limit is left, so that the next message does not end the next stream. */
const KEPT_SHARE = 0.9;

/**
 * The unsent messages of all slow readers of this process together. Beyond the limit, the streams end whose readers have accepted nothing
 * for the longest time. A reader that accepts its messages is not counted: they wait for one round of writes.
 */
export class UnsentMemory {
  readonly #maxBytes: number;
  /** The bytes of each slow reader when it was last noted. */
  readonly #noted = new Map<SlowReader, number>();
  #bytes = 0;
  #isRelieving = false;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** The bytes of all slow readers at this moment. */
  get bytes(): number {
    for (const reader of this.#noted.keys()) this.#count(reader);
    return this.#bytes;
  }

  /** Counts a slow reader after its unsent messages have changed. */
  note(reader: SlowReader): void {
    this.#count(reader);
    if (this.#bytes > this.#maxBytes && !this.#isRelieving) this.#relieve();
  }

  /** The reader has accepted its messages, or its connection is closed. */
  forget(reader: SlowReader): void {
    this.#bytes -= this.#noted.get(reader) ?? 0;
    this.#noted.delete(reader);
  }

  #count(reader: SlowReader): void {
    const bytes = reader.unsentBytes;
    this.#bytes += bytes - (this.#noted.get(reader) ?? 0);
    this.#noted.set(reader, bytes);
  }

  /** Readers accept bytes without notice, so all are counted again first. */
  #relieve(): void {
    this.#isRelieving = true;
    if (this.bytes > this.#maxBytes) {
      const slowestFirst = [...this.#noted.keys()].sort((a, b) => (a.writtenAtMs < b.writtenAtMs ? -1 : 1));
      for (const reader of slowestFirst) {
        if (this.#bytes <= this.#maxBytes * KEPT_SHARE) break;
        reader.relieve();
        this.#count(reader);
      }
    }
    this.#isRelieving = false;
  }
}
