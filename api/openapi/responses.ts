import type { ZodOpenApiOperationObject, ZodOpenApiResponseObject } from 'zod-openapi';
import { ERROR_MEANINGS, errorBody } from '../contract/error.ts';
import { type ErrorCode, STATUS_OF } from '../errors.ts';
import { metaHeader, OMITTED } from '../http/csv-answer.ts';
import type { RouteContract } from '../http/route.ts';

type HeaderObject = Readonly<{
  description: string;
  schema: { type: 'string' | 'integer'; minimum?: number; pattern?: string; format?: string };
  required?: boolean;
  example?: string | number;
}>;
type ParameterObject = Exclude<NonNullable<ZodOpenApiOperationObject['parameters']>[number], { _zod: unknown }>;

const seconds = { type: 'integer', minimum: 0 } as const;
const text = { type: 'string' } as const;

/** Headers of answers. Every answer that lists a `required` header has it. */
export const HEADERS = {
  'X-Request-Id': {
    description: 'The id of the request: yours if valid, otherwise a new one. Also in `meta.request_id`.',
    schema: { type: 'string', pattern: '^[A-Za-z0-9._-]{1,128}$' },
    required: true,
    example: 'req_01987f5e-6a3b-7c11-8b5e-0d2f6f1a9c04',
  },
  ETag: {
    description: 'Weak, over data and the stable part of meta. Send it as `If-None-Match` to get 304.',
    schema: { type: 'string', pattern: '^W/"[^"]+"$' },
    required: true,
    example: 'W/"RqsXAXEQUtWkSMvI8nvn9Wh3cWk"',
  },
  'Cache-Control': {
    description: 'How long clients may cache the answer.',
    schema: text,
    required: true,
    example: 'private, max-age=1',
  },
  Vary: {
    description: 'Request headers that affect the answer.',
    schema: text,
    required: true,
    example: 'Accept-Encoding',
  },
  Location: {
    description: 'The path of the created resource.',
    schema: { type: 'string', pattern: '^/v1/' },
    required: true,
    example: '/v1/alerts/alert_01987f5e-6a3b-7c11-8b5e-0d2f6f1a9c01',
  },
  'WWW-Authenticate': {
    description: 'The authentication scheme of the route.',
    schema: text,
    required: true,
    example: 'Bearer realm="oddswire"',
  },
  Allow: { description: 'The methods that the path accepts.', schema: text, required: true, example: 'GET, HEAD' },
  'Retry-After': { description: 'Seconds to wait before a retry.', schema: seconds, example: 2 },
  'Content-Range': {
    description: 'The part of the file, or its size after 416.',
    schema: { type: 'string', pattern: '^bytes (\\d+-\\d+|\\*)/\\d+$' },
    required: true,
    example: 'bytes 0-1023/2345678',
  },
  'Idempotent-Replayed': {
    description: '`true` when this answer repeats an earlier one.',
    schema: { type: 'string', pattern: '^true$' },
    example: 'true',
  },
  'RateLimit-Policy': {
    description: "The account's limit: quota `q` per window of `w` seconds. Absent when the account has no limit.",
    schema: text,
    example: '"default";q=600;w=60',
  },
  RateLimit: {
    description: 'The remaining quota: `r` requests, for `t` more seconds.',
    schema: text,
    example: '"default";r=597;t=42',
  },
  'RateLimit-Limit': { description: 'Requests per window.', schema: seconds, example: 600 },
  'RateLimit-Remaining': { description: 'Requests left in this window.', schema: seconds, example: 597 },
  'RateLimit-Reset': { description: 'Seconds until the window ends.', schema: seconds, example: 42 },
} as const satisfies Record<string, HeaderObject>;
export type HeaderName = keyof typeof HEADERS;

const digest = { type: 'string', pattern: '^sha-256=:[A-Za-z0-9+/]{43}=:$' } as const;
const digestExample = 'sha-256=:DzxafpGy1IYPPFp+kbLUhg88Wn6RstSGDzxafpGy1IY=:';

/** Headers of a downloaded file. */
export const FILE_HEADERS = {
  ETag: {
    description: 'Strong: the sha256 of the file. Send it as `If-Range` to continue a download.',
    schema: { type: 'string', pattern: '^"[0-9a-f]{64}"$' },
    required: true,
  },
  'Accept-Ranges': { description: '`bytes`.', schema: text, required: true, example: 'bytes' },
  'Repr-Digest': {
    description: 'The sha256 of the whole file (RFC 9530).',
    schema: digest,
    required: true,
    example: digestExample,
  },
  'Content-Digest': {
    description: 'The sha256 of the body (RFC 9530).',
    schema: digest,
    required: true,
    example: digestExample,
  },
} as const satisfies Record<string, HeaderObject>;

export const RATE_LIMIT_HEADERS = [
  'RateLimit-Policy',
  'RateLimit',
  'RateLimit-Limit',
  'RateLimit-Remaining',
  'RateLimit-Reset',
] as const satisfies readonly HeaderName[];

