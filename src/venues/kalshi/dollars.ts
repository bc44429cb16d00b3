import { type Decimal, multiplyDecimals, ONE, parseDecimal, subtractDecimals } from '../../domain/values/decimal.ts';
import { isUnitPrice } from '../quantity.ts';
import { accept, type Reading, refuse } from '../rejection.ts';

const CENT = '0.01' as Decimal;

/** A field that holds nothing: not sent, null, or an empty text. */
export function isAbsent(value: unknown): value is undefined | null | '' {
  return value === undefined || value === null || value === '';
}

/**
 * A price in dollars, 0..1, from the fixed-point field or else from the cents of the older shape (venue documentation
 * section 2.2). Undefined when neither was sent; refused when the first that was sent is no price.
 */
export function readPrice(field: string, dollars: unknown, cents: unknown): Reading<Decimal | undefined> {
  const isInCents = isAbsent(dollars);
  if (isInCents && isAbsent(cents)) return accept(undefined);
  const parsed = parseDecimal(isInCents ? cents : dollars);
  if (parsed === null) return refuse('invalid_field', `${field}: not a number`);
  const price = isInCents ? multiplyDecimals(parsed, CENT) : parsed;
  return isUnitPrice(price) ? accept(price) : refuse('price_out_of_range', `${field}: ${price.slice(0, 40)}`);
}

/** What the other side of the market is worth: one minus the price, exactly. */
export function otherSide(price: Decimal): Decimal {
  return subtractDecimals(ONE, price);
}
