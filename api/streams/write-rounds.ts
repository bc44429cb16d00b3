import type { StreamClient } from './client.ts';
import type { Unsent } from './outbox.ts';

/** A connection is written at most once in this time. */
const ROUND_MS = 20;
/** The precision of timers. */
const TIMER_MS = 1;
/** Connections that are written before other work of the process gets a turn. */
const SLICE = 200;

/** Messages that a client gets when nothing else waits for it. */
type WhenIdle = (client: StreamClient, nowMs: number) => readonly Unsent[];

/** Writes the messages of all connections in rounds, so that changes of a few milliseconds share a write. */
export class WriteRounds {
  readonly #whenIdle: WhenIdle;
  #marked = new Set<StreamClient>();
  #timer: NodeJS.Timeout | NodeJS.Immediate | undefined;
  #startedAtMs = Number.NEGATIVE_INFINITY;
  #isWriting = false;

  constructor(whenIdle: WhenIdle) {
    this.#whenIdle = whenIdle;
  }

  /** Includes a client in the next round. */
  mark(client: StreamClient): void {
    this.#marked.add(client);
    this.#schedule();
  }

  /** Ends a client's part in the rounds. */
  forget(client: StreamClient): void {
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

  #write(client: StreamClient): void {
    const nowMs = performance.now();
    const isEarly = nowMs - client.writtenAtMs < ROUND_MS - TIMER_MS;
    if (isEarly || client.flush(nowMs, () => this.#whenIdle(client, nowMs))) this.#marked.add(client);
  }
}
