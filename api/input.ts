import { z } from 'zod';
import { INTERVALS } from '../src/domain/candle.ts';
import { MAX_EPOCH_SECONDS } from '../src/domain/time-range.ts';
import type { ApiContext } from './deps.ts';
import { type ErrorDetail, invalidRequest } from './errors.ts';

export const DEFAULT_LIMIT = 100;
export const MAX_LIMIT = 1_000;

function wholeNumber(min: number, max: number) {
  const message = `must be a whole number from ${min} to ${max}`;
  return z
    .string()
    .regex(/^\d{1,16}$/, message)
    .transform(Number)
    .refine((value) => value >= min && value <= max, message);
}

const epochSeconds = wholeNumber(0, MAX_EPOCH_SECONDS).optional();
const interval = z.enum(INTERVALS, `must be one of ${INTERVALS.join(', ')}`).default('1h');

/** Schemas of query parameters that several routes share. Each takes the text of the parameter. */
export const param = {
  limit: wholeNumber(1, MAX_LIMIT).default(DEFAULT_LIMIT),
  cursor: z.string().optional(),
  start: epochSeconds,
  end: epochSeconds,
  /** A moment of a point-in-time read; see `checkAsOf`. */
  asOf: epochSeconds,
  interval,
  outcomeId: z.string().min(1, 'must not be empty').max(256, 'must have at most 256 characters').optional(),
  depth: wholeNumber(1, 200).default(200),
  direction: z.enum(['asc', 'desc'], 'must be asc or desc').default('desc'),
};

/**
 * The query parameters a route knows, checked; others are ignored. Throws `invalid_request` with everything that is wrong.
 */
export function readQuery<Shape extends z.ZodRawShape>(
  ctx: ApiContext,
  schema: z.ZodObject<Shape>,
): z.output<z.ZodObject<Shape>> {
  const given = new URLSearchParams(ctx.querystring);
  const values: Record<string, string> = {};
  const repeated: ErrorDetail[] = [];
  for (const name of Object.keys(schema.shape)) {
    const [value, ...more] = given.getAll(name);
    if (more.length > 0) repeated.push({ path: name, message: 'must be given once' });
    if (value !== undefined) values[name] = value;
  }
  const parsed = schema.safeParse(values);
  if (!parsed.success || repeated.length > 0) {
    throw invalidRequest([...repeated, ...(parsed.success ? [] : describeIssues(parsed.error))]);
  }
  return parsed.data;
}

/**
 * Refuses a moment that has not come: what will be known then nobody can say. `asOf` in epoch seconds, absent for a read of now.
 * @throws ApiError `invalid_request` on `as_of`.
 */
export function checkAsOf(asOf: number | undefined, nowMs: number): void {
  if (asOf !== undefined && asOf * 1_000 > nowMs) {
    throw invalidRequest([{ path: 'as_of', message: 'must not be in the future' }]);
  }
}

/** A body checked against its schema. Throws `invalid_request` with everything that is wrong. */
export function checkBody<Schema extends z.ZodType>(schema: Schema, body: unknown): z.output<Schema> {
  const parsed = schema.safeParse(body);
  if (!parsed.success) throw invalidRequest(describeIssues(parsed.error));
  return parsed.data;
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
