import type { Quotes } from '../../../domain/markets/quoted-price.ts';
import {
  addDecimals,
  compareDecimals,
  type Decimal,
  ONE,
  parseDecimal,
  subtractDecimals,
} from '../../../domain/values/decimal.ts';
import { isPlausibleQuantity, isPositive, isUnitPrice } from '../../quantity.ts';
import { accept, type Reading, reject } from '../../rejection.ts';
import { MAX_AHEAD_MS } from '../../venue-time.ts';
import type { FeedLeg } from './models.ts';

/** 2018, before the venue existed. */
const MIN_MS = 1_514_764_800_000;

/** Epoch milliseconds of a `timestamp`. */
export function readStamp(stamp: string, nowMs: number): Reading<number> {
  const ms = Number(stamp);
  if (ms > nowMs + MAX_AHEAD_MS) return reject('timestamp_in_future', `timestamp: ${stamp}`);
  return ms < MIN_MS ? reject('timestamp_out_of_range', `timestamp: ${stamp}`) : accept(ms);
}

/** The best prices of a message: `"0"`, `"1"`, `""` and an absent field mean that a side has no orders. */
export function readBest(raw: {
  best_bid?: string | null | undefined;
  best_ask?: string | null | undefined;
}): Reading<Quotes> {
  const bid = readQuote('best_bid', raw.best_bid);
  if (!bid.ok) return bid;
  const ask = readQuote('best_ask', raw.best_ask);
  if (!ask.ok) return ask;
  if (bid.value !== undefined && ask.value !== undefined && compareDecimals(bid.value, ask.value) > 0) {
    return reject('crossed_quote', `bid ${bid.value} above ask ${ask.value}`);
  }
  return accept({
    ...(bid.value !== undefined && { bid: bid.value }),
    ...(ask.value !== undefined && { ask: ask.value }),
  });
}

function readQuote(field: string, raw: string | null | undefined): Reading<Decimal | undefined> {
  if (raw === undefined || raw === null || raw === '') return accept(undefined);
  const price = parseDecimal(raw);
  if (price === null) return reject('invalid_field', `${field}: not a number`);
  if (!isUnitPrice(price)) return reject('price_out_of_range', `${field}: ${price.slice(0, 40)}`);
  return accept(price === '0' || price === '1' ? undefined : price);
}

/** The new total of a level. */
export function readLevel({
  price: rawPrice,
  size: rawSize,
}: Pick<FeedLeg, 'price' | 'size'>): Reading<{ price: Decimal; size: Decimal }> {
  const price = parseDecimal(rawPrice);
  const size = parseDecimal(rawSize);
  if (price === null || size === null) {
    return reject('invalid_field', `${price === null ? 'price' : 'size'}: not a number`);
  }
  if (!isUnitPrice(price)) return reject('price_out_of_range', `price: ${price.slice(0, 40)}`);
  if (size.startsWith('-') || !isPlausibleQuantity(size))
    return reject('size_out_of_range', `size: ${size.slice(0, 40)}`);
  return accept({ price, size });
}

/** A trade's price and size. */
export function readPrint(raw: Pick<FeedLeg, 'price' | 'size'>): Reading<Decimal> {
  const level = readLevel(raw);
  if (!level.ok) return level;
  return isPositive(level.value.size)
    ? accept(level.value.price)
    : reject('size_not_positive', `size: ${level.value.size}`);
}

/** The forms in which a book's `last_trade_price` may state this trade: the price of either token, with at least three decimals. */
export function lastTradeTexts(price: Decimal): string[] {
  return [price, subtractDecimals(ONE, price)].map(withThreeDecimals);
}

function withThreeDecimals(price: Decimal): string {
  const [whole = '0', fraction = ''] = addDecimals(price, '0' as Decimal).split('.');
  return `${whole}.${fraction.padEnd(3, '0')}`;
}
