import fc from 'fast-check';
import { anyCharacters } from '../factories/texts.ts';
import type { ApiContract, JsonSchema } from '../support/api-contract.ts';

/** The prefix of placeholders; no hostile text has it. */
const KNOWN = 'known thing ';

/** A placeholder for an id that exists when the request is sent; see `resolved`. */
export function knownText(name: string): fc.Arbitrary<string> {
  return fc.nat({ max: 10_000 }).map((index) => `${KNOWN}${name}#${index}`);
}

/** The text to send. `known` holds existing ids by name; an unknown placeholder stays unchanged. */
export function resolved(text: string, known: ReadonlyMap<string, readonly string[]>): string {
  if (!text.startsWith(KNOWN)) return text;
  const [name = '', index] = text.slice(KNOWN.length).split('#');
  const values = known.get(name) ?? [];
  return values[Number(index) % values.length] ?? name;
}

/** Hostile text. Most of it is possible in JSON, in a query and in a path. */
export const hostileText: fc.Arbitrary<string> = fc.oneof(
  fc.constantFrom(
    '',
    ' ',
    '\0',
    'a\0b',
    '\ud800',
    '\udfff\ud800',
    '__proto__',
    'constructor',
    'toString',
    "' OR 1=1 --",
    '$1',
    '%',
    '%s%n',
    '../../etc/passwd',
    '..',
    '<script>alert(1)</script>',
    '\u202e\u0000',
    '☃💩',
    'é'.repeat(300),
    'null',
    'undefined',
    'true',
    'NaN',
    '-0',
    '-1',
    '0',
    '1e400',
    '1e2',
    '0x10',
    '9'.repeat(30),
    '99999999999999999',
    '253402300800',
    '2026-02-30',
    '2026-01-01T00:00:00',
    '0001-01-01',
    '{}',
    '[]',
    ',',
    ',,a',
    'a,'.repeat(200),
    'x'.repeat(257),
    'x'.repeat(3_000),
  ),
  anyCharacters(30),
  fc.string({ unit: 'grapheme', maxLength: 30 }),
);

/** Any JSON value, also deep and unusual values. */
export const hostileJson: fc.Arbitrary<unknown> = fc.oneof(
  hostileText,
  fc.jsonValue(),
  fc.constantFrom(null, true, false, 0, -0, -1, 1.5, 1e308, 5e-324, Number.MAX_SAFE_INTEGER, [], {}, [[]], ['a', 1]),
  fc.constant(JSON.parse(`${'['.repeat(200)}${']'.repeat(200)}`) as unknown),
  fc.constant({ length: 1, 0: 'a' }),
);

/** Placeholders for existing ids. */
const NAMES_OF_THINGS = new Set([
  'tokenMint',
  'webhookId',
  'address',
  'outcome_id',
  'outcome_ids',
  'buy_outcome_id',
  'sell_outcome_id',
  'buy_venue',
  'sell_venue',
  'market_ids',
  'cursor',
  'since',
]);
const THING_OF: Readonly<Record<string, string>> = {
  market_ids: 'market_id',
  outcome_ids: 'outcome_id',
  buy_outcome_id: 'outcome_id',
  sell_outcome_id: 'outcome_id',
  buy_venue: 'venue',
  sell_venue: 'venue',
};

/** Values that a schema of the document allows. `name` is the name of the field or parameter. */
export function valuesOf(contract: ApiContract, schema: JsonSchema, name = ''): fc.Arbitrary<unknown> {
  const plain = plainValuesOf(contract, schema, name);
  if (!NAMES_OF_THINGS.has(name)) return plain;
  return fc.oneof({ weight: 4, arbitrary: knownText(THING_OF[name] ?? name) }, { weight: 1, arbitrary: plain });
}

function plainValuesOf(contract: ApiContract, schema: JsonSchema, name: string): fc.Arbitrary<unknown> {
  if (typeof schema.$ref === 'string') return valuesOf(contract, contract.resolve(schema.$ref) as JsonSchema, name);
  if (Array.isArray(schema.enum)) return fc.constantFrom(...(schema.enum as unknown[]));
  if (schema.const !== undefined) return fc.constant(schema.const);
  const choices = (schema.anyOf ?? schema.oneOf) as JsonSchema[] | undefined;
  if (choices) return fc.oneof(...choices.map((choice) => valuesOf(contract, choice, name)));
  const number = (key: string, fallback: number) => (typeof schema[key] === 'number' ? schema[key] : fallback);
  switch (schema.type) {
    case 'integer':
      return fc.oneof(
        fc.integer({ min: number('minimum', -1_000), max: number('maximum', 1_000_000) }),
        fc.constantFrom(number('minimum', 0), number('maximum', 1_000_000)),
      );
    case 'number':
      return fc.oneof(
        fc.integer({ min: 1, max: 99 }).map((cents) => cents / 100),
        fc.double({
          min: number('exclusiveMinimum', number('minimum', -1e9)),
          minExcluded: true,
          noNaN: true,
          max: number('maximum', 1e9),
        }),
      );
    case 'boolean':
      return fc.boolean();
    case 'array': {
      const items = valuesOf(contract, schema.items as JsonSchema);
      return fc.array(items, { minLength: number('minItems', 0), maxLength: Math.min(5, number('maxItems', 5)) });
    }
    case 'object':
      return objectOf(contract, schema);
    default:
      return textOf(schema, number('minLength', 0), number('maxLength', 40));
  }
}

