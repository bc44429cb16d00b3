import { OddswireError } from '../domain/values/errors.ts';

export type VenueErrorCode =
  | 'timeout'
  | 'process_late'
  | 'network'
  | 'http_status'
  | 'rate_limited'
  | 'budget_unavailable'
  | 'invalid_payload'
  | 'circuit_open'
  | 'response_too_large'
  | 'aborted';

/**
 * A call to a venue that failed as a whole. `retryAfterMs` is the pause that the venue requested, if any. Two codes do not count against
 * the venue: with `budget_unavailable` the ledger of its request budget did not answer, and with `process_late` this process ran late.
 */
export class VenueError extends OddswireError {
  readonly venue: string;
  readonly statusCode?: number;
  readonly retryAfterMs?: number;
  /** True for a `rate_limited` that is not about the number of requests, such as a node that is behind: the rate of the host stays. */
  readonly keepsRate: boolean;
  /** The request that failed, such as `GET /markets`: without its query and the base of its address, which may contain keys. */
  request?: string;

  constructor(
    venue: string,
    code: VenueErrorCode,
    message: string,
    options: {
      retryable: boolean;
      statusCode?: number;
      retryAfterMs?: number;
      keepsRate?: boolean;
      cause?: unknown;
    },
  ) {
    super(code, message, { retryable: options.retryable, cause: options.cause });
    this.venue = venue;
    this.keepsRate = options.keepsRate ?? false;
    if (options.statusCode !== undefined) this.statusCode = options.statusCode;
    if (options.retryAfterMs !== undefined) this.retryAfterMs = options.retryAfterMs;
  }
}

/** The text of a failure, with the request that failed. */
export function failureText(error: Error): string {
  return error instanceof VenueError && error.request !== undefined
    ? `${error.message} on ${error.request}`
    : error.message;
}

/** Failures that do not depend on the request: other requests fail too. */
const OF_THE_HOST: ReadonlySet<string> = new Set([
  'aborted',
  'process_late',
  'rate_limited',
  'budget_unavailable',
  'circuit_open',
] satisfies VenueErrorCode[]);
/** Failures of an answer, unlike those of a connection or a deadline. */
const OF_AN_ANSWER: ReadonlySet<string> = new Set([
  'http_status',
  'invalid_payload',
  'response_too_large',
] satisfies VenueErrorCode[]);
/** The venue or a proxy refuses this client for every request. */
const REFUSES_CLIENT: ReadonlySet<number> = new Set([401, 407]);

/** Whether the host takes no request at present, or this process is too late to read answers, so that no other request has a chance. */
export function isOfHost({ code }: VenueError): boolean {
  return OF_THE_HOST.has(code);
}

/** Whether one id of a request may have caused its failure. */
export function mayBeOfMember({ code, statusCode = 0 }: VenueError): boolean {
  return OF_AN_ANSWER.has(code) && !REFUSES_CLIENT.has(statusCode);
}

/** Whether a call failed because the venue answered with one of these statuses. */
export function isHttpStatus(error: unknown, statusCodes: readonly number[]): boolean {
  return error instanceof VenueError && error.code === 'http_status' && statusCodes.includes(error.statusCode ?? 0);
}
