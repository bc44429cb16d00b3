import type { ObservedRows } from '../http/age.ts';
import { isHttpStatus, type KalshiClient } from './client.ts';

/** Single book requests in flight at once, where the batch route is unusable. */
const BOOKS_AT_ONCE = 8;

/** The answers of the batch route; of one request per book where that route is absent or requires a key. */
export async function listBooks(
  client: KalshiClient,
  tickers: readonly string[],
  signal: AbortSignal,
): Promise<ObservedRows[]> {
  try {
    return [await client.listBooks(tickers, signal)];
  } catch (error) {
    if (!isHttpStatus(error, [400, 401, 403, 404, 405])) throw error;
    return getBooks(client, tickers, signal);
  }
}

async function getBooks(
  client: KalshiClient,
  tickers: readonly string[],
  signal: AbortSignal,
): Promise<ObservedRows[]> {
  const answers: ObservedRows[] = [];
  const waiting = [...tickers];
  const work = async () => {
    for (let ticker = waiting.shift(); ticker !== undefined; ticker = waiting.shift()) {
      try {
        answers.push(await client.getBook(ticker, signal));
      } catch (error) {
        // The venue answers 404 for a market that it does not know.
        if (isHttpStatus(error, [404])) continue;
        waiting.length = 0;
        throw error;
      }
    }
  };
  await Promise.all(Array.from({ length: BOOKS_AT_ONCE }, work));
  return answers;
}
