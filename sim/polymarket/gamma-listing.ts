import type { GammaEntry, GammaSource, SortField } from '../source.ts';

/** The end of a page: the sort value and rank of its last market, and the order of the page. */
export interface KeysetPosition {
  readonly field: SortField;
  readonly ascending: boolean;
  readonly value: number;
  readonly rank: number;
}

interface SortedListing {
  readonly version: number;
  readonly entries: readonly { readonly value: number; readonly entry: GammaEntry }[];
}

/** Sorting 100,000 markets for each page would cost more than the page: a large catalog keeps its order for a while. */
const LARGE_CATALOG = 5000;
const LARGE_CATALOG_VERSIONS = 1000;

/** The Gamma catalog in any order, by offset or after a position. */
export class GammaListing {
  private readonly source: GammaSource;
  private readonly sorted = new Map<string, SortedListing>();

  constructor(source: GammaSource) {
    this.source = source;
  }

  /** Markets after `position` (or from the start) in the given order, lazily. */
  *walk(
    field: SortField,
    ascending: boolean,
    position: KeysetPosition | undefined,
  ): Generator<{ readonly value: number; readonly entry: GammaEntry }> {
    const { entries } = this.listing(field, ascending);
    for (let at = position === undefined ? 0 : after(entries, position); at < entries.length; at += 1) {
      const item = entries[at];
      if (item !== undefined) yield item;
    }
  }

  private listing(field: SortField, ascending: boolean): SortedListing {
    const key = `${field} ${ascending}`;
    const known = this.sorted.get(key);
    const { version } = this.source;
    if (known !== undefined) {
      const tolerated = known.entries.length > LARGE_CATALOG ? LARGE_CATALOG_VERSIONS : 0;
      if (version - known.version <= tolerated) return known;
    }
    const entries = this.source.entries().map((entry) => ({ value: entry.sortValue(field), entry }));
    entries.sort((a, b) => compare(a.value, a.entry.rank, b.value, b.entry.rank, ascending));
    const listing = { version, entries };
    this.sorted.set(key, listing);
    return listing;
  }
}

/** Opaque text of a position, as `next_cursor`. */
export function cursorText(position: KeysetPosition): string {
  const { field, ascending, value, rank } = position;
  return Buffer.from(JSON.stringify([field, ascending, value, rank])).toString('base64url');
}

/** Reads a cursor; undefined when it is invalid or belongs to another order. */
export function readCursor(text: string, field: SortField, ascending: boolean): KeysetPosition | undefined {
  let parsed: unknown;
  try {
    parsed = JSON.parse(Buffer.from(text, 'base64url').toString('utf8'));
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
  if (!Array.isArray(parsed)) return undefined;
  const [cursorField, cursorAscending, value, rank] = parsed as unknown[];
  if (cursorField !== field || cursorAscending !== ascending) return undefined;
  if (typeof value !== 'number' || typeof rank !== 'number') return undefined;
  return { field, ascending, value, rank };
}

function after(entries: SortedListing['entries'], position: KeysetPosition): number {
  let low = 0;
  let high = entries.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    const item = entries[middle];
    const isAfter =
      item !== undefined && compare(item.value, item.entry.rank, position.value, position.rank, position.ascending) > 0;
    if (isAfter) high = middle;
    else low = middle + 1;
  }
  return low;
}

/** By value in the requested direction, then by rank, so that no two markets are equal. */
function compare(valueA: number, rankA: number, valueB: number, rankB: number, ascending: boolean): number {
  if (valueA !== valueB) return ascending ? valueA - valueB : valueB - valueA;
  return rankA - rankB;
}
