import type { ZodOpenApiOperationObject } from 'zod-openapi';
import type { ErrorCode } from '../errors.ts';

type HeaderObject = Readonly<{
  description: string;
  schema: { type: 'string' | 'integer'; minimum?: number; pattern?: string; format?: string };
  required?: boolean;
  example?: string | number;
}>;
type ParameterObject = Exclude<NonNullable<ZodOpenApiOperationObject['parameters']>[number], { _zod: unknown }>;

const seconds = { type: 'integer', minimum: 0 } as const;
const text = { type: 'string' } as const;

/** Headers of answers: `required` ones are on every answer that names them. */
export const HEADERS = {
  'X-Request-Id': {
    description: "The request's id: the caller's where it sent a fit one, else made. In `meta.request_id` too.",
    schema: { type: 'string', pattern: '^[A-Za-z0-9._-]{1,128}$' },
    required: true,
    example: 'req_01987f5e-6a3b-7c11-8b5e-0d2f6f1a9c04',
  },
  ETag: {
    description: 'Weak, over data and the lasting part of meta. Send it as `If-None-Match` to get 304.',
    schema: { type: 'string', pattern: '^W/"[^"]+"$' },
    required: true,
    example: 'W/"RqsXAXEQUtWkSMvI8nvn9Wh3cWk"',
  },
  'Cache-Control': {
    description: 'How long the answer may be kept.',
    schema: text,
    required: true,
    example: 'private, max-age=1',
  },
  Vary: { description: 'What else the answer depends on.', schema: text, required: true, example: 'Accept-Encoding' },
  Location: {
    description: 'The path of what was made.',
    schema: { type: 'string', pattern: '^/v1/' },
    required: true,
    example: '/v1/alerts/alert_01987f5e-6a3b-7c11-8b5e-0d2f6f1a9c01',
  },
  'WWW-Authenticate': {
    description: 'How to authenticate.',
    schema: text,
    required: true,
    example: 'Bearer realm="oddswire"',
  },
  Allow: { description: 'The methods the path takes.', schema: text, required: true, example: 'GET, HEAD' },
  'Retry-After': { description: 'Seconds to wait.', schema: seconds, example: 2 },
  'Idempotent-Replayed': {
    description: '`true` when this is the answer that was given before.',
    schema: { type: 'string', pattern: '^true$' },
    example: 'true',
  },
  'RateLimit-Policy': {
    description: "The account's limit: quota `q` per window of `w` seconds. Absent where the account has no limit.",
    schema: text,
    example: '"default";q=600;w=60',
  },
  RateLimit: {
    description: 'What is left: `r` requests, for `t` more seconds.',
    schema: text,
    example: '"default";r=597;t=42',
  },
  'RateLimit-Limit': { description: 'Requests per window.', schema: seconds, example: 600 },
  'RateLimit-Remaining': { description: 'Requests left in this window.', schema: seconds, example: 597 },
  'RateLimit-Reset': { description: 'Seconds until the window ends.', schema: seconds, example: 42 },
} as const satisfies Record<string, HeaderObject>;
export type HeaderName = keyof typeof HEADERS;

export const RATE_LIMIT_HEADERS = [
  'RateLimit-Policy',
  'RateLimit',
  'RateLimit-Limit',
  'RateLimit-Remaining',
  'RateLimit-Reset',
] as const satisfies readonly HeaderName[];

/** On every answer of a route that is deprecated (docs/api.md, "Deprecation"). */
export const DEPRECATION_HEADERS = {
  Deprecation: {
    description: 'Since when: `@` and epoch seconds.',
    schema: { type: 'string', pattern: '^@\\d+$' },
    required: true,
  },
  Sunset: { description: 'When the route stops to answer, as an HTTP date.', schema: text, required: true },
  Link: { description: 'What to use instead, with `rel="deprecation"`.', schema: text, required: true },
} as const satisfies Record<string, HeaderObject>;

/** The headers that an answer with this code always has, beside `X-Request-Id`. */
export const HEADERS_OF_CODE: Readonly<Partial<Record<ErrorCode, readonly HeaderName[]>>> = {
  unauthorized: ['WWW-Authenticate'],
  insufficient_scope: ['WWW-Authenticate'],
  method_not_allowed: ['Allow'],
  rate_limited: ['Retry-After'],
  not_ready: ['Retry-After'],
};
/** The headers that it may have. */
export const OPTIONAL_HEADERS_OF_CODE: Readonly<Partial<Record<ErrorCode, readonly HeaderName[]>>> = {
  orderbook_not_available: ['Retry-After'],
  conflict: ['Retry-After'],
};

/** Request headers that several routes take. */
export const REQUEST_HEADERS = {
  'X-Request-Id': {
    name: 'X-Request-Id',
    in: 'header',
    description: 'An id of yours for this request, which the answer and our logs then carry. An unfit one is replaced.',
    schema: { type: 'string' },
  },
  'If-None-Match': {
    name: 'If-None-Match',
    in: 'header',
    description: 'The `ETag` of an answer you have: 304 while it would be the same.',
    schema: { type: 'string' },
  },
  'Idempotency-Key': {
    name: 'Idempotency-Key',
    in: 'header',
    description:
      '1 to 255 printable ASCII characters of your choice. The same key with the same path and body gets the first answer again for ' +
      '24 hours and does nothing; with another it is 422; while the first is being answered it is 409.',
    schema: { type: 'string', minLength: 1, maxLength: 255, pattern: '^[\\x20-\\x7e]*$' },
  },
} as const satisfies Record<string, ParameterObject>;
export type RequestHeaderName = keyof typeof REQUEST_HEADERS;
