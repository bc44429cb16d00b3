import type { TradeRecord } from '../../../src/domain/markets/market.ts';
import { compareDecimals, type Decimal, negateDecimal, ZERO } from '../../../src/domain/values/decimal.ts';

/** The fields of a trade that decide its place on the tape of its outcome. */
export type OrderedTrade = Pick<TradeRecord, 'tsMs' | 'tradeId' | 'price' | 'side' | 'ordinal'>;

/**
 * The price of a buy, minus the price of a sell, 0 without a side. An order that sweeps a book buys at rising or sells at
 * falling prices, so this number rises through the sweep in both cases.
 */
export function signedPrice({ price, side }: Pick<OrderedTrade, 'price' | 'side'>): Decimal {
  if (side === undefined) return ZERO;
  return side === 'buy' ? price : negateDecimal(price);
}

/**
 * Compares two trades of one outcome by `(time, ordinal, signed price, id)`, the order of candles and trade lists: -1, 0 or 1.
 * Ids compare by their UTF-8 bytes, as in Postgres under COLLATE "C". docs/venues.md documents the order of each venue.
 * `src/store/series/trade-order.ts` has the same rule in SQL.
 */
export function compareTrades(a: OrderedTrade, b: OrderedTrade): -1 | 0 | 1 {
  if (a.tsMs !== b.tsMs) return a.tsMs < b.tsMs ? -1 : 1;
  const [ordinalA, ordinalB] = [a.ordinal ?? 0, b.ordinal ?? 0];
  if (ordinalA !== ordinalB) return ordinalA < ordinalB ? -1 : 1;
  return compareDecimals(signedPrice(a), signedPrice(b)) || compareIds(a.tradeId, b.tradeId);
}

function compareIds(a: string, b: string): -1 | 0 | 1 {
  return Buffer.compare(Buffer.from(a, 'utf8'), Buffer.from(b, 'utf8'));
}
