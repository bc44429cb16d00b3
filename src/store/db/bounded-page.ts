/** How far a page looked back that looks at a bounded number of rows: part of each of its rows, and there without any. */
export interface LookedBack {
  lookedAt: number;
  lastPk: bigint | null;
  lastAt: Date | null;
}

interface BoundedPage<Item> {
  items: Item[];
  /** The key to go on behind, when more may follow. */
  next?: bigint;
  /** Set when the page is short because it looked at enough rows: how far back those reach. */
  lookedBackTo?: Date;
}

/** The page of what was found, newest first: one more than `limit` says that more follow. */
export function boundedPage<Item extends { pk: bigint }>(
  found: readonly Item[],
  looked: LookedBack | undefined,
  bounds: { limit: number; maxLookedAt: number },
): BoundedPage<Item> {
  const items = found.slice(0, bounds.limit);
  const last = items.at(-1);
  if (found.length > bounds.limit && last) return { items, next: last.pk };
  if (!looked || looked.lastPk === null || looked.lastAt === null || looked.lookedAt < bounds.maxLookedAt) {
    return { items };
  }
  return { items, next: looked.lastPk, lookedBackTo: looked.lastAt };
}
