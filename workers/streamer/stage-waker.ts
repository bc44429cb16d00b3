import type { LaneJob, Producer } from '../../src/queues/producer.ts';

/** A feed commits hundreds of times a second; each wake-up is a call to the queue store. */
const EVERY_MS = 20;

/** Collects wake-ups of stages for some milliseconds. */
export class StageWaker {
  readonly #producer: Pick<Producer, 'wakeStage'>;
  readonly #waiting = new Map<LaneJob, Set<number>>();
  #timer: NodeJS.Timeout | undefined;
  /** A producer whose wake-ups of stages are collected. */
  readonly producer: Producer;

  constructor(producer: Producer) {
    this.#producer = producer;
    this.producer = { ...producer, wakeStage: (name, shards) => this.wake(name, shards) };
  }

  wake(name: LaneJob, shards: readonly number[]): void {
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
