/** How far a page looked back that looks at a bounded number of rows: part of each of its rows, and there without any. */
export interface LookedBack {
  looked_at: number;
  last_pk: string | null;
  last_at: Date | null;
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
  if (!looked || looked.last_pk === null || looked.last_at === null || looked.looked_at < bounds.maxLookedAt) {
    return { items };
  }
  return { items, next: BigInt(looked.last_pk), lookedBackTo: looked.last_at };
}
