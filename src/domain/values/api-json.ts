import { type Decimal, decimal } from './decimal.ts';

/**
 * A number that reaches the wire digit for digit. `decimal` is a spec `decimal` field, which DECIMAL_FORMAT may turn into a
 * string; `number` is a spec `number` field, which stays one.
 */
export class ExactNumber<Kind extends 'decimal' | 'number' = 'decimal' | 'number'> {
  readonly digits: Decimal;
  readonly kind: Kind;

  constructor(digits: Decimal, kind: Kind) {
    this.digits = digits;
    this.kind = kind;
  }
}

/** Text that is JSON already and reaches the wire as it is: a stored body, digit for digit. */
export class JsonText {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

/** What an answer may hold. A field that is `undefined` is left out: unknown is absent, never 0 and never null. */
export type ApiJson =
  | string
  | number
  | boolean
  | null
  | ExactNumber
  | JsonText
  | readonly ApiJson[]
  | { readonly [key: string]: ApiJson | undefined };

export type DecimalFormat = 'number' | 'string';

/** A spec `decimal` field from `numeric` text. Throws RangeError when it is no decimal. */
export function decimalField(text: string): ExactNumber<'decimal'> {
  return new ExactNumber(decimal(text), 'decimal');
}

/** The same for a column that may be NULL: absent when unknown. */
export function optionalDecimal(text: string | null | undefined): ExactNumber<'decimal'> | undefined {
  return text === null || text === undefined ? undefined : decimalField(text);
}

/** A spec `number` field from `numeric` text: a JSON number whatever DECIMAL_FORMAT says. */
export function numberField(text: string): ExactNumber<'number'> {
  return new ExactNumber(decimal(text), 'number');
}

/**
 * JSON text of an answer. Exact numbers are written with their stored digits and never pass through a binary float
 * (DESIGN section 4, "Numbers"). Throws RangeError for NaN and infinities, which JSON cannot say.
 */
export function toJsonText(value: ApiJson, decimalFormat: DecimalFormat): string {
  if (typeof value === 'string') return JSON.stringify(value);
  if (typeof value === 'number') {
    if (!Number.isFinite(value)) throw new RangeError('not a JSON number');
    return JSON.stringify(value);
  }
  if (value === null || typeof value === 'boolean') return String(value);
  if (value instanceof ExactNumber) {
    return value.kind === 'decimal' && decimalFormat === 'string' ? `"${value.digits}"` : value.digits;
  }
  if (value instanceof JsonText) return value.text;
  if (isList(value)) return `[${value.map((item) => toJsonText(item, decimalFormat)).join(',')}]`;
  let fields = '';
  for (const key of Object.keys(value)) {
    const item = value[key];
    if (item === undefined) continue;
    fields += `${fields === '' ? '' : ','}${JSON.stringify(key)}:${toJsonText(item, decimalFormat)}`;
  }
  return `{${fields}}`;
}

/** `Array.isArray` does not narrow readonly arrays. */
function isList(value: ApiJson): value is readonly ApiJson[] {
  return Array.isArray(value);
}
