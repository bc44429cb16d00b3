import type { LaneJob, Producer } from '../../src/queues/producer.ts';

/** A feed commits hundreds of times a second; each wake-up is a call to the queue store. */
const EVERY_MS = 20;

type Waker = Pick<Producer, 'wakeStage'>;

/** A producer that collects wake-ups of stages for some milliseconds. */
export class StageWaker implements Waker {
  readonly #producer: Waker;
  readonly #waiting = new Map<LaneJob, Set<number>>();
  #timer: NodeJS.Timeout | undefined;

  constructor(producer: Waker) {
    this.#producer = producer;
  }

  wakeStage(name: LaneJob, shards: readonly number[]): void {
    if (shards.length === 0) return;
    const waiting = this.#waiting.get(name) ?? new Set();
    this.#waiting.set(name, waiting);
    for (const shard of shards) waiting.add(shard);
    this.#timer ??= setTimeout(() => this.flush(), EVERY_MS);
  }

  flush(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    for (const [name, shards] of this.#waiting) this.#producer.wakeStage(name, [...shards]);
    this.#waiting.clear();
  }
}
