import { OddswireError } from '../src/domain/values/errors.ts';

/** The fault in one part of the input. */
export interface ErrorDetail {
  /** A query parameter, a body field (`events.0`), or another part of the request. */
  path: string;
  message: string;
}

/** The HTTP status of each code. */
export const STATUS_OF = {
  invalid_request: 400,
  invalid_json: 400,
  invalid_cursor: 400,
  different_currencies: 400,
  unauthorized: 401,
  insufficient_scope: 403,
  quota_exceeded: 403,
  cross_origin: 403,
  not_found: 404,
  venue_not_found: 404,
  market_not_found: 404,
  event_not_found: 404,
  orderbook_not_available: 404,
  orderbook_not_supported: 404,
  no_data_yet: 404,
  webhook_not_found: 404,
  alert_not_found: 404,
  backtest_not_found: 404,
  backtest_needs_job: 409,
  wallet_not_found: 404,
  key_not_found: 404,
  archive_off: 404,
  archive_file_not_found: 404,
  method_not_allowed: 405,
  conflict: 409,
  payload_too_large: 413,
  uri_too_long: 414,
  unsupported_media_type: 415,
  range_not_satisfiable: 416,
  misdirected_request: 421,
  idempotency_mismatch: 422,
  upgrade_required: 426,
  rate_limited: 429,
  archive_quota_exceeded: 429,
  internal_error: 500,
  not_ready: 503,
  archive_unavailable: 503,
} as const;
export type ErrorCode = keyof typeof STATUS_OF;
export const ERROR_CODES = Object.keys(STATUS_OF) as ErrorCode[];

/** A failed answer. Any code below the envelope middleware may throw it; the middleware writes it. */
export class ApiError extends OddswireError {
  readonly status: number;
  readonly details: readonly ErrorDetail[];
  readonly headers: Readonly<Record<string, string>>;

  constructor(
    code: ErrorCode,
    message: string,
    options: { details?: readonly ErrorDetail[]; headers?: Readonly<Record<string, string>>; cause?: unknown } = {},
  ) {
    super(code, message, { retryable: STATUS_OF[code] >= 429, cause: options.cause });
    this.status = STATUS_OF[code];
    this.details = options.details ?? [];
    this.headers = options.headers ?? {};
  }
}

/** 400 `invalid_request` that lists all faults. */
export function invalidRequest(details: readonly ErrorDetail[]): ApiError {
  const [first] = details;
  const more = details.length > 1 ? ` (and ${details.length - 1} more)` : '';
  return new ApiError('invalid_request', first ? `${first.path}: ${first.message}${more}` : 'invalid request', {
    details,
  });
}

/** 503 `not_ready` with `Retry-After`. */
export function notReady(message: string, details: readonly ErrorDetail[] = [], cause?: unknown): ApiError {
  return new ApiError('not_ready', message, { details, headers: { 'Retry-After': '2' }, cause });
}

/** A subscription of another account gets the same answer. */
export function webhookNotFound(): ApiError {
  return new ApiError('webhook_not_found', 'no such webhook');
}
