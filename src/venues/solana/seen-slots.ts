/** Lifetime of a slot: a wrong, far too high slot must not silence a mint permanently, and unused mints are forgotten. */
const REMEMBERED_MS = 10 * 60_000;
const MAX_MINTS = 100_000;

/** The newest slot of each mint's price: servers behind one address are not at the same slot. */
interface SeenSlots {
  /** Records a slot; false when it is below the newest one of this mint. */
  isCurrent(mint: string, slot: number, nowMs: number): boolean;
}

export function createSeenSlots(): SeenSlots {
  const newest = new Map<string, { slot: number; atMs: number }>();
  return {
    isCurrent(mint, slot, nowMs) {
      const seen = newest.get(mint);
      if (seen !== undefined && slot < seen.slot && nowMs - seen.atMs < REMEMBERED_MS) return false;
      newest.delete(mint);
      newest.set(mint, { slot, atMs: nowMs });
      if (newest.size > MAX_MINTS) {
        const [oldest] = newest.keys();
        if (oldest !== undefined) newest.delete(oldest);
      }
      return true;
    },
  };
}
