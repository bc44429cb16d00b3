import type { Decimal } from '../values/decimal.ts';
import type { BookRecord, PriceRecord } from './market.ts';
import { type Quotes, quotedPrice } from './quoted-price.ts';

/** The best bid and the best ask of a book. */
export function quotesOf(book: BookRecord): Quotes {
  return { bid: book.bids[0]?.price, ask: book.asks[0]?.price };
}

/** The price of a book by `quotedPrice`; undefined when that gives no price. */
export function priceOfBook(book: BookRecord, lastPrice?: Decimal): PriceRecord | undefined {
  const { bid, ask } = quotesOf(book);
  const price = quotedPrice({ bid, ask }, lastPrice);
  if (price === undefined) return undefined;
  const { outcomeId, asOfMs, seenAtMs } = book;
  return {
    outcomeId,
    asOfMs,
    ...(seenAtMs !== undefined && seenAtMs !== asOfMs && { seenAtMs }),
    price,
    ...(bid !== undefined && { bid }),
    ...(ask !== undefined && { ask }),
  };
}
