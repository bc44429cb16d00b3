import type { BookRecord } from '../../domain/markets/market.ts';
import { boundedCache } from '../../domain/values/caches.ts';
import { isOfHost, VenueError } from '../errors.ts';
import type { MemberBatches } from '../http/member-batches.ts';
import type { ParsedBatch } from '../parsed-batch.ts';
import type { KalshiClient } from './client.ts';
import { tickersOf } from './outcome-ids.ts';
import { isEmpty, UNKNOWN_MARKET } from './parse-book.ts';
import { fieldOf } from './parse-market.ts';

const MAX_KNOWN = 100_000;
/** Markets leave the live routes months after they settle: one check per hour is soon enough. */
const KNOWN_FOR_MS = 3_600_000;

/** The skip reason of an empty book whose market could not be checked. */
const UNCONFIRMED_MARKET = 'unconfirmed_market';

/** Skips the empty books of markets that are unknown or could not be checked. Throws VenueError only when the host takes no requests. */
type SkipUnknown = (batch: ParsedBatch<BookRecord>, signal: AbortSignal) => Promise<ParsedBatch<BookRecord>>;

/**
 * The venue answers with an empty book for any ticker: an unknown market and a market without orders look the same. A market with an empty
 * book counts as known while the market route lists it; the filter checks that once an hour.
 */
export function createUnknownMarketFilter(
  client: Pick<KalshiClient, 'listQuotes'>,
  quotes: MemberBatches,
  size: number,
): SkipUnknown {
  const known = boundedCache<true>(MAX_KNOWN, KNOWN_FOR_MS);
  return async (batch, signal) => {
    const empty = tickersOf(batch.records.filter(isEmpty).map((book) => book.outcomeId));
    const unconfirmed = empty.filter((ticker) => !known.has(ticker));
    if (unconfirmed.length === 0) return batch;
    const checked = new Set<string>();
    let fault: VenueError | undefined;
    try {
      const asked = await quotes.ask(unconfirmed, (each, request) => client.listQuotes(each, signal, request), {
        size,
      });
      for (const { members, answer } of asked.answers) {
        for (const ticker of members) checked.add(ticker);
        for (const row of answer.rows) {
          const ticker = fieldOf(row, 'ticker');
          if (typeof ticker === 'string') known.set(ticker, true);
        }
      }
      fault = asked.fault;
    } catch (error) {
      if (!(error instanceof VenueError) || isOfHost(error)) throw error;
      fault = error;
    }
    const unknown = new Set(unconfirmed.filter((ticker) => !known.has(ticker)));
    const isKnown = ({ outcomeId }: BookRecord) => !tickersOf([outcomeId]).some((ticker) => unknown.has(ticker));
    const reasons = Array.from(unknown, (ticker) => (checked.has(ticker) ? UNKNOWN_MARKET : UNCONFIRMED_MARKET));
    const skipped = [...batch.skipped, ...reasons];
    return { ...batch, records: batch.records.filter(isKnown), skipped, ...(fault && { fault }) };
  };
}
