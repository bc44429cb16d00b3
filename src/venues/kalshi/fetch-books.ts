import type { ObservedRows } from '../age.ts';
import { isHttpStatus, type KalshiClient } from './client.ts';

/** Single book requests under way at once where the batch route cannot be used. */
const BOOKS_AT_ONCE = 8;

/** The answers of the batch route, or of one request per book where it is missing or wants a key that the single route does not. */
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
        // The venue's way to say that it does not know a market.
        if (isHttpStatus(error, [404])) continue;
        waiting.length = 0;
        throw error;
      }
    }
  };
  await Promise.all(Array.from({ length: BOOKS_AT_ONCE }, work));
  return answers;
}
