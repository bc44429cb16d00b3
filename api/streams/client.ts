import type { AccountUse } from './account-use.ts';
import type { Filter } from './filter.ts';
import type { Message, Replaceable } from './frame.ts';
import { Outbox, type SlowReader, type Unsent, type UnsentMemory } from './outbox.ts';

/** Why the server ended a stream. */
export type EndReason =
  | 'client'
  | 'lagged'
  | 'memory'
  | 'unauthorized'
  | 'draining'
  | 'unresponsive'
  | 'protocol'
  | 'failed';

/** The connection of a client. */
export interface Sink {
  /** Sends messages in one write. */
  send(messages: readonly Unsent[]): void;
  /** Whether the reader is slow: then messages wait in the outbox, where they can be conflated. */
  readonly isBlocked: boolean;
  /** Bytes that wait in the connection; 0 when it is closed. */
  readonly unsentBytes: number;
  /** Sends the last messages and ends the connection, also when its reader does not read. */
  end(reason: EndReason, last: readonly Unsent[]): void;
}

/** A part of the journal that a client follows. */
export interface Subscription {
  readonly id: string;
  readonly filter: Filter;
  readonly client: StreamClient;
  /** `replaying`: it gets stored changes, and no others. */
  state: 'replaying' | 'live';
  /** Changes up to this number are not sent: the client has them. */
  after: number;
  /** The last number that was sent, or passed without a change for it. */
  sent: number;
}

/** The unsent bytes of a connection that does not accept more, beyond which its stream ends. */
const MAX_UNSENT_BYTES = 256 * 1024;
/** A burst may exceed the bytes by this factor until its reader had the time of a round to read. */
const BURST = 8;
/** One write has at most so much, so that the rest can still be conflated. */
const MAX_WRITE_BYTES = 256 * 1024;
const MAX_WRITE_MESSAGES = 1_000;

interface ClientOptions {
  sink: Sink;
  use: AccountUse;
  keyId: string;
  /** Between heartbeats. */
  heartbeatMs: number;
  /** Of all streams of this process. */
  memory: UnsentMemory;
  /** Called at the end of the stream, once. */
  onEnd(reason: EndReason): void;
  onConflated(): void;
  /** The messages to a reader that is too slow, at the end of its stream. */
  finalMessages(client: StreamClient): readonly Unsent[];
  maxUnsentBytes?: number;
}

/** One connection: its subscriptions and its unsent messages. */
export class StreamClient implements SlowReader {
  readonly subscriptions = new Map<string, Subscription>();
  readonly use: AccountUse;
  readonly keyId: string;
  readonly heartbeatMs: number;
  readonly #sink: Sink;
  readonly #options: ClientOptions;
  readonly #outbox = new Outbox();
  #hasEnded = false;
  /** Whether the last write left messages, or the connection does not accept more. */
  #isSlow = false;
  #waiting: (() => void)[] | undefined;
  #writtenAtMs = Number.NEGATIVE_INFINITY;
  #changedAtMs = Number.NEGATIVE_INFINITY;
  #sentCursor: string | undefined;

  constructor(options: ClientOptions) {
    this.#options = options;
    this.#sink = options.sink;
    this.use = options.use;
    this.keyId = options.keyId;
    this.heartbeatMs = options.heartbeatMs;
  }

  get hasEnded(): boolean {
    return this.#hasEnded;
  }

  /** The time of the last write, milliseconds of the monotonic clock. */
  get writtenAtMs(): number {
    return this.#writtenAtMs;
  }

  /** The same of the last write with other messages than those of `whenIdle`. */
  get changedAtMs(): number {
    return this.#changedAtMs;
  }

  /** The cursor of the last sent message of a stream of account events. */
  get sentCursor(): string | undefined {
    return this.#sentCursor;
  }

  /** Bytes of unsent messages, here and in the connection. */
  get unsentBytes(): number {
    return this.#outbox.bytes + this.#sink.unsentBytes;
  }

  /** Whether every message was handed to a connection that accepts more. */
  get isIdle(): boolean {
    return this.#outbox.size === 0 && !this.#sink.isBlocked;
  }

