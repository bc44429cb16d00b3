import { compareDecimals, type Decimal, midpoint, subtractDecimals } from './decimal.ts';
import type { BookRecord, PriceRecord } from './market.ts';

/** Beyond this spread the midpoint says little (venues.md section 9.4). */
const MAX_MIDPOINT_SPREAD = '0.1' as Decimal;

/** The midpoint of a book as a price, or null when a side is empty or the spread too wide for a midpoint to mean anything. */
export function priceOfBook(book: BookRecord): PriceRecord | null {
  const bid = book.bids[0]?.price;
  const ask = book.asks[0]?.price;
  if (bid === undefined || ask === undefined) return null;
  if (compareDecimals(subtractDecimals(ask, bid), MAX_MIDPOINT_SPREAD) > 0) return null;
  return { outcomeId: book.outcomeId, asOfMs: book.asOfMs, price: midpoint(bid, ask), bid, ask };
}
