import type { ParsedBatch } from '../parsed-batch.ts';

/**
 * A batch with the records that are neither yielded nor refused: nothing is wrong with them, they are just not what is read
 * (a poll among markets, an unfilled order among trades). One reason each, so that every record stays accounted for.
 */
export interface SiftedBatch<R> extends ParsedBatch<R> {
  leftOut: string[];
}

export function emptyBatch<R>(): SiftedBatch<R> {
  return { records: [], rejected: [], unknowns: [], leftOut: [] };
}
