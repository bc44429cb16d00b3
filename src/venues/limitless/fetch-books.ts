import { isHttpStatus, type LimitlessClient } from './client.ts';
import type { OutcomeIds } from './outcome-ids.ts';

/** Requests in flight at once: as many as the venue's own clients send. */
const AT_ONCE = 2;

export interface BookAnswer {
  /** The book of YES with the `outcomeIds` of its market. */
  row: unknown;
  observedAt: number;
}

/** The books of these markets, one request each. Unknown ones are absent. Throws VenueError. */
export async function getBooks(
  client: Pick<LimitlessClient, 'getBook'>,
  places: readonly { slug: string; outcomeIds: OutcomeIds }[],
  signal: AbortSignal,
): Promise<BookAnswer[]> {
  const answers: BookAnswer[] = [];
  const waiting = [...places];
  const work = async () => {
    for (let place = waiting.shift(); place !== undefined; place = waiting.shift()) {
      const { slug, outcomeIds } = place;
      try {
        const { json, observedAt } = await client.getBook(slug, signal);
        const isObject = json !== null && typeof json === 'object' && !Array.isArray(json);
        answers.push({ row: isObject ? { ...json, outcomeIds } : json, observedAt });
      } catch (error) {
        // Markets that closed since the listing named them, and markets without a book.
        if (isHttpStatus(error, [400, 404])) continue;
        waiting.length = 0;
        throw error;
      }
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
  return answers;
}
