import { type Decimal, multiplyDecimals, ONE, parseDecimal, subtractDecimals } from '../../domain/values/decimal.ts';
import { isUnitPrice } from '../quantity.ts';
import { accept, type Reading, reject } from '../rejection.ts';

const CENT = '0.01' as Decimal;

/** An empty field: not sent, null, or ''. */
export function isAbsent(value: unknown): value is undefined | null | '' {
  return value === undefined || value === null || value === '';
}

/**
 * A price in dollars, 0..1, from the fixed-point field, else from the cents of the shape before 2026. Undefined when neither was sent;
 * rejected when the first one sent is not a price.
 */
export function readPrice(field: string, dollars: unknown, cents: unknown): Reading<Decimal | undefined> {
  const isInCents = isAbsent(dollars);
  if (isInCents && isAbsent(cents)) return accept(undefined);
  const parsed = parseDecimal(isInCents ? cents : dollars);
  if (parsed === null) return reject('invalid_field', `${field}: not a number`);
  const price = isInCents ? multiplyDecimals(parsed, CENT) : parsed;
  return isUnitPrice(price) ? accept(price) : reject('price_out_of_range', `${field}: ${price.slice(0, 40)}`);
}

/** The price of the other side of the market: one minus the price, exactly. */
export function otherSide(price: Decimal): Decimal {
  return subtractDecimals(ONE, price);
}
