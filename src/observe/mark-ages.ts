/** Moments kept per stage: three hours of a scrape each 5 s. Beyond, ages stay right at the oldest mark and get coarser behind it. */
const MAX_MOMENTS = 2_000;

interface Moment {
  atMs: number;
  /** The last key given out by then. */
  newestId: bigint;
}

/**
 * Marks have keys in the order of their making and no time of it. So we remember which key was the last one at each look: a mark that
 * waits now and whose key was given out by a former look is at least as old as that look.
 */
export class MarkAges {
  readonly #moments = new Map<string, Moment[]>();
  readonly #now: () => number;

  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
  }

  /** Records the marks seen of a stage, and returns the minimum age of its oldest mark, milliseconds. */
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
