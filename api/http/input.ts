import { z } from 'zod';
import type {} from 'zod-openapi';
import { INTERVALS } from '../../src/domain/markets/candle.ts';
import { MAX_EPOCH_SECONDS } from '../../src/domain/values/time-range.ts';
import type { ApiContext } from '../context.ts';
import { type ErrorDetail, invalidRequest } from '../errors.ts';

const DEFAULT_LIMIT = 100;
const MAX_LIMIT = 1_000;
const MAX_DEPTH = 200;
const MAX_VERSION = 1_000_000;

/**
 * The `override` of a schema whose generated fields do not describe the input: fields with `undefined` are removed. The type of
 * zod-openapi's own form does not permit `undefined`.
 */
export function replacing(fields: Readonly<Record<string, unknown>>) {
  return ({ jsonSchema }: { jsonSchema: object }): void => {
    Object.assign(jsonSchema, fields);
  };
}

function wholeNumber(min: number, max: number, hintFor: (value: number) => string = () => '') {
  const message = `must be a whole number from ${min} to ${max}`;
  return z
    .string()
    .regex(/^\d{1,16}$/, message)
    .transform(Number)
    .refine((value) => value >= min && value <= max, {
      error: ({ input }) => message + hintFor(Number(input)),
    })
    .meta({ override: replacing({ type: 'integer', pattern: undefined, minimum: min, maximum: max }) });
}

/** A present time in milliseconds is far beyond the last second. */
function millisecondsHint(value: number): string {
  return value / 1_000 <= MAX_EPOCH_SECONDS ? '; this looks like milliseconds: divide it by 1000' : '';
}

const epochSeconds = wholeNumber(0, MAX_EPOCH_SECONDS, millisecondsHint)
  .optional()
  .meta({ description: 'Epoch seconds.' });
const outcomeId = z.string().min(1, 'must not be empty').max(256, 'must have at most 256 characters');
const interval = z.enum(INTERVALS, `must be one of ${INTERVALS.join(', ')}`).default('1h');

/** Schemas of query parameters that several routes share. Each takes the text of the parameter. */
export const param = {
  limit: wholeNumber(1, MAX_LIMIT)
    .default(DEFAULT_LIMIT)
    .meta({ description: 'Maximum number of items.', override: { default: DEFAULT_LIMIT } }),
  cursor: z.string().optional().meta({ description: '`meta.next_cursor` of the last page, with the same filters.' }),
  start: epochSeconds,
  end: epochSeconds,
  /** The moment of a point-in-time read; see `checkAsOf`. */
  asOf: epochSeconds.meta({ description: 'Read the state known at this moment. Epoch seconds, not in the future.' }),
  interval,
  outcomeId: outcomeId.optional(),
  /** An outcome that the request must name. */
  requiredOutcomeId: outcomeId,
  version: wholeNumber(1, MAX_VERSION).optional(),
  depth: wholeNumber(1, MAX_DEPTH)
    .default(MAX_DEPTH)
    .meta({ description: 'Maximum number of levels per side.', override: { default: MAX_DEPTH } }),
  direction: z.enum(['asc', 'desc'], 'must be asc or desc').default('desc'),
};

const MAX_BATCH = 100;
const MAX_ID_LENGTH = 256;

/** The ids of a batch: a comma list, without repetitions. */
export function idList(noun: string, example: string) {
  const rule = `must be a comma list of 1 to ${MAX_BATCH} ${noun} ids of 1 to ${MAX_ID_LENGTH} characters`;
  return z
    .string(rule)
    .transform((list) => [...new Set(list.split(','))])
    .refine((ids) => ids.length <= MAX_BATCH && ids.every((id) => id !== '' && id.length <= MAX_ID_LENGTH), rule)
    .meta({
      description: `A comma list of 1 to ${MAX_BATCH} ${noun} ids. The answer keeps this order.`,
      override: { type: 'string', minLength: 1 },
      example,
    });
}

/** Parameters that a request may repeat. */
const REPEATABLE = new WeakSet<z.ZodType>();

