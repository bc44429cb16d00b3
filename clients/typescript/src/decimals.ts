import { DECIMAL_FIELDS } from './schema.ts';

declare const decimalField: unique symbol;

/** Stands in the generated types where the document says `format: decimal`; see `WithDecimals`. No value has this type. */
export type DecimalField = typeof decimalField;

/** How exact decimals are given: as `number`, which is a double, or as `string` with every digit. */
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

/** A string, and the number behind it when the string is a name. Strings are taken whole, so nothing within one matches. */
const STRING_AND_NUMBER = /"([^"\\]*(?:\\.[^"\\]*)*)"(?:\s*:\s*(-?\d[\d.eE+-]*))?/g;
const NAMES: ReadonlySet<string> = new Set(DECIMAL_FIELDS);

/** JSON text with the numbers of these fields, or of every field, put between quotes: `JSON.parse` then keeps their digits. */
export function quoteNumbers(json: string, fields: 'decimals' | 'all'): string {
  return json.replace(STRING_AND_NUMBER, (match: string, name: string, digits: string | undefined) =>
    digits !== undefined && (fields === 'all' || NAMES.has(name))
      ? `${match.slice(0, -digits.length)}"${digits}"`
      : match,
  );
}