  /** Appends a change of the journal or a value. While the reader is slow, a state replaces an unsent earlier one. */
  offer(frame: Replaceable, { id }: Subscription): void {
    if (this.#hasEnded) return;
    const isConflating = this.#isSlow || this.#sink.isBlocked;
    const hasReplaced = this.#outbox.push(frame, id, isConflating ? frame.conflationKey : undefined);
    if (hasReplaced) this.#options.onConflated();
    this.#bound(isConflating);
  }

  /** Appends a stored change or a message about a subscription; never conflated. */
  push(message: Message, id: string): void {
    if (this.#hasEnded) return;
    this.#outbox.push(message, id);
    this.#bound(this.#isSlow || this.#sink.isBlocked);
  }

  /** Resolves when the client has room for more stored changes, or has ended. */
  room(): Promise<void> {
    if (this.#hasEnded || this.unsentBytes < this.#maxUnsentBytes / 2) return Promise.resolve();
    return new Promise((resolve) => {
      this.#waiting ??= [];
      this.#waiting.push(resolve);
    });
  }

  /** Drops the unsent messages of a subscription. */
  drop(id: string): void {
    this.#outbox.remove(id);
  }

  /**
   * Writes unsent messages once, and after the last of them the messages of `whenIdle`. Returns whether messages are left that can be
   * written later without an event of the connection.
   */
  flush(nowMs: number, whenIdle?: () => readonly Unsent[]): boolean {
    if (this.#hasEnded) return false;
    if (this.#sink.isBlocked) {
      this.#isSlow = true;
      // The reader had at least the time since the last round.
      if (this.unsentBytes > this.#maxUnsentBytes) this.#lag('lagged');
      else this.#options.memory.note(this);
      return false;
    }
    const wanted = Math.min(this.#outbox.size, MAX_WRITE_MESSAGES);
    const allowed = wanted === 0 ? 0 : this.use.takeMessages(wanted);
    const messages = this.#outbox.take(allowed, MAX_WRITE_BYTES);
    this.use.giveBackMessages(allowed - messages.length);
    if (messages.length > 0) this.#changedAtMs = nowMs;
    if (this.#outbox.size === 0 && whenIdle) messages.push(...whenIdle());
    for (const { message, subscriptions } of messages) this.#note(message, subscriptions);
    if (messages.length > 0) {
      this.#sink.send(messages);
      this.#writtenAtMs = nowMs;
    }
    this.#isSlow = this.#outbox.size > 0 || this.#sink.isBlocked;
    if (this.#isSlow) this.#options.memory.note(this);
    else this.#options.memory.forget(this);
    if (this.unsentBytes < this.#maxUnsentBytes / 2) this.#releaseWaiting();
    return this.#outbox.size > 0 && !this.#sink.isBlocked;
  }

  /** Ends the stream. Later calls have no effect. */
  end(reason: EndReason, last: readonly Unsent[] = []): void {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    this.#outbox.clear();
    this.#sink.end(reason, last);
    this.use.release();
    this.#options.onEnd(reason);
    this.#releaseWaiting();
  }

  /** The connection is closed. */
  closed(): void {
    this.end('client');
    this.#options.memory.forget(this);
  }

  /** Ends the stream for the memory of the process. The connection of a stream that has ended is cut: its reader does not read. */
  relieve(): void {
    if (this.#hasEnded) this.#sink.end('unresponsive', []);
    else this.#lag('memory');
  }

  get #maxUnsentBytes(): number {
    return this.#options.maxUnsentBytes ?? MAX_UNSENT_BYTES;
  }

  #bound(isSlow: boolean): void {
    if (this.unsentBytes > BURST * this.#maxUnsentBytes) this.#lag('lagged');
    else if (isSlow) this.#options.memory.note(this);
  }

  #lag(reason: 'lagged' | 'memory'): void {
    this.end(reason, this.#options.finalMessages(this));
  }

  #note({ seq, cursor }: Message, ids: readonly string[]): void {
    if (seq === undefined) {
      this.#sentCursor = cursor;
      return;
    }
    for (const id of ids) {
      const subscription = this.subscriptions.get(id);
      if (subscription && subscription.sent < seq) subscription.sent = seq;
    }
  }

  #releaseWaiting(): void {
    const waiting = this.#waiting;
    this.#waiting = undefined;
    for (const resolve of waiting ?? []) resolve();
  }
}
