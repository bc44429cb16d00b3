import { z } from 'zod';
import { ERROR_CODES, type ErrorCode } from '../errors.ts';
import { epochTime } from './wire.ts';

/** The meaning of each code, for the document. */
export const ERROR_MEANINGS: Readonly<Record<ErrorCode, string>> = {
  invalid_request: 'The input is invalid; `details` lists each fault.',
  invalid_json: 'The body is not JSON in UTF-8.',
  invalid_cursor: 'The cursor was changed, or belongs to another route, account or release, or to other filters.',
  different_currencies: 'The venues of the two outcomes have prices in different currencies.',
  unauthorized: 'The API key is missing, in the wrong header, unknown, expired or revoked.',
  insufficient_scope: 'The key lacks the scope of the route.',
  quota_exceeded: 'The account has reached its quota.',
  cross_origin: 'Another origin sent a write to the operator pages.',
  not_found: 'The path or the resource does not exist.',
  venue_not_found: 'No enabled venue has this name.',
  market_not_found: 'The market is unknown.',
  event_not_found: 'The event is unknown.',
  orderbook_not_available: 'No orderbook of this outcome is stored. With `Retry-After` when a later read may find one.',
  orderbook_not_supported: 'The venue has no orderbooks, or none for this market.',
  no_data_yet: 'No data is known yet, or was known at `as_of`.',
  webhook_not_found: 'The account has no such webhook.',
  alert_not_found: 'The account has no such alert.',
  backtest_needs_job:
    'The backtest is too large for an answer at once, or another one of the account runs. Send it without `atOnce`.',
  backtest_not_found: 'The account has no such backtest, or it ended more than 24 hours ago.',
  wallet_not_found: 'The account has no such wallet.',
  key_not_found: 'The account has no such key.',
  archive_off: 'This server has no archive.',
  archive_file_not_found: 'The archive has no such file, or it was superseded and is removed.',
  method_not_allowed: 'The path does not accept this method; `Allow` lists the accepted methods.',
  conflict: 'The resource is in another state or exists already, or a request with the same key is in flight.',
  uri_too_long: 'The request line is too long.',
  payload_too_large: 'The body is larger than 64 KiB.',
  unsupported_media_type: 'The body is not uncompressed UTF-8 `application/json`.',
  range_not_satisfiable: 'The file has none of the bytes of `Range`; `Content-Range` states its size.',
  misdirected_request: 'The operator pages do not serve this host name.',
  idempotency_mismatch: 'The `Idempotency-Key` was used with another path or body.',
  upgrade_required: 'This address is a WebSocket.',
  rate_limited: 'Too many requests. Retry after `Retry-After` seconds.',
  archive_quota_exceeded:
    'The account has no bytes of the archive left for this UTC day. Retry after `Retry-After` seconds.',
  internal_error: 'The server failed.',
  not_ready: 'A dependency of the server is unavailable. Retry after `Retry-After` seconds.',
  archive_unavailable: 'This server cannot read the file as the catalog describes it; `details` has the cause.',
};

export const errorCode = z.enum(ERROR_CODES).meta({ description: 'All error codes.' });
export const errorDetail = z
  .object({
    path: z.string().meta({ description: 'A query parameter, a body field (`events.0`), or another part.' }),
    message: z.string(),
  })
  .meta({ description: 'The fault in one part of the input.' });

/** In `meta` of every answer to a request with parameters that the route ignores. */
export const warnings = z
  .array(errorDetail)
  .optional()
  .meta({ description: 'Parameters that the route ignores, and the nearest names. A later release answers 400.' });
export const errorMeta = z.object({ request_id: z.string(), timestamp: epochTime, warnings });

/** The schema of an error body with one of these codes. */
export function errorBody(codes: readonly ErrorCode[]) {
  return z.object({
    success: z.literal(false),
    error: z.object({ code: z.enum(codes), message: z.string(), details: z.array(errorDetail).optional() }),
    meta: errorMeta,
  });
}
