import { createHash } from 'node:crypto';

/**
 * 160 bits of SHA-256 over the canonical row and its ordinal among equal rows of one instant, for venues without trade ids. Equal rows are
 * interchangeable, so reading an instant again, in any order, gives the same set of ids: exact duplicates survive and repeated reads add
 * nothing.
 */
export function tradeIdOf(canonical: string, ordinal: number): string {
  return createHash('sha256').update(`${canonical}|${ordinal}`).digest('hex').slice(0, 40);
}

/** Numbers equal rows 0, 1, 2, ... Count each row once: never pass the same row of two pages. */
export function createOrdinals(): (canonical: string) => number {
  const counts = new Map<string, number>();
  return (canonical) => {
    const ordinal = counts.get(canonical) ?? 0;
    counts.set(canonical, ordinal + 1);
    return ordinal;
  };
}