/** Headers of every answer of a deprecated route (docs/api.md, "Deprecation"). */
export const DEPRECATION_HEADERS = {
  Deprecation: {
    description: 'Start of the deprecation: `@` and epoch seconds.',
    schema: { type: 'string', pattern: '^@\\d+$' },
    required: true,
  },
  Sunset: { description: 'Removal of the route, as an HTTP date.', schema: text, required: true },
  Link: { description: 'Documentation of the replacement, with `rel="deprecation"`.', schema: text, required: true },
} as const satisfies Record<string, HeaderObject>;

/** Headers of an answer to a request with parameters that no route knows (docs/api.md, "Unknown query parameters"). */
export const TOLERANCE_HEADERS = {
  Deprecation: {
    description: 'Only with `meta.warnings`. Start of the deprecation: `@` and epoch seconds.',
    schema: { type: 'string', pattern: '^@\\d+$' },
  },
  Link: { description: 'Only with `meta.warnings`. Its documentation, with `rel="deprecation"`.', schema: text },
} as const satisfies Record<string, HeaderObject>;

/** The headers of a list as CSV (docs/api.md, "CSV"). */
export function csvHeaders(metaFields: readonly string[], isTolerant: boolean): Record<string, HeaderObject> {
  const isPaged = metaFields.includes('next_cursor');
  const link = [
    ...(isPaged ? ['As CSV: the next page, with `rel="next"`.'] : []),
    ...(isTolerant ? [TOLERANCE_HEADERS.Link.description] : []),
  ];
  return {
    ...Object.fromEntries(
      metaFields.map((field): [string, HeaderObject] => [
        metaHeader(field),
        { description: `Only as CSV: \`meta.${field}\`. Absent when it is null or absent there.`, schema: text },
      ]),
    ),
    [OMITTED]: {
      description: 'Only as CSV: the fields of `meta` whose header would have more than 1,024 characters.',
      schema: text,
    },
    ...(link.length > 0 && { Link: { description: link.join(' '), schema: text } }),
  };
}

/** The headers that every answer with this code has, besides `X-Request-Id`. */
const HEADERS_OF_CODE: Readonly<Partial<Record<ErrorCode, readonly HeaderName[]>>> = {
  unauthorized: ['WWW-Authenticate'],
  insufficient_scope: ['WWW-Authenticate'],
  method_not_allowed: ['Allow'],
  rate_limited: ['Retry-After'],
  not_ready: ['Retry-After'],
  range_not_satisfiable: ['Content-Range'],
  archive_quota_exceeded: ['Retry-After'],
  archive_unavailable: ['Retry-After'],
};
/** The headers that an answer with this code may have. */
const OPTIONAL_HEADERS_OF_CODE: Readonly<Partial<Record<ErrorCode, readonly HeaderName[]>>> = {
  orderbook_not_available: ['Retry-After'],
  conflict: ['Retry-After'],
};

/** Request headers that several routes read. */
export const REQUEST_HEADERS = {
  'X-Request-Id': {
    name: 'X-Request-Id',
    in: 'header',
    description: 'Your id for this request. The answer and the logs contain it. An invalid id is replaced.',
    schema: { type: 'string' },
  },
  'If-None-Match': {
    name: 'If-None-Match',
    in: 'header',
    description: 'The `ETag` of an earlier answer. The server sends 304 while the answer has not changed.',
    schema: { type: 'string' },
  },
  Range: {
    name: 'Range',
    in: 'header',
    description: 'One part, such as `bytes=1000-` or `bytes=-8`. Several parts get the whole file.',
    schema: { type: 'string' },
  },
  'If-Range': {
    name: 'If-Range',
    in: 'header',
    description: 'The `ETag` of the first part. Another one gets the whole file.',
    schema: { type: 'string' },
  },
  'Idempotency-Key': {
    name: 'Idempotency-Key',
    in: 'header',
    description:
      '1 to 255 printable ASCII characters of your choice. For 24 hours the same key with the same path and body gets the first answer ' +
      'again, without a second write. Another path or body gets 422. While the first request is in flight the answer is 409.',
    schema: { type: 'string', minLength: 1, maxLength: 255, pattern: '^[\\x20-\\x7e]*$' },
  },
  'Last-Event-ID': {
    name: 'Last-Event-ID',
    in: 'header',
    description: 'The `id` of the last event that you have: the stream continues after it. It replaces `cursor`.',
    schema: { type: 'string' },
  },
} as const satisfies Record<string, ParameterObject>;
export type RequestHeaderName = keyof typeof REQUEST_HEADERS;

