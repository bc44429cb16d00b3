import type { Message } from './frame.ts';

/** Bytes that an unsent message occupies besides its text. */
const ENTRY_BYTES = 120;

/** A message that waits for its reader. */
export interface Unsent {
  readonly message: Message;
  /** The subscriptions that get it. */
  readonly subscriptions: string[];
  /** The number of earlier changes that it replaced. */
  readonly conflated: number;
}

/**
 * The unsent messages of one connection, in the order of their numbers. While the reader is slow, a state replaces an unsent earlier state
 * of the same outcome and moves to the end, because its number is the latest.
 */
export class Outbox {
  /** Absent while empty: most connections are idle. */
  #entries: Map<string | number, Unsent> | undefined;
  #last: Unsent | undefined;
  #next = 0;
  #bytes = 0;

  get bytes(): number {
    return this.#bytes;
  }

  get size(): number {
    return this.#entries?.size ?? 0;
  }

  /**
   * Appends a message for a subscription. The message that was appended last gets another subscription instead of a second copy. Returns
   * whether it replaced an unsent state.
   */
  push(message: Message, subscription: string, conflationKey?: string): boolean {
    if (this.#last?.message === message) {
      const { subscriptions } = this.#last;
      // The replaced state may have passed this subscription on already.
      if (!subscriptions.includes(subscription)) subscriptions.push(subscription);
      return false;
    }
    this.#entries ??= new Map();
    const key = conflationKey ?? this.#next++;
    const before = this.#entries.get(key);
    if (before) this.#forget(key, before);
    const subscriptions = [...new Set([...(before?.subscriptions ?? []), subscription])];
    this.#last = { message, subscriptions, conflated: before ? before.conflated + 1 : 0 };
    this.#entries.set(key, this.#last);
    this.#bytes += bytesOf(message);
    return before !== undefined;
  }

  /** Removes messages from the front: at most this many, and no more than these bytes unless the first one is larger. */
  take(maxMessages: number, maxBytes: number): Unsent[] {
    const taken: Unsent[] = [];
    if (!this.#entries) return taken;
    let bytes = 0;
    for (const [key, entry] of this.#entries) {
      bytes += bytesOf(entry.message);
      if (taken.length >= maxMessages || (taken.length > 0 && bytes > maxBytes)) break;
      this.#forget(key, entry);
      taken.push(entry);
    }
    this.#last = undefined;
    if (this.#entries.size === 0) this.#entries = undefined;
    return taken;
  }

  clear(): void {
    this.#entries = undefined;
    this.#last = undefined;
    this.#bytes = 0;
  }

  /** Drops a subscription from all messages, and the messages that no other subscription gets. */
  remove(subscription: string): void {
    this.#last = undefined;
    for (const [key, entry] of this.#entries ?? []) {
      const place = entry.subscriptions.indexOf(subscription);
      if (place < 0) continue;
      entry.subscriptions.splice(place, 1);
      if (entry.subscriptions.length === 0) this.#forget(key, entry);
    }
  }

  #forget(key: string | number, { message }: Unsent): void {
    this.#entries?.delete(key);
    this.#bytes -= bytesOf(message);
  }
}

function bytesOf({ head, data }: Message): number {
  return head.length + data.length + ENTRY_BYTES;
}

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

/** A connection is written at most once in this time. */
const ROUND_MS = 20;
/** The precision of timers. */
const TIMER_MS = 1;
/** Connections that are written before other work of the process gets a turn. */
const SLICE = 200;

interface WrittenClient {
  /** Of its last write, monotonic milliseconds. */
  readonly writtenAtMs: number;
  /** Writes its unsent messages, or those of `whenIdle`. Returns whether it needs another round. */
  flush(nowMs: number, whenIdle: () => readonly Unsent[]): boolean;
}

/** Messages that a client gets when nothing else waits for it. */
type WhenIdle<Client> = (client: Client, nowMs: number) => readonly Unsent[];

/** Writes the messages of all connections in rounds, so that changes of a few milliseconds share a write. */
export class WriteRounds<Client extends WrittenClient> {
  readonly #whenIdle: WhenIdle<Client>;
  #marked = new Set<Client>();
  #timer: NodeJS.Timeout | NodeJS.Immediate | undefined;
  #startedAtMs = Number.NEGATIVE_INFINITY;
  #isWriting = false;

  constructor(whenIdle: WhenIdle<Client>) {
    this.#whenIdle = whenIdle;
  }

  /** Includes a client in the next round. */
  mark(client: Client): void {
    this.#marked.add(client);
    this.#schedule();
  }

  /** Ends a client's part in the rounds. */
  forget(client: Client): void {
    this.#marked.delete(client);
  }

  #schedule(): void {
    if (this.#timer !== undefined || this.#isWriting) return;
    const waitMs = this.#startedAtMs + ROUND_MS - performance.now();
    this.#timer = waitMs <= 0 ? setImmediate(() => void this.#run()) : setTimeout(() => void this.#run(), waitMs);
  }

  async #run(): Promise<void> {
    this.#timer = undefined;
    this.#isWriting = true;
    this.#startedAtMs = performance.now();
    const clients = this.#marked;
    this.#marked = new Set();
    let written = 0;
    for (const client of clients) {
      this.#write(client);
      written += 1;
      if (written % SLICE === 0) await new Promise((resolve) => setImmediate(resolve));
    }
    this.#isWriting = false;
    if (this.#marked.size > 0) this.#schedule();
  }

  #write(client: Client): void {
    const nowMs = performance.now();
    const isEarly = nowMs - client.writtenAtMs < ROUND_MS - TIMER_MS;
    if (isEarly || client.flush(nowMs, () => this.#whenIdle(client, nowMs))) this.#marked.add(client);
  }
}
