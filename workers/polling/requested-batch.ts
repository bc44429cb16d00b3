import type { WatchedOutcome } from '../../src/store/catalog/watched-outcomes.ts';
import { isOfHost, VenueError } from '../../src/venues/errors.ts';
import type { Batch, Page } from '../../src/venues/port.ts';
import type { OutcomesBatch } from '../ingest/price-store.ts';

/** The answer to a request for certain outcomes. */
export interface RequestedPage<R> extends OutcomesBatch<R>, Page<R> {}

/** Requests prices or books of outcomes. No outcomes need no request. */
export async function fetchRequested<R>(
  outcomes: readonly WatchedOutcome[],
  fetch: (outcomeIds: readonly string[]) => Promise<Batch<R>>,
): Promise<Omit<RequestedPage<R>, 'position' | 'more'>> {
  const tokenIdOf = new Map(outcomes.map(({ outcomeId, tokenId }) => [outcomeId, tokenId]));
  if (tokenIdOf.size === 0) return { records: [], rejected: [], tokenIdOf, isIdle: true };
  return { ...(await fetch([...tokenIdOf.keys()]).catch(failedBatch)), tokenIdOf };
}

/** A batch without an answer, which the walk leaves behind: the next tick begins with others. Rethrows other errors. */
export function failedBatch(error: unknown): Batch<never> & Pick<Page<never>, 'isIdle' | 'fault'> {
  if (!(error instanceof VenueError) || isOfHost(error)) throw error;
  return { records: [], rejected: [], isIdle: true, fault: error };
}
