import { type Decimal, parseDecimal } from '../domain/values/decimal.ts';

/** Far beyond any venue's sizes and volumes: a number with more digits before the point is a unit error or an attack. */
const MAX_WHOLE_DIGITS = 20;

/** Whether a canonical decimal lies in 0..1, both included. */
export function isUnitPrice(value: Decimal): boolean {
  return value === '0' || value === '1' || value.startsWith('0.');
}

export function isPositive(value: Decimal): boolean {
  return value !== '0' && !value.startsWith('-');
}

export function isPlausibleQuantity(value: Decimal): boolean {
  const point = value.indexOf('.');
  return (point === -1 ? value.length : point) <= MAX_WHOLE_DIGITS;
}

/** The first of these that is a decimal >= 0 of plausible length, else undefined. */
export function firstQuantity(...values: unknown[]): Decimal | undefined {
  for (const value of values) {
    const parsed = parseDecimal(value);
    if (parsed !== null && !parsed.startsWith('-') && isPlausibleQuantity(parsed)) return parsed;
  }
  return undefined;
}
