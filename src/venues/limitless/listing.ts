/** The facts that the options of a group take from it. */
const GROUP_FACTS = ['slug', 'title', 'description', 'categories', 'tags', 'tradeType', 'collateralToken'];

/**
 * The markets of a listing: a group becomes its options, each with the facts of the group under `group`. A group without options
 * stays as it is, so that the parser accounts for it.
 */
export function flattenGroups(rows: readonly unknown[]): unknown[] {
  return rows.flatMap((row) => {
    const options = optionsOf(row);
    return options.length === 0 ? [row] : options.map((option) => withGroup(option, row));
  });
}

/** An option with the facts of its group. */
function withGroup(option: unknown, group: unknown): unknown {
  const isObject = option !== null && typeof option === 'object' && !Array.isArray(option);
  return isObject ? { ...option, group: factsOf(group) } : option;
}

/** The facts that the options of a group take from it. */
export function factsOf(group: unknown): object {
  const fields = group !== null && typeof group === 'object' ? Object.entries(group) : [];
  return Object.fromEntries(fields.filter(([key]) => GROUP_FACTS.includes(key)));
}

/** The options of a group, which are markets; none for a market. */
function optionsOf(row: unknown): unknown[] {
  const { markets } = (row ?? {}) as { markets?: unknown };
  return Array.isArray(markets) ? markets : [];
}

/** A text field of a raw record. */
export function textOf(row: unknown, field: string): string | undefined {
  const value = row !== null && typeof row === 'object' ? (row as Record<string, unknown>)[field] : undefined;
  return typeof value === 'string' && value !== '' ? value : undefined;
}

/** How long the venue's CDN keeps an answer, and a little more. */
const CACHED_SECONDS = 31;
/** A listing changes its size this often: six sizes cover the time for which an answer is kept. */
const LISTING_SLOT_MS = 5_000;
const LISTING_SIZES = 6;

/**
 * The page size of a walk over the listing that starts now. The CDN repeats its answer to an address for 30 s, and the size is the
 * one part of the address that may vary, so no two walks within that time ask for the same addresses, unless they start together.
 */
export function listingSizeAt(largest: number, nowMs: number): number {
  return largest - (Math.floor(nowMs / LISTING_SLOT_MS) % LISTING_SIZES);
}

/** The same for the feed of a market, another size each second. `largest` is at least 32. */
export function eventsSizeAt(largest: number, nowMs: number): number {
  return largest - (Math.floor(nowMs / 1000) % CACHED_SECONDS);
}
