import { OddswireError } from '../domain/values/errors.ts';
import type { AttemptErrorCode, EventType } from '../domain/webhooks/event.ts';
import type { ExtraHeaders } from '../domain/webhooks/headers.ts';
import type { ResponseHeaders } from '../domain/webhooks/response-headers.ts';

/** One attempt to make. */
export interface OutgoingDelivery {
  readonly url: string;
  /** Plain secrets, the current one first; the others are being rotated out and sign `webhook-signature` only. */
  readonly secrets: readonly [string, ...string[]];
  readonly webhookId: string;
  readonly eventId: string;
  readonly eventType: EventType;
  readonly deliveryId: string;
  /** 1 for the first attempt. */
  readonly attemptNumber: number;
  /** The stored text of the event: exactly these bytes (UTF-8) are signed and sent. */
  readonly body: string;
  /** Ids of skipped events of the same key of order, for `X-Webhook-Skipped`. */
  readonly skipped?: readonly string[];
  /** Additional headers of the webhook, which `headerProblems` accepted. */
  readonly headers?: ExtraHeaders;
  /** False: a message to a chat service, which gets neither signatures nor ids. Default true. */
  readonly isSigned?: boolean;
}

/** The receiver answered 2xx. */
interface DeliveredOutcome {
  readonly kind: 'delivered';
  readonly statusCode: number;
  readonly durationMs: number;
  /** The first 4 KiB of the response body, as bytes, because it may contain anything, U+0000 included. */
  readonly responseExcerpt: Uint8Array;
  readonly responseHeaders: ResponseHeaders;
}

/** Any other outcome. `statusCode`, `responseExcerpt` and `responseHeaders` are present when the receiver answered. */
export interface FailedOutcome {
  readonly kind: 'failed';
  readonly errorCode: AttemptErrorCode;
  readonly statusCode?: number;
  /** The wait from a `Retry-After` header, never negative. */
  readonly retryAfterSeconds?: number;
  readonly durationMs: number;
  readonly responseExcerpt?: Uint8Array;
  readonly responseHeaders?: ResponseHeaders;
}

export type AttemptOutcome = DeliveredOutcome | FailedOutcome;

/** The one deadline over name look-up, connection, headers and body has passed. */
export class DeadlineError extends OddswireError {
  constructor() {
    super('timeout', 'no complete answer before the deadline', { retryable: true });
  }
}

/** This process could not make the attempt (no file descriptors, sender closed). The attempt is not counted. */
export class SenderFaultError extends OddswireError {
  constructor(message: string, cause?: unknown) {
    super('sender_fault', message, { retryable: true, cause });
  }
}

const OUR_FAULTS = new Set([
  'EMFILE',
  'ENFILE',
  'ENOMEM',
  'ENOBUFS',
  'EADDRNOTAVAIL',
  'UND_ERR_CLOSED',
  'UND_ERR_DESTROYED',
  'proxy_fault',
]);
const PROGRAMMER_ERRORS = new Set([
  'UND_ERR_INVALID_ARG',
  'UND_ERR_NOT_SUPPORTED',
  'UND_ERR_REQ_CONTENT_LENGTH_MISMATCH',
]);

/** Codes of Node, undici and our own errors. Unreachable addresses and firewalls count as refused. */
const CODES: Readonly<Record<string, AttemptErrorCode>> = {
  blocked_address: 'blocked_address',
  dns_error: 'dns_error',
  timeout: 'timeout',
  UND_ERR_CONNECT_TIMEOUT: 'connect_timeout',
  ETIMEDOUT: 'connect_timeout',
  proxy_refused: 'connection_refused',
  proxy_timeout: 'connect_timeout',
  ECONNREFUSED: 'connection_refused',
  EHOSTUNREACH: 'connection_refused',
  EHOSTDOWN: 'connection_refused',
  ENETUNREACH: 'connection_refused',
  EACCES: 'connection_refused',
  EPERM: 'connection_refused',
  ECONNRESET: 'connection_reset',
  ECONNABORTED: 'connection_reset',
  EPIPE: 'connection_reset',
  UND_ERR_SOCKET: 'connection_reset',
  UND_ERR_HEADERS_OVERFLOW: 'header_overflow',
  HPE_HEADER_OVERFLOW: 'header_overflow',
  answer_too_long: 'header_overflow',
  EPROTO: 'tls_error',
};

/** OpenSSL's verification codes have no common prefix (node:tls, "X509 certificate error codes"). */
const TLS_CODE =
  /^(ERR_TLS_|ERR_SSL_|ERR_OSSL_|CERT_|CRL_|ERROR_IN_C|UNABLE_TO_|DEPTH_ZERO_|SELF_SIGNED_|INVALID_CA|INVALID_PURPOSE|PATH_LENGTH_|HOSTNAME_MISMATCH)/;

/**
 * The error code of an attempt that ended in `error`. Throws SenderFaultError when the fault is this machine's, and
 * the error itself when the caller's request was malformed. An unknown error is the receiver's `protocol_error`:
 * an attempt that is never counted could repeat without end.
 */
export function attemptErrorCode(error: Error): AttemptErrorCode {
  const code = errorCodeOf(error);
  if (PROGRAMMER_ERRORS.has(code)) throw error;
  if (OUR_FAULTS.has(code)) throw new SenderFaultError('the attempt could not be made on this machine', error);
  return CODES[code] ?? (TLS_CODE.test(code) ? 'tls_error' : 'protocol_error');
}

/** An AggregateError (every address failed) has the code of its first failure. */
function errorCodeOf(error: Error): string {
  return 'code' in error && typeof error.code === 'string' ? error.code : '';
}
