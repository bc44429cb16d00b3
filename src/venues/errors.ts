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
 * A call to a venue that failed as a whole. `retryAfterMs` is the pause that the venue requested, if any. `budget_unavailable` is no fault
 * of the venue: the ledger of its request budget did not answer. Neither is `process_late`: a deadline passed while this process ran late.
 */
export class VenueError extends OddswireError {
  readonly venue: string;
  readonly statusCode?: number;
  readonly retryAfterMs?: number;
  /** True for a `rate_limited` that is not about the number of requests, such as a node that is behind: the rate of the host stays. */
  readonly keepsRate: boolean;

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