/** The codes of unknown ids in a path. */
const CODES_OF_PARAM: Readonly<Record<string, ErrorCode>> = {
  venue: 'venue_not_found',
  market_id: 'market_not_found',
  event_id: 'event_not_found',
  webhook_id: 'webhook_not_found',
  delivery_id: 'not_found',
  alert_id: 'alert_not_found',
  backtest_id: 'backtest_not_found',
  wallet_id: 'wallet_not_found',
  key_id: 'key_not_found',
  archive_file: 'archive_file_not_found',
  file: 'not_found',
};

/** All codes of a route: its own, and the codes of its path, key, query and body. */
function codesOf(contract: RouteContract): ErrorCode[] {
  const codes = new Set<ErrorCode>(['invalid_request', 'uri_too_long', 'internal_error', ...(contract.errors ?? [])]);
  for (const name of paramNames(contract.path)) {
    const code = CODES_OF_PARAM[name];
    if (code) codes.add(code);
  }
  if (contract.group)
    for (const code of ['unauthorized', 'insufficient_scope', 'rate_limited', 'not_ready'] as const) codes.add(code);
  if (contract.body)
    for (const code of ['invalid_json', 'payload_too_large', 'unsupported_media_type'] as const) codes.add(code);
  return (Object.keys(STATUS_OF) as ErrorCode[]).filter((code) => codes.has(code));
}

export function paramNames(path: string): string[] {
  return [...path.matchAll(/:(\w+)/g)].map(([, name = '']) => name);
}

/** Errors of the HTTP parser, before any route: `invalid_request`, then the server closes the connection. */
const PARSER_ERRORS = {
  request_timeout: { status: 408, description: '`invalid_request`: the request was too slow.' },
  headers_too_large: { status: 431, description: '`invalid_request`: the headers are too large.' },
} as const;

/** References to the failures of a route, by status. Adds the targets to `shared`. */
export function failures(
  contract: RouteContract,
  shared: Map<string, ZodOpenApiResponseObject>,
): Record<`${number}`, { $ref: string }> {
  const all = codesOf(contract);
  const statuses = [...new Set(all.map((code) => STATUS_OF[code]))];
  const ofParser = Object.entries(PARSER_ERRORS).map(([name, { status, description }]) => {
    shared.set(name, { ...failure(['invalid_request']), description });
    return [status, { $ref: `#/components/responses/${name}` }];
  });
  const ofRoute = statuses.map((status) => {
    const codes = all.filter((code) => STATUS_OF[code] === status);
    const isCounted = contract.group !== undefined && status !== STATUS_OF.unauthorized;
    const name = codes.join('.') + (contract.group ? '' : '.public');
    if (!shared.has(name)) shared.set(name, failure(codes, isCounted));
    return [status, { $ref: `#/components/responses/${name}` }];
  });
  return Object.fromEntries([...ofRoute, ...ofParser]);
}

/** A failure with one of these codes. `isCounted`: whether it may have the rate limit headers. */
export function failure(codes: readonly ErrorCode[], isCounted = false): ZodOpenApiResponseObject {
  const [first] = codes;
  const always = new Set<HeaderName>(first ? (HEADERS_OF_CODE[first] ?? []) : []);
  const sometimes = new Set<HeaderName>(codes.flatMap((code) => OPTIONAL_HEADERS_OF_CODE[code] ?? []));
  for (const code of codes) {
    const names = HEADERS_OF_CODE[code] ?? [];
    for (const name of always) if (!names.includes(name)) always.delete(name);
    for (const name of names) sometimes.add(name);
  }
  for (const name of always) sometimes.delete(name);
  return {
    description: codes.map((code) => `\`${code}\`: ${ERROR_MEANINGS[code]}`).join(' '),
    headers: {
      ...headerRefs('X-Request-Id'),
      ...Object.fromEntries([...always].map((name) => [name, header(name, true)])),
      ...Object.fromEntries([...sometimes].map((name) => [name, header(name, false)])),
      ...(isCounted && headerRefs(...RATE_LIMIT_HEADERS)),
    },
    content: {
      'application/json': {
        schema: errorBody(codes),
        examples: Object.fromEntries(codes.map((code) => [code, { value: errorExample(code) }])),
      },
    },
  };
}

function errorExample(code: ErrorCode) {
  const details =
    code === 'invalid_request' ? [{ path: 'limit', message: 'must be a whole number from 1 to 1000' }] : undefined;
  return {
    success: false,
    error: {
      code,
      message: details ? 'limit: must be a whole number from 1 to 1000' : ERROR_MEANINGS[code],
      ...(details && { details }),
    },
    meta: { request_id: HEADERS['X-Request-Id'].example, timestamp: 1767323045 },
  };
}

/** A reference if `required` agrees with the shared header, otherwise a copy. */
function header(name: HeaderName, required: boolean) {
  return 'required' in HEADERS[name] === required
    ? { $ref: `#/components/headers/${name}` }
    : { ...HEADERS[name], required };
}

export function headerRefs(...names: readonly HeaderName[]): Record<string, { $ref: string }> {
  return Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` }]));
}
