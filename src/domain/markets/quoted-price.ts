import { compareDecimals, type Decimal, midpoint, subtractDecimals } from '../values/decimal.ts';
import type { BookRecord, PriceRecord } from './market.ts';

/** The best orders of one outcome, the bid not above the ask; a side without orders is absent. */
export interface Quotes {
  bid?: Decimal | undefined;
  ask?: Decimal | undefined;
}

/** The widest spread whose midpoint is a price: with a wider one, a single stray order moves the midpoint by more than 0.05. */
const MAX_MID_SPREAD = '0.1' as Decimal;

/** Whether both sides have orders, at most 0.10 apart, so that their midpoint is the price. */
export function isTight({ bid, ask }: Quotes): boolean {
  return bid !== undefined && ask !== undefined && compareDecimals(subtractDecimals(ask, bid), MAX_MID_SPREAD) <= 0;
}

/**
 * The price of an outcome, by one rule for all venues with quotes: the midpoint of tight quotes, else the venue's last traded
 * price, else undefined. The last price counts even outside of the quotes. The rule is symmetric: one minus all inputs gives one
 * minus the result, so both outcomes of a binary market agree.
 */
export function quotedPrice(quotes: Quotes, lastPrice: Decimal | undefined): Decimal | undefined {
  const { bid, ask } = quotes;
  return bid !== undefined && ask !== undefined && isTight(quotes) ? midpoint(bid, ask) : lastPrice;
}

/** The best bid and the best ask of a book. */
export function quotesOf(book: Pick<BookRecord, 'bids' | 'asks'>): Quotes {
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
