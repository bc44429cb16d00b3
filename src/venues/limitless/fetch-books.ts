import { isHttpStatus } from '../errors.ts';
import type { Asked } from '../http/member-batches.ts';
import { AT_ONCE, type LimitlessClient } from './client.ts';
import type { OutcomeIds } from './outcome-ids.ts';

interface Place {
  slug: string;
  outcomeIds: OutcomeIds;
}

interface BookAnswer {
  /** The book of YES with the `outcomeIds` of its market. */
  row: unknown;
  observedAt: number;
}

/** The books of markets, one request each. Unknown ones have an empty answer. Throws VenueError when no book is served. */
type ReadBooks = (places: readonly Place[], signal: AbortSignal) => Promise<Asked<BookAnswer | undefined>>;

export function createBookReader(client: Pick<LimitlessClient, 'getBook' | 'members'>): ReadBooks {
  const books = client.members('book');
  return (places, signal) => {
    const placeOf = new Map(places.map((place) => [place.slug, place]));
    return books.ask(
      [...placeOf.keys()],
      async ([slug = ''], request) => {
        try {
          const { json, observedAt } = await client.getBook(slug, signal, request);
          const isObject = json !== null && typeof json === 'object' && !Array.isArray(json);
          return { row: isObject ? { ...json, outcomeIds: placeOf.get(slug)?.outcomeIds } : json, observedAt };
        } catch (error) {
          // Markets that closed since the listing named them, and markets without a book.
          if (isHttpStatus(error, [400, 404])) return undefined;
          throw error;
        }
      },
      { size: 1, atOnce: AT_ONCE },
    );
  };
}
