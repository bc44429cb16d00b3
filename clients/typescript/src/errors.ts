import type { components } from './schema.ts';

/** The codes of the document, and any code of a later version. */
export type ErrorCode = components['schemas']['ErrorCode'] | 'unexpected_answer' | (string & Record<never, never>);
/** The fault in one part of the input. */
export type ErrorDetail = components['schemas']['ErrorDetail'];

/** An answer that reports an error. `code` is `unexpected_answer` for an answer of another server, such as a proxy. */
export class OddswireApiError extends Error {
  override readonly name = 'OddswireApiError';
  readonly status: number;
  readonly code: ErrorCode;
  /** One per fault in the input. */
  readonly details: readonly ErrorDetail[];
  /** The id of the request in the logs of the service. */
  readonly requestId: string | undefined;
  /** Seconds from `Retry-After`. */
  readonly retryAfterSeconds: number | undefined;

  constructor(fields: {
    status: number;
    code: ErrorCode;
    message: string;
    details?: readonly ErrorDetail[] | undefined;
    requestId?: string | undefined;
    retryAfterSeconds?: number | undefined;
  }) {
    super(fields.message);
    this.status = fields.status;
    this.code = fields.code;
    this.details = fields.details ?? [];
    this.requestId = fields.requestId;
    this.retryAfterSeconds = fields.retryAfterSeconds;
  }

  /** Whether the same request may succeed later. */
  get retryable(): boolean {
    // 409 with Retry-After: a request with the same Idempotency-Key is in flight.
    return this.status === 429 || this.status === 503 || (this.status === 409 && this.retryAfterSeconds !== undefined);
  }
}

/** A missing or truncated answer. `cause` is the error of `fetch`. */
export class OddswireConnectionError extends Error {
  override readonly name = 'OddswireConnectionError';
  readonly code: 'connection_failed' | 'timeout';
  readonly retryable = true;

  constructor(code: OddswireConnectionError['code'], message: string, cause?: unknown) {
    super(message, { cause });
    this.code = code;
  }
}

/** An invalid webhook request. The receiver should answer 400. */
export class OddswireWebhookError extends Error {
  override readonly name = 'OddswireWebhookError';
  readonly code: 'missing_header' | 'stale_timestamp' | 'bad_signature' | 'invalid_payload' | 'invalid_secret';
  readonly retryable = false;

  constructor(code: OddswireWebhookError['code'], message: string, cause?: unknown) {
    super(message, { cause });
    this.code = code;
  }
}

/** The error of an answer. `body` is its JSON, or its text when it is not JSON. */
export function apiErrorOf(response: Response, body: unknown, nowMs: number): OddswireApiError {
  const { status, headers } = response;
  const requestId = headers.get('x-request-id') ?? undefined;
  const retryAfterSeconds = secondsOf(headers.get('retry-after'), nowMs);
  if (!isFailure(body)) {
    const message = `the answer with status ${status} is not from oddswire`;
    return new OddswireApiError({ status, code: 'unexpected_answer', message, requestId, retryAfterSeconds });
  }
  const { code, message, details } = body.error;
  return new OddswireApiError({ status, code, message: `${code}: ${message}`, details, requestId, retryAfterSeconds });
}

interface Failure {
  error: { code: string; message: string; details?: ErrorDetail[] };
}

function isFailure(body: unknown): body is Failure {
  if (typeof body !== 'object' || body === null || !('error' in body)) return false;
  const { error } = body;
  return typeof error === 'object' && error !== null && 'code' in error && typeof error.code === 'string';
}

/** `Retry-After` in seconds. Proxies may send an HTTP date. */
function secondsOf(header: string | null, nowMs: number): number | undefined {
  if (header === null) return undefined;
  if (/^\d+$/.test(header)) return Number(header);
  const atMs = Date.parse(header);
  return Number.isNaN(atMs) ? undefined : Math.max(0, Math.ceil((atMs - nowMs) / 1_000));
}
