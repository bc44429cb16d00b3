import type { BookRecord } from '../../domain/markets/market.ts';
import { boundedCache } from '../../domain/values/bounded-cache.ts';
import type { ParsedBatch } from '../parsed-batch.ts';
import type { KalshiClient } from './client.ts';
import { tickersOf } from './outcome-ids.ts';
import { isEmpty, UNKNOWN_MARKET } from './parse-book.ts';
import { fieldOf } from './parse-market.ts';

const MAX_KNOWN = 100_000;
/** Markets leave the live routes months after they settle: one check per hour is soon enough. */
const KNOWN_FOR_MS = 3_600_000;

/** Skips the books of unknown markets in a batch of at most 100 markets. Throws VenueError. */
type SkipUnknown = (batch: ParsedBatch<BookRecord>, signal: AbortSignal) => Promise<ParsedBatch<BookRecord>>;

/**
 * The venue answers with an empty book for any ticker: an unknown market and a market without orders look the same. A market with an empty
 * book counts as known while the market route lists it; the filter checks that once an hour.
 */
export function createUnknownMarketFilter(client: Pick<KalshiClient, 'listQuotes'>): SkipUnknown {
  const known = boundedCache<true>(MAX_KNOWN, KNOWN_FOR_MS);
  return async (batch, signal) => {
    const empty = tickersOf(batch.records.filter(isEmpty).map((book) => book.outcomeId));
    const unconfirmed = empty.filter((ticker) => !known.has(ticker));
    if (unconfirmed.length === 0) return batch;
    for (const row of (await client.listQuotes(unconfirmed, signal)).rows) {
      const ticker = fieldOf(row, 'ticker');
      if (typeof ticker === 'string') known.set(ticker, true);
    }
    const unknown = new Set(unconfirmed.filter((ticker) => !known.has(ticker)));
    const isKnown = ({ outcomeId }: BookRecord) => !tickersOf([outcomeId]).some((ticker) => unknown.has(ticker));
    const skipped = [...batch.skipped, ...Array.from(unknown, () => UNKNOWN_MARKET)];
    return { ...batch, records: batch.records.filter(isKnown), skipped };
  };
}
