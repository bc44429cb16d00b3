import { type Decimal, parseDecimal } from '../../domain/values/decimal.ts';
import type { RejectedRecord } from '../port.ts';
import { isPlausibleQuantity, isPositive } from '../quantity.ts';
import { accept, type Reading, reject, rejectRecord } from '../rejection.ts';

/** One mint's price in USD and, if Jupiter names it, the slot of its swap. */
interface TokenQuote {
  mint: string;
  price: Decimal;
  slot?: number;
}

/**
 * The entries of these mints in an answer of Price v3; pure. A mint that is absent, or null as in older versions, has no reliable price.
 * Entries of other mints are ignored.
 */
export function parseTokenPrices(
  answer: Readonly<Record<string, unknown>>,
  mints: readonly string[],
): { quotes: TokenQuote[]; rejected: RejectedRecord[] } {
  const quotes: TokenQuote[] = [];
  const rejected: RejectedRecord[] = [];
  for (const mint of new Set(mints)) {
    const entry = Object.hasOwn(answer, mint) ? answer[mint] : undefined;
    if (entry === undefined || entry === null) continue;
    const price = readPrice(entry);
    if (price.ok) quotes.push({ mint, price: price.value, ...readSlot(entry) });
    else rejected.push(rejectRecord('prices', { [mint]: entry }, price.rejection, mint));
  }
  return { quotes, rejected };
}

function readPrice(entry: unknown): Reading<Decimal> {
  if (typeof entry !== 'object' || Array.isArray(entry)) return reject('not_an_object', typeof entry);
  const { usdPrice } = entry as { usdPrice?: unknown };
  if (usdPrice === undefined || usdPrice === null) return reject('missing_field', 'usdPrice');
  const price = parseDecimal(usdPrice);
  if (price === null) return reject('invalid_field', 'usdPrice: not a decimal');
  const isPrice = isPositive(price) && isPlausibleQuantity(price);
  return isPrice ? accept(price) : reject('price_out_of_range', `usdPrice: ${price.slice(0, 40)}`);
}

function readSlot(entry: unknown): { slot?: number } {
  const { blockId } = entry as { blockId?: unknown };
  return typeof blockId === 'number' && Number.isSafeInteger(blockId) && blockId > 0 ? { slot: blockId } : {};
}
