/**
 * Exact decimals as canonical text: plain notation, no exponent, no leading `+`, no superfluous zeros, `0` never negative.
 * Postgres keeps them as `numeric`; they reach the wire digit for digit and never pass through a binary float.
 */
export type Decimal = string & { readonly __decimal: unique symbol };

const PLAIN = /^([+-]?)(\d*)(?:\.(\d*))?$/;
/** The text of most stored decimals, which needs no change. */
const CANONICAL = /^(?:-(?!0$))?(?:0|[1-9]\d*)(?:\.\d*[1-9])?$/;
const SCIENTIFIC = /^([+-]?\d*(?:\.\d*)?)[eE]([+-]?\d{1,4})$/;
/** Limits for numeric(…): far beyond the digits of any venue, but small enough that hostile input cannot create megabytes of zeros. */
export const MAX_DIGITS = 400;

/**
 * The decimal that a venue or a client sent, or null when it is not one (NaN, Infinity, empty, text, too long).
 * A JSON number is converted by its shortest round-trip text, which is the text that the sender printed.
 */
export function parseDecimal(value: unknown): Decimal | null {
  const text = typeof value === 'number' ? String(value) : typeof value === 'string' ? value.trim() : '';
  const parsed = parseDecimalText(text);
  // An exponent can produce more digits than the text has, and the output must be valid input.
  return parsed !== null && parsed.length > MAX_DIGITS ? null : parsed;
}

function parseDecimalText(text: string): Decimal | null {
  if (text.length > MAX_DIGITS) return null;
  if (CANONICAL.test(text)) return text as Decimal;
  const scientific = SCIENTIFIC.exec(text);
  return scientific ? shiftPoint(scientific[1] ?? '', Number(scientific[2])) : canonical(text);
}

function canonical(text: string): Decimal | null {
  const [, sign, whole = '', fraction = ''] = PLAIN.exec(text) ?? [];
  if (whole === '' && fraction === '') return null;
  const digits = whole.replace(/^0+(?=\d)/, '') || '0';
  const decimals = fraction.replace(/0+$/, '');
  const magnitude = decimals === '' ? digits : `${digits}.${decimals}`;
  return (sign === '-' && magnitude !== '0' ? `-${magnitude}` : magnitude) as Decimal;
}

function shiftPoint(mantissa: string, exponent: number): Decimal | null {
  const [, sign = '', whole = '', fraction = ''] = PLAIN.exec(mantissa) ?? [];
  if (whole === '' && fraction === '') return null;
  const point = whole.length + exponent;
  const wholeDigits = Math.max(point, 0);
  const digits = '0'.repeat(Math.max(-point, 0)) + whole + fraction;
  return canonical(`${sign}${digits.slice(0, wholeDigits).padEnd(wholeDigits, '0')}.${digits.slice(wholeDigits)}`);
}

/** @throws RangeError when `value` is not a decimal. For constants and validated values. */
export function decimal(value: string | number): Decimal {
  const parsed = parseDecimal(value);
  if (parsed === null) throw new RangeError('not a decimal');
  return parsed;
}

/** The value in whole units of 10^-scale. It has at most `scale` digits after the point. */
export function toUnits(value: Decimal, scale: number): bigint {
  const point = value.indexOf('.');
  if (point === -1) return BigInt(value + '0'.repeat(scale));
  return BigInt(value.slice(0, point) + value.slice(point + 1).padEnd(scale, '0'));
}

/** The number of digits after the point. */
export function scaleOf(value: Decimal): number {
  const point = value.indexOf('.');
  return point === -1 ? 0 : value.length - point - 1;
}

/** The length of the text before the point, sign included. */
function wholeLength(value: Decimal): number {
  const point = value.indexOf('.');
  return point === -1 ? value.length : point;
}

/** The decimal of whole units of 10^-scale. */
export function fromUnits(value: bigint, scale: number): Decimal {
  const text = value.toString();
  if (scale === 0) return text as Decimal;
  const sign = value < 0n ? '-' : '';
  const digits = text.slice(sign.length).padStart(scale + 1, '0');
  const fraction = digits.slice(-scale).replace(/0+$/, '');
  return `${sign}${digits.slice(0, -scale)}${fraction === '' ? '' : `.${fraction}`}` as Decimal;
}

