import { z } from 'zod';
import type { CreateDocumentOptions } from 'zod-openapi';
import type { DecimalFormat, ExactNumber, JsonText } from '../../src/domain/values/api-json.ts';
import { MAX_EPOCH_SECONDS } from '../../src/domain/values/time-range.ts';
import type { Field, Fields } from '../../src/domain/wire/fields.ts';

/** Ids in the examples of the documents. */
export const BACKTEST_ID_EXAMPLE = 'bt_01987f5e-6a3b-7c11-8b5e-0d2f6f1a9c01';
export const EVENT_ID_EXAMPLE = '16167';
export const MARKET_ID_EXAMPLE = '0x5f65177b394277fd294cd75650044e32ba009a95022d88a0c1d565897d72f8f1';
export const OUTCOME_ID_EXAMPLE = '71321045679252212594626385532706912750332728571942532289631379312455583992563';
export const OTHER_OUTCOME_ID_EXAMPLE = '52114319501245915516055106046884209969926127482827954674443846427813813222426';
export const OUTCOME_ID_EXAMPLES = [OUTCOME_ID_EXAMPLE, OTHER_OUTCOME_ID_EXAMPLE] as const;

/** The format of a schema whose JSON type depends on DECIMAL_FORMAT; the document states the type. */
const DECIMAL = 'decimal';

/** A `decimal` field of the specification: every stored digit, as a JSON number or as a string. */
export const decimalValue = z.custom<ExactNumber<'decimal'>>().meta({ description: 'Exact decimal.', format: DECIMAL });

/** A `number` field of the specification: every stored digit, a JSON number with either DECIMAL_FORMAT. */
export const numberValue = z
  .custom<ExactNumber<'number'>>()
  .meta({ description: 'Exact number.', override: { type: 'number' } });

/** A stored delivery body; see `Event` in event.ts. */
export const storedEvent = z.custom<JsonText>().meta({ override: { $ref: '#/components/schemas/Event' } });

/** Epoch seconds, as on market routes. */
export const epochTime = z.int().min(0).meta({ description: 'Epoch seconds.' });

/** ISO 8601 in UTC with milliseconds, as on account routes. */
export const isoTime = z
  .string()
  .meta({ description: 'ISO 8601, UTC, milliseconds.', override: { type: 'string', format: 'date-time' } });

/** A time of a request, with any offset, which answers give as `isoTime`. */
export const endTime = z.iso
  .datetime({ offset: true, error: 'must be an ISO 8601 time with an offset' })
  // An offset can move the last hours of 9999 into the year 10000, which an answer cannot hold.
  .refine((text) => !(Date.parse(text) > MAX_EPOCH_SECONDS * 1_000), 'must be before the year 10000');

/** Epoch milliseconds of an ISO time, at most those of 1970 or 9999: no data is beyond, and Postgres has no year 0. */
export function storableMs(text: string): number {
  return Math.min(Math.max(0, Date.parse(text)), MAX_EPOCH_SECONDS * 1_000);
}

export const count = z.int().min(0);
/** An id that clients must not parse. */
export const opaqueId = z.string().min(1);

/** In `meta` of reads that may cause venue requests. */
export const coldReads = z.literal('exhausted').optional().meta({
  description:
    'The account has used up its cold reads of this minute: `data` holds the stored state, without a venue request.',
});

const SCHEMAS = {
  id: opaqueId,
  text: z.string(),
  texts: z.array(z.string()),
  count,
  flag: z.boolean(),
  time: epochTime,
  bucket: epochTime,
  decimal: decimalValue,
  probability: numberValue,
};

type SchemaOf<F extends Field> = F extends { nullable: true } ? z.ZodNullable<ValueSchemaOf<F>> : ValueSchemaOf<F>;
type ValueSchemaOf<F extends Field> = F extends { words: infer Words extends readonly string[] }
  ? z.ZodEnum<z.core.util.ToEnum<Words[number]>>
  : F extends { of: infer Of extends Fields }
    ? z.ZodArray<z.ZodObject<Shape<Of>>>
    : F extends { kind: infer K extends keyof typeof SCHEMAS }
      ? (typeof SCHEMAS)[K]
      : never;
type Shape<T extends Fields> = {
  [N in keyof T]: T[N] extends { optional: true } ? z.ZodOptional<SchemaOf<T[N]>> : SchemaOf<T[N]>;
};

/** The shape of an object with these fields. */
export function shapeOf<T extends Fields>(fields: T): Shape<T> {
  return Object.fromEntries(Object.entries(fields).map(([name, field]) => [name, schemaOf(field)])) as Shape<T>;
}

function schemaOf(field: Field): z.ZodType {
  const known = field.nullable ? valueSchemaOf(field).nullable() : valueSchemaOf(field);
  const schema = field.optional ? known.optional() : known;
  return field.about === undefined ? schema : schema.meta({ description: field.about });
}

function valueSchemaOf(field: Field): z.ZodType {
  if (field.kind === 'word') return z.enum(field.words);
  if (field.kind === 'list') return z.array(z.object(shapeOf(field.of)));
  return SCHEMAS[field.kind];
}

const DECIMALS: Readonly<Record<DecimalFormat, { type: 'number' | 'string'; pattern?: string }>> = {
  number: { type: 'number' },
  string: { type: 'string', pattern: '^-?(0|[1-9][0-9]*)(\\.[0-9]+)?$' },
};

/** Adjusts the parts that zod cannot express, or expresses at length. */
export function adjust(
  { jsonSchema, io }: Parameters<NonNullable<CreateDocumentOptions['override']>>[0],
  decimalFormat: DecimalFormat,
): void {
  if (jsonSchema.format === DECIMAL) Object.assign(jsonSchema, DECIMALS[decimalFormat]);
  // New versions may add fields to answers, which would break a client that rejects unknown fields.
  if (io === 'output' && jsonSchema.additionalProperties === false) delete jsonSchema.additionalProperties;
  if (jsonSchema.maximum === Number.MAX_SAFE_INTEGER) delete jsonSchema.maximum;
  if (jsonSchema.minimum === Number.MIN_SAFE_INTEGER) delete jsonSchema.minimum;
}

/** The answer of every deletion. */
export const deleted = z.object({ id: opaqueId, deleted: z.literal(true) });
export const cursorMeta = z.object({
  next_cursor: z.string().nullable().meta({ description: 'Null on the last page.' }),
});
