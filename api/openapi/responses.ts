import type { ZodOpenApiResponseObject } from 'zod-openapi';
import { ERROR_MEANINGS, errorBody } from '../contract/error.ts';
import { type ErrorCode, STATUS_OF } from '../errors.ts';
import type { RouteContract } from '../http/route.ts';
import { HEADERS, HEADERS_OF_CODE, type HeaderName, OPTIONAL_HEADERS_OF_CODE, RATE_LIMIT_HEADERS } from './headers.ts';

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