function objectOf(contract: ApiContract, schema: JsonSchema): fc.Arbitrary<Record<string, unknown>> {
  if (schema.propertyNames !== undefined) {
    const names = valuesOf(contract, schema.propertyNames as JsonSchema) as fc.Arbitrary<string>;
    return fc.dictionary(names, valuesOf(contract, schema.additionalProperties as JsonSchema), { maxKeys: 3 });
  }
  const properties = Object.entries((schema.properties ?? {}) as Record<string, JsonSchema>);
  const model = Object.fromEntries(properties.map(([key, inner]) => [key, valuesOf(contract, inner, key)]));
  const required = (schema.required ?? []) as string[];
  if (typeof schema.maxProperties !== 'number') return fc.record(model, { requiredKeys: required }).map(coherent);
  const others = properties.map(([key]) => key).filter((key) => !required.includes(key));
  const room = schema.maxProperties - required.length;
  return fc.subarray(others, { minLength: room, maxLength: room }).chain((chosen) => {
    const names = [...required, ...chosen];
    return fc.record(Object.fromEntries(names.map((name) => [name, model[name] as fc.Arbitrary<unknown>])));
  });
}

/** Fields that depend on each other beyond their schemas, mostly as the API accepts them. */
function coherent(value: Record<string, unknown>): Record<string, unknown> {
  const { format, ...others } = value;
  const mayKeep = format === undefined || (typeof value['url'] === 'string' && format !== 'telegram');
  return {
    ...(mayKeep ? value : others),
    ...('orderBy' in value && { ordered: true }),
    ...('alert' in value && rangeOf(value)),
    ...('condition' in value && 'repeat' in value && fieldsOfAlert(value)),
    ...('status' in value && !('condition' in value) && without(FIELDS_OF_RULES)),
  };
}

/** The fields of alerts that belong to some conditions only, or depend on the present time. */
const FIELDS_OF_RULES = [
  'scope',
  'direction',
  'change',
  'unit',
  'windowSeconds',
  'windows',
  'notional',
  'times',
  'cooldownSeconds',
  'expiresAt',
] as const;

function without(names: readonly string[]): Record<string, undefined> {
  return Object.fromEntries(names.map((name) => [name, undefined]));
}

/** The fields of a condition on a price. Random fields of all conditions practically never belong together. */
function fieldsOfAlert({ condition, tokenMint = 'mint-1', price, repeat }: Record<string, unknown>) {
  return {
    ...without([...FIELDS_OF_RULES, 'webhookId']),
    condition: /^(above|below|crosses_)/.test(String(condition)) ? condition : 'above',
    tokenMint,
    price: typeof price === 'number' && price > 0 && price < 1 ? price : 0.5,
    repeat,
  };
}

/** The range of a backtest in the past, with its times in their order. */
function rangeOf({ start, end }: Record<string, unknown>): Record<string, unknown> {
  const msOf = (time: unknown) => (typeof time === 'string' ? Date.parse(time) : Number(time) * 1_000) % Date.now();
  const [first = 0, last = 0] = [msOf(start), msOf(end)].sort((a, b) => a - b);
  return { start: new Date(first).toISOString(), end: Math.floor(last / 1_000) + 1 };
}

function textOf(schema: JsonSchema, minLength: number, maxLength: number): fc.Arbitrary<string> {
  if (schema.format === 'date') return fc.date(SOME_TIME).map((at) => at.toISOString().slice(0, 10));
  if (schema.format === 'date-time') return fc.date(SOME_TIME).map((at) => at.toISOString());
  const text = fc.string({ unit: 'grapheme', minLength, maxLength: Math.min(maxLength, Math.max(40, minLength)) });
  if (typeof schema.pattern !== 'string') return text;
  if (schema.pattern.includes('[Hh][Tt]')) return fc.webUrl({ validSchemes: ['https'] });
  if (schema.pattern === '^[\\x20-\\x7e]*$') {
    return fc.string({ unit: 'grapheme-ascii', minLength, maxLength: Math.max(40, minLength) });
  }
  const pattern = new RegExp(schema.pattern, 'u');
  const form = withoutLookaheads(schema.pattern);
  // Random text would practically never match a list of names, a number, or the name of a header.
  const base = /^\^(?:\(|\[0-9\]|\[!#)/.test(form) ? fc.stringMatching(new RegExp(form, 'u')) : text;
  return base.filter((candidate) => candidate.length <= maxLength && pattern.test(candidate));
}

/** A pattern without the conditions at its beginning, of which `stringMatching` makes no text. */
function withoutLookaheads(pattern: string): string {
  let rest = pattern.slice(1);
  while (/^\(\?[=!]/.test(rest)) {
    let depth = 0;
    let end = 0;
    do {
      if (rest[end] === '(') depth += 1;
      if (rest[end] === ')') depth -= 1;
      end += 1;
    } while (depth > 0);
    rest = rest.slice(end);
  }
  return `^${rest}`;
}

const SOME_TIME = { min: new Date('2026-01-01'), max: new Date('2028-01-01'), noInvalidDate: true };
