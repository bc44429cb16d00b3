import { isHttpStatus } from '../errors.ts';
import type { ObservedRows } from '../http/age.ts';
import { createBatchRoute } from '../http/batch-route.ts';
import type { Asked } from '../http/member-batches.ts';
import type { KalshiClient } from './client.ts';

/** Single book requests in flight at once, where the batch route is unusable. */
const BOOKS_AT_ONCE = 8;

/** Answers with books; undefined for a market that the venue does not know. Throws VenueError. */
type ReadBooks = (tickers: readonly string[], signal: AbortSignal) => Promise<Asked<ObservedRows | undefined>>;

/** Reads books by the batch route, or one by one where that route is absent or requires a key; `size` is the limit of the batch route. */
export function createBookReader(
  client: Pick<KalshiClient, 'listBooks' | 'getBook' | 'members'>,
  size: number,
): ReadBooks {
  const books = client.members('books');
  const book = client.members('book');
  const ask = createBatchRoute({
    isCertain: (error) => isHttpStatus(error, [401, 403, 404, 405]),
    isPossible: (error) => isHttpStatus(error, [400]),
  });
  return (tickers, signal) =>
    ask<ObservedRows>(tickers, {
      many: { batches: books, size, get: (each, request) => client.listBooks(each, signal, request) },
      one: {
        batches: book,
        atOnce: BOOKS_AT_ONCE,
        async get(ticker, request) {
          try {
            return await client.getBook(ticker, signal, request);
          } catch (error) {
            if (isHttpStatus(error, [404])) return undefined;
            throw error;
          }
        },
      },
    });
}
