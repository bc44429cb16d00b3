import { z } from 'zod';
import type {} from 'zod-openapi';
import { INTERVALS } from '../../src/domain/markets/candle.ts';
import { MAX_EPOCH_SECONDS } from '../../src/domain/values/time-range.ts';
import type { ApiContext } from '../deps.ts';
import { type ErrorDetail, invalidRequest } from '../errors.ts';

const DEFAULT_LIMIT = 100;
const MAX_LIMIT = 1_000;
const MAX_DEPTH = 200;

function wholeNumber(min: number, max: number) {
  const message = `must be a whole number from ${min} to ${max}`;
  return z
    .string()
    .regex(/^\d{1,16}$/, message)
    .transform(Number)
    .refine((value) => value >= min && value <= max, message)
    .meta({ override: { type: 'integer', pattern: undefined, minimum: min, maximum: max } });
}

const epochSeconds = wholeNumber(0, MAX_EPOCH_SECONDS).optional().meta({ description: 'Epoch seconds.' });
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
  outcomeId: z.string().min(1, 'must not be empty').max(256, 'must have at most 256 characters').optional(),
  depth: wholeNumber(1, MAX_DEPTH)
    .default(MAX_DEPTH)
    .meta({ description: 'Maximum number of levels per side.', override: { default: MAX_DEPTH } }),
  direction: z.enum(['asc', 'desc'], 'must be asc or desc').default('desc'),
};

/**
 * Reads and checks the query parameters of a route, and ignores others. The returned function throws `invalid_request` with all
 * faults.
 */
export function queryReader<Query extends z.ZodObject>(
  schema: Query | undefined,
): (ctx: ApiContext) => z.output<Query> {
  const names = Object.keys(schema?.shape ?? {});
  if (!schema || names.length === 0) {
    const nothing = Object.freeze({}) as z.output<Query>;
    return () => nothing;
  }
  return (ctx) => {
    const given = new URLSearchParams(ctx.querystring);
    const values: Record<string, string> = {};
    const repeated: ErrorDetail[] = [];
    for (const name of names) {
      const [value, ...more] = given.getAll(name);
      if (more.length > 0) repeated.push({ path: name, message: 'must be given once' });
      if (value !== undefined) values[name] = value;
    }
    const parsed = schema.safeParse(values);
    if (!parsed.success || repeated.length > 0) {
      throw invalidRequest([...repeated, ...(parsed.success ? [] : describeIssues(parsed.error))]);
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
    if (!parsed.success) throw invalidRequest(describeIssues(parsed.error));
    return parsed.data;
  };
}

function describeIssues(error: z.ZodError): ErrorDetail[] {
  return error.issues.flatMap((issue): ErrorDetail[] => {
    const path = issue.path.map(String).join('.');
    if (issue.code === 'unrecognized_keys') {
      return issue.keys.slice(0, 20).map((key) => ({
        path: (path === '' ? key : `${path}.${key}`).slice(0, 200),
        message: 'unknown field',
      }));
    }
    return [{ path: path || 'body', message: issue.message }];
  });
}
