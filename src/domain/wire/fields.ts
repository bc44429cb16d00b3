import { type ApiJson, decimalField, type ExactNumber, numberField } from '../values/api-json.ts';
import { compareDecimals, decimal } from '../values/decimal.ts';
import { keyOf } from '../values/text.ts';

/** What a field holds in the store, and what an answer or a message holds. */
interface Kinds {
  /** An id that clients must not parse. */
  id: { stored: string; sent: string };
  text: { stored: string; sent: string };
  texts: { stored: string[]; sent: string[] };
  count: { stored: number; sent: number };
  flag: { stored: boolean; sent: boolean };
  /** A moment, sent as epoch seconds. */
  time: { stored: Date; sent: number };
  /** The start of an interval, epoch seconds. */
  bucket: { stored: number; sent: number };
  /** Every stored digit, which DECIMAL_FORMAT may turn into a string. */
  decimal: { stored: string; sent: ExactNumber<'decimal'> };
  /** See `probabilityOf`; every stored digit, always a JSON number. */
  probability: { stored: string; sent: ExactNumber<'number'> };
}

export const PROBABILITY_RANGE = { least: 0, greatest: 1 } as const;

export type Field = (
  | { readonly kind: keyof Kinds }
  | { readonly kind: 'word'; readonly words: readonly string[] }
  | { readonly kind: 'list'; readonly of: Fields }
) & {
  /** Absent while unknown. */
  readonly optional?: true;
  /** Null while unknown: another field states why. */
  readonly nullable?: true;
  /** The description in the documents of the API. */
  readonly about?: string;
};

/** The fields of an object of the API by their names. */
export type Fields = Readonly<Record<string, Field>>;

type Value<F extends Field, Side extends 'stored' | 'sent'> = F extends { words: readonly (infer Word)[] }
  ? Word
  : F extends { kind: infer Kind extends keyof Kinds }
    ? Kinds[Kind][Side]
    : never;
type Sent<F extends Field> =
  | (F extends { of: infer Of extends Fields } ? Body<Of>[] : Value<F, 'sent'>)
  | (F extends { nullable: true } ? null : never);
type Optional<T extends Fields> = { [N in keyof T]: T[N] extends { optional: true } ? N : never }[keyof T];

/** The object as it is sent. */
type Body<T extends Fields> = { [N in Exclude<keyof T, Optional<T>>]: Sent<T[N]> } & {
  [N in Optional<T>]?: Sent<T[N]> | undefined;
};

type OrNull<F extends Field, V> = F extends { optional: true } | { nullable: true } ? V | null : V;

type CamelCase<Name> = Name extends `${infer Head}_${infer Tail}` ? `${Head}${Capitalize<CamelCase<Tail>>}` : Name;

/** The object as a row of the store; unknown values are null. */
export type Row<T extends Fields> = {
  [N in keyof T as CamelCase<N>]: OrNull<
    T[N],
    T[N] extends { of: infer Of extends Fields } ? Row<Of>[] : Value<T[N], 'stored'>
  >;
};

/** Makes the function that presents rows, with the fields in their order. */
export function rowPresenter<T extends Fields>(fields: T): (row: Row<T>) => Body<T> {
  const columns = Object.entries(fields).map(([name, field]) => {
    return { name, key: keyOf(name), field, ofItem: field.kind === 'list' ? rowPresenter(field.of) : undefined };
  });
  return (row) => {
    const values = row as Readonly<Record<string, unknown>>;
    const body: Record<string, ApiJson | undefined> = {};
    for (const { name, key, field, ofItem } of columns) {
      const value = values[key];
      body[name] = ofItem && value !== null ? (value as Row<Fields>[]).map(ofItem) : toSent(field, value);
    }
    return body as Body<T>;
  };
}

/** Presents a stored body, in its order. A value without a field stays as it is. */
export function presentBody(fields: Fields, body: Readonly<Record<string, unknown>>): ApiJson {
  return Object.fromEntries(Object.entries(body).map(([name, value]) => [name, toSent(fields[name], value)]));
}

function toSent(field: Field | undefined, value: unknown): ApiJson | undefined {
  if (field === undefined) return value as ApiJson;
  if (value === null) return field.nullable ? null : undefined;
  switch (field.kind) {
    case 'decimal':
      return decimalField(value as string);
    case 'probability':
      return probabilityOf(value as string);
    case 'time':
      // A stored body has it in seconds.
      return value instanceof Date ? Math.floor(value.getTime() / 1_000) : (value as number);
    case 'list':
      return (value as Record<string, unknown>[]).map((item) => presentBody(field.of, item));
    default:
      return value as ApiJson;
  }
}

/** The price of a share that pays 1 is its probability. A price outside the range has none. */
export function probabilityOf(price: string): ExactNumber<'number'> | undefined {
  const { least, greatest } = PROBABILITY_RANGE;
  const value = decimal(price);
  const isWithin = compareDecimals(value, decimal(least)) >= 0 && compareDecimals(value, decimal(greatest)) <= 0;
  return isWithin ? numberField(price) : undefined;
}