/** An optional parameter with one or several of these names: a comma list, or the parameter repeated. */
export function listParam<Name extends string>(names: readonly Name[], description: string) {
  const message = `must be one of ${names.join(', ')}, or a comma list of them`;
  const isName = (text: string): text is Name => names.includes(text as Name);
  const name = { type: 'string' as const, enum: [...names] };
  const any = `(?:${names.join('|')})`;
  const commaList = { type: 'string' as const, pattern: `^${any}(?:,${any})*$`, title: 'comma list' };
  const schema = z
    .string()
    .transform((text, context): Name[] => {
      const given = [...new Set(text.split(','))];
      if (given.every(isName)) return given;
      context.addIssue({ code: 'custom', message });
      return z.NEVER;
    })
    .optional()
    .meta({
      description: `${description} One or several: a comma list, or the parameter repeated.`,
      override: replacing({ type: undefined, anyOf: [name, commaList, { type: 'array', items: name, minItems: 1 }] }),
    });
  REPEATABLE.add(schema);
  return schema;
}

/** Reads and checks the query parameters of a route. The returned function throws `invalid_request` with all faults. */
export function queryReader<Query extends z.ZodObject>(
  schema: Query | undefined,
): (ctx: ApiContext) => z.output<Query> {
  const shape = schema?.shape ?? {};
  const names = Object.keys(shape);
  if (!schema || names.length === 0) {
    const nothing = Object.freeze({}) as z.output<Query>;
    return () => nothing;
  }
  return (ctx) => {
    const given = new URLSearchParams(ctx.querystring);
    const values: Record<string, string> = {};
    const repeated: ErrorDetail[] = [];
    for (const name of names) {
      const all = given.getAll(name);
      const isList = REPEATABLE.has(shape[name] as z.ZodType);
      if (all.length > 1 && !isList) repeated.push({ path: name, message: 'must be given once' });
      if (all[0] !== undefined) values[name] = isList ? all.join(',') : all[0];
    }
    const parsed = schema.safeParse(values);
    if (!parsed.success || repeated.length > 0) {
      throw invalidRequest([...repeated, ...(parsed.success ? [] : describeIssues(parsed.error, values))]);
    }
    return parsed.data;
  };
}

/**
 * Rejects a future moment, whose state is unknown. `asOf` in epoch seconds, absent for a read of now.
 * @throws ApiError `invalid_request` on `as_of`.
 */
export function checkAsOf(asOf: number | undefined, nowMs: number): void {
  if (asOf !== undefined && asOf * 1_000 > nowMs) {
    throw invalidRequest([{ path: 'as_of', message: 'must not be in the future' }]);
  }
}

/** Checks a body against its schema. The returned function throws `invalid_request` with all faults. */
export function bodyChecker<Schema extends z.ZodType>(schema: Schema): (body: unknown) => z.output<Schema> {
  return (body) => {
    const parsed = schema.safeParse(body);
    if (!parsed.success) throw invalidRequest(describeIssues(parsed.error, body));
    return parsed.data;
  };
}

function describeIssues(error: z.ZodError, input: unknown): ErrorDetail[] {
  return error.issues.flatMap((issue): ErrorDetail[] => {
    const path = issue.path.map(String).join('.');
    if (issue.code === 'unrecognized_keys') {
      return issue.keys.slice(0, 20).map((key) => ({
        path: (path === '' ? key : `${path}.${key}`).slice(0, 200),
        message: 'unknown field',
      }));
    }
    const message = plainMessage(issue);
    return [{ path: path || 'body', message: isMissing(issue, input) ? requiredMessage(message) : message }];
  });
}

/** The message of the schema, or a sentence for a message of the validator. */
function plainMessage(issue: z.core.$ZodIssue): string {
  if (!/^(Invalid|Too|Unrecognized)\b/.test(issue.message)) return issue.message;
  if (issue.code !== 'invalid_type') return 'is not valid';
  return /^[aeiou]/.test(issue.expected) ? `must be an ${issue.expected}` : `must be a ${issue.expected}`;
}

/** Whether the fault is a field that the input does not have. Faults of several fields have their own messages. */
export function isMissing({ code, path }: z.core.$ZodIssue, input: unknown): boolean {
  if (code === 'custom' || path.length === 0) return false;
  let value = input;
  for (const name of path) {
    if (typeof value !== 'object' || value === null) return false;
    value = (value as Record<PropertyKey, unknown>)[name];
  }
  return value === undefined;
}

/** The rule of a missing field, unless it only names a type. */
function requiredMessage(rule: string): string {
  return /^must (?!be an? \w+$)/.test(rule) ? `is required and ${rule}` : 'is required';
}
