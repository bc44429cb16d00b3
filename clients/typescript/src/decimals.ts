import { DECIMAL_FIELDS } from './schema.ts';

declare const decimalField: unique symbol;

/** A placeholder in the generated types for `format: decimal`; see `WithDecimals`. No value has this type. */
export type DecimalField = typeof decimalField;

/** The type of exact decimals: `number`, which is a double, or `string` with every digit. */
export type DecimalType = number | string;

/** `T` with its decimals as `D`. */
export type WithDecimals<T, D extends DecimalType> = T extends DecimalField
  ? D
  : T extends object
    ? { [Key in keyof T]: WithDecimals<T[Key], D> }
    : T;

/** `T` with every number as `D`. */
export type WithNumbers<T, D extends DecimalType> = T extends number
  ? D
  : T extends object
    ? { [Key in keyof T]: WithNumbers<T[Key], D> }
    : T;

/** A string, and the number after it when the string is a name. It matches whole strings, so it never matches inside a string. */
const STRING_AND_NUMBER = /"([^"\\]*(?:\\.[^"\\]*)*)"(?:\s*:\s*(-?\d[\d.eE+-]*))?/g;
const NAMES: ReadonlySet<string> = new Set(DECIMAL_FIELDS);

/** Quotes the numbers of decimal fields, or of all fields, in JSON text, so that `JSON.parse` keeps their digits. */
export function quoteNumbers(json: string, fields: 'decimals' | 'all'): string {
  return json.replace(STRING_AND_NUMBER, (match: string, name: string, digits: string | undefined) =>
    digits !== undefined && (fields === 'all' || NAMES.has(name))
      ? `${match.slice(0, -digits.length)}"${digits}"`
      : match,
  );
}
