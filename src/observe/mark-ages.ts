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
