import type { Quotes } from '../../../domain/markets/quoted-price.ts';
import { compareDecimals, type Decimal, parseDecimal, ZERO } from '../../../domain/values/decimal.ts';
import { isPlausibleQuantity } from '../../quantity.ts';
import { accept, type Reading, reject } from '../../rejection.ts';
import { MAX_AHEAD_MS } from '../../venue-time.ts';
import { readPrice } from '../dollars.ts';
import { realQuote } from '../parse-price.ts';

/** The price and the change of size of a delta. */
export function readChange(
  raw: { price_dollars: string; delta_fp: string; ts_ms?: number | null | undefined },
  nowMs: number,
): Reading<{ price: Decimal; delta: Decimal }> {
  const price = readPrice('price_dollars', raw.price_dollars, undefined);
  if (!price.ok) return price;
  const delta = parseDecimal(raw.delta_fp);
  if (price.value === undefined || delta === null) return reject('invalid_field', 'delta_fp: not a number');
  if (!isPlausibleQuantity(delta)) return reject('size_out_of_range', `delta_fp: ${delta.slice(0, 40)}`);
  const isAhead = typeof raw.ts_ms === 'number' && raw.ts_ms > nowMs + MAX_AHEAD_MS;
  return isAhead ? reject('timestamp_in_future', `ts_ms: ${raw.ts_ms}`) : accept({ price: price.value, delta });
}

/** The quotes of a ticker, and the price of its last trade. */
export function readTicker(
  raw: { price_dollars: string; yes_bid_dollars: string; yes_ask_dollars: string; ts_ms?: number | null | undefined },
  nowMs: number,
): Reading<Quotes & { last: Decimal | undefined }> {
  const bid = readPrice('yes_bid_dollars', raw.yes_bid_dollars, undefined);
  if (!bid.ok) return bid;
  const ask = readPrice('yes_ask_dollars', raw.yes_ask_dollars, undefined);
  if (!ask.ok) return ask;
  const last = readPrice('price_dollars', raw.price_dollars, undefined);
  if (!last.ok) return last;
  if (typeof raw.ts_ms === 'number' && raw.ts_ms > nowMs + MAX_AHEAD_MS) {
    return reject('timestamp_in_future', `ts_ms: ${raw.ts_ms}`);
  }
  const quotes = { bid: realQuote(bid.value), ask: realQuote(ask.value) };
  if (quotes.bid !== undefined && quotes.ask !== undefined && compareDecimals(quotes.bid, quotes.ask) > 0) {
    return reject('crossed_quote', `bid ${quotes.bid} above ask ${quotes.ask}`);
  }
  return accept({ ...quotes, last: last.value === ZERO ? undefined : last.value });
}
