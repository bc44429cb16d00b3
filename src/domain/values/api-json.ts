import { type Decimal, decimal } from './decimal.ts';

/**
 * A number that is sent with its exact digits. `decimal` is a `decimal` field of the specification, which DECIMAL_FORMAT may turn
 * into a string; `number` is always a JSON number.
 */
export class ExactNumber<Kind extends 'decimal' | 'number' = 'decimal' | 'number'> {
  readonly digits: Decimal;
  readonly kind: Kind;

  constructor(digits: Decimal, kind: Kind) {
    this.digits = digits;
    this.kind = kind;
  }
}

/** A text that is already JSON and is sent unchanged, such as a stored body. */
export class JsonText {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

/** The content of an answer. A field that is `undefined` is omitted: unknown is absent, never 0 and never null. */
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

/** A `decimal` field of the specification from `numeric` text. @throws RangeError for a text that is not a decimal */
export function decimalField(text: string): ExactNumber<'decimal'> {
  return new ExactNumber(decimal(text), 'decimal');
}

/** As `decimal`, for a nullable column: absent when unknown. */
export function optionalDecimal(text: string | null | undefined): ExactNumber<'decimal'> | undefined {
  return text === null || text === undefined ? undefined : decimalField(text);
}

/** A `number` field of the specification from `numeric` text: always a JSON number, independent of DECIMAL_FORMAT. */
export function numberField(text: string): ExactNumber<'number'> {
  return new ExactNumber(decimal(text), 'number');
}

/**
 * The JSON text of an answer. Exact numbers keep their stored digits and never pass through a binary float.
 * @throws RangeError for NaN and infinities, which JSON cannot represent
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
    fields += `${fields === '' ? '' : ','}${keyText(key)}${toJsonText(item, decimalFormat)}`;
  }
  return `{${fields}}`;
}

/** Fields of answers have some hundred names, which repeat in every row. */
const MAX_KEYS = 1_000;
const keyTexts = new Map<string, string>();

function keyText(key: string): string {
  const known = keyTexts.get(key);
  if (known !== undefined) return known;
  const text = `${JSON.stringify(key)}:`;
  if (keyTexts.size < MAX_KEYS) keyTexts.set(key, text);
  return text;
}

/** `Array.isArray` does not narrow readonly arrays. */
function isList(value: ApiJson): value is readonly ApiJson[] {
  return Array.isArray(value);
}
