import type { AttemptErrorCode } from '../../src/domain/webhooks/event.ts';

/** Every reason of a failed attempt, in the order of docs/webhooks.md. */
export const ATTEMPT_ERROR_CODES = Object.keys({
  dns_error: 0,
  connect_timeout: 0,
  connection_refused: 0,
  connection_reset: 0,
  timeout: 0,
  tls_error: 0,
  header_overflow: 0,
  blocked_address: 0,
  invalid_url: 0,
  redirect: 0,
  http_status: 0,
  protocol_error: 0,
} satisfies Record<AttemptErrorCode, 0>) as AttemptErrorCode[];
