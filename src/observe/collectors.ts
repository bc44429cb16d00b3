import { within } from '../domain/values/signals.ts';

/** Reads gauges from their sources: the database, the queue store, a pool. */
export interface Collector {
  /** A label value: one of a few fixed words. */
  readonly name: string;
  /** Reads and sets. May reject. */
  read(): Promise<void>;
  /** Removes the earlier figures after a failed read: a stale figure would look current. */
  forget(): void;
}

interface CollectorsOptions {
  /** The minimum interval between two reads of a source. */
  everyMs?: number;
  /** A scrape waits no longer than this. */
  waitMs?: number;
  /** Milliseconds of a monotonic clock. */
  now?: () => number;
}

interface Entry {
  readonly collector: Collector;
  startedAtMs: number;
  running: Promise<void> | undefined;
}

/** Gauges are read on a scrape, so that a process without a scraper runs no query. */
export class Collectors {
  readonly #entries: Entry[] = [];
  readonly #onFailure: (name: string) => void;
  readonly #everyMs: number;
  readonly #waitMs: number;
  readonly #now: () => number;

  constructor(onFailure: (name: string) => void, options: CollectorsOptions = {}) {
    this.#onFailure = onFailure;
    this.#everyMs = options.everyMs ?? 5_000;
    this.#waitMs = options.waitMs ?? 2_000;
    this.#now = options.now ?? (() => performance.now());
  }

  add(...collectors: readonly Collector[]): void {
    for (const collector of collectors) {
      this.#entries.push({ collector, startedAtMs: Number.NEGATIVE_INFINITY, running: undefined });
    }
  }

  /** Reads all figures that are due, concurrently. Never rejects: a source that fails or hangs is counted and its figures dropped. */
  async collect(): Promise<void> {
    await Promise.all(this.#entries.map((entry) => this.#collectOne(entry)));
  }

  async #collectOne(entry: Entry): Promise<void> {
    // A source whose read is still in flight is not read again.
    if (!entry.running && this.#now() - entry.startedAtMs >= this.#everyMs) {
      entry.startedAtMs = this.#now();
      entry.running = this.#read(entry.collector).finally(() => {
        entry.running = undefined;
      });
    }
    if (!entry.running) return;
    await within(this.#waitMs, entry.running, () => this.#fail(entry.collector));
  }

  async #read(collector: Collector): Promise<void> {
    try {
      await collector.read();
    } catch {
      // Other users of the source log the cause; here it would be a line per scrape.
      this.#fail(collector);
    }
  }

  #fail(collector: Collector): void {
    this.#onFailure(collector.name);
    collector.forget();
  }
}

/** Samples per stage: three hours with a scrape each 5 s. For older marks the age of the oldest stays exact, others get coarser. */
const MAX_MOMENTS = 2_000;

interface Moment {
  atMs: number;
  /** The highest key allocated by then. */
  newestId: bigint;
}

/**
 * Marks have ascending keys but no time of creation. So each sample records the highest key allocated by then: a waiting mark with a
 * key up to the highest key of an earlier sample is at least as old as that sample.
 */
export class MarkAges {
  readonly #moments = new Map<string, Moment[]>();
  readonly #now: () => number;

  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
  }

  /** Records the marks of a stage, and returns the minimum age of its oldest mark, milliseconds. */
  note(stage: string, { oldestId, newestId }: { oldestId: bigint | null; newestId: bigint }): number {
    const nowMs = this.#now();
    const moments = this.#moments.get(stage) ?? [];
    this.#moments.set(stage, moments);
    // Ids below the oldest mark carry no information about it or about a younger mark.
    const first = oldestId === null ? -1 : moments.findIndex((moment) => moment.newestId >= oldestId);
    moments.splice(0, first === -1 ? moments.length : first);
    moments.push({ atMs: nowMs, newestId });
    if (moments.length > MAX_MOMENTS) moments.splice(1, 1);
    return oldestId === null ? 0 : nowMs - (moments[0]?.atMs ?? nowMs);
  }
}
