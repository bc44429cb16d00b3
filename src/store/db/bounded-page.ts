/** How far back a query of a bounded number of rows looked: on each of its rows, or on a single row without a result. */
export interface ScanExtent {
  scanned: number;
  lastPk: bigint | null;
  lastAt: Date | null;
}

interface BoundedPage<Item> {
  items: Item[];
  /** The key after which the next page starts, when more may follow. */
  next?: bigint;
  /** Set when the page is short because it reached its row limit: the time of the oldest row it read. */
  searchedSince?: Date;
}

/** The page of the found rows, newest first. One row more than `limit` means that more follow. */
export function boundedPage<Item extends { pk: bigint }>(
  found: readonly Item[],
  scan: ScanExtent | undefined,
  bounds: { limit: number; maxScanned: number },
): BoundedPage<Item> {
  const items = found.slice(0, bounds.limit);
  const last = items.at(-1);
  if (found.length > bounds.limit && last) return { items, next: last.pk };
  if (!scan || scan.lastPk === null || scan.lastAt === null || scan.scanned < bounds.maxScanned) {
    return { items };
  }
  return { items, next: scan.lastPk, searchedSince: scan.lastAt };
}