/** The text for people with exactly this many digits after the point, rounded half away from zero. A zero has no sign. */
export function roundedText(value: Decimal, digits: number): string {
  const scale = Math.max(scaleOf(value), digits);
  const dropped = 10n ** BigInt(scale - digits);
  const units = (magnitudeOf(toUnits(value, scale)) + dropped / 2n) / dropped;
  const text = units.toString().padStart(digits + 1, '0');
  const sign = value.startsWith('-') && units !== 0n ? '-' : '';
  return digits === 0 ? `${sign}${text}` : `${sign}${text.slice(0, -digits)}.${text.slice(-digits)}`;
}

/** -1, 0 or 1. */
export function compareDecimals(a: Decimal, b: Decimal): -1 | 0 | 1 {
  if (a === b) return 0;
  const isNegative = a.startsWith('-');
  if (isNegative !== b.startsWith('-')) return isNegative ? -1 : 1;
  const [wholeA, wholeB] = [wholeLength(a), wholeLength(b)];
  // Canonical magnitudes with equally many digits before the point sort like their text.
  const isLarger = wholeA === wholeB ? a > b : wholeA > wholeB;
  return isLarger === isNegative ? -1 : 1;
}

export function addDecimals(a: Decimal, b: Decimal): Decimal {
  const scale = Math.max(scaleOf(a), scaleOf(b));
  return fromUnits(toUnits(a, scale) + toUnits(b, scale), scale);
}

export function subtractDecimals(a: Decimal, b: Decimal): Decimal {
  const scale = Math.max(scaleOf(a), scaleOf(b));
  return fromUnits(toUnits(a, scale) - toUnits(b, scale), scale);
}

export function negateDecimal(value: Decimal): Decimal {
  return subtractDecimals(ZERO, value);
}

export function multiplyDecimals(a: Decimal, b: Decimal): Decimal {
  const scaleA = scaleOf(a);
  const scaleB = scaleOf(b);
  return fromUnits(toUnits(a, scaleA) * toUnits(b, scaleB), scaleA + scaleB);
}

/**
 * `a / b` with at most `scale` digits after the point, rounded half to even: exact when the quotient has no more digits.
 * @throws RangeError for a division by zero
 */
export function divideDecimals(a: Decimal, b: Decimal, scale: number): Decimal {
  const shared = Math.max(scaleOf(a), scaleOf(b));
  const [dividend, divisor] = [toUnits(a, shared) * 10n ** BigInt(scale), toUnits(b, shared)];
  const quotient = dividend / divisor;
  const twiceRest = 2n * magnitudeOf(dividend % divisor);
  const half = magnitudeOf(divisor);
  const isUp = twiceRest > half || (twiceRest === half && quotient % 2n !== 0n);
  // BigInt division truncates, so a rounded value moves away from zero.
  const away = a.startsWith('-') === b.startsWith('-') ? 1n : -1n;
  return fromUnits(isUp ? quotient + away : quotient, scale);
}

/** How a value is rounded: to the next greater one, half away from zero, or to the next smaller one. */
type Rounding = 'up' | 'half_up' | 'down';

/** The value with at most this many digits after the point. */
export function roundDecimal(value: Decimal, digits: number, mode: Rounding): Decimal {
  const scale = scaleOf(value);
  if (scale <= digits) return value;
  const step = 10n ** BigInt(scale - digits);
  const units = toUnits(value, scale);
  const rest = ((units % step) + step) % step;
  const lower = (units - rest) / step;
  const isUp = mode === 'up' ? rest > 0n : mode === 'half_up' && (units < 0n ? 2n * rest > step : 2n * rest >= step);
  return fromUnits(isUp ? lower + 1n : lower, digits);
}

function magnitudeOf(units: bigint): bigint {
  return units < 0n ? -units : units;
}

/** Exact half: `(a + b) / 2`. */
export function midpoint(a: Decimal, b: Decimal): Decimal {
  return multiplyDecimals(addDecimals(a, b), '0.5' as Decimal);
}

export const ZERO = '0' as Decimal;
export const ONE = '1' as Decimal;
export const HUNDRED = '100' as Decimal;

/** A JSON number that a double does not hold digit for digit. */
export class LongNumber {
  /** The number as it was sent. */
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }

  /** Different spellings of one number have the same JSON. */
  toJSON(): string {
    return parseDecimal(this.text) ?? this.text;
  }
}
