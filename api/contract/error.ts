import { z } from 'zod';
import { ERROR_CODES, type ErrorCode } from '../errors.ts';
import { epochTime } from './wire.ts';

/** The meaning of each code, for the document. */
export const ERROR_MEANINGS: Readonly<Record<ErrorCode, string>> = {
  invalid_request: 'The input is wrong; `details` lists what.',
  invalid_json: 'The body is not JSON in UTF-8.',
  invalid_cursor: 'The cursor is altered, or belongs to another route or other filters.',
  unauthorized: 'The API key is missing, in the wrong header, unknown, expired or revoked.',
  insufficient_scope: 'The key lacks the scope of the route.',
  quota_exceeded: 'The account has as many of these as it may have.',
  cross_origin: 'A write to the operator pages from another page.',
  not_found: 'There is no such thing here.',
  venue_not_found: 'No venue of this name runs.',
  market_not_found: 'The market is unknown.',
  event_not_found: 'The event is unknown.',
  orderbook_not_available: 'No orderbook of this outcome is known. `Retry-After` where it may come.',
  no_data_yet: 'Nothing had been seen yet.',
  webhook_not_found: 'The account has no such webhook.',
  alert_not_found: 'The account has no such alert.',
  wallet_not_found: 'The account has no such wallet.',
  method_not_allowed: 'The path takes other methods: see `Allow`.',
  conflict: 'Not in the state that this takes, there already, or still being answered.',
  uri_too_long: 'The request line is too long.',
  payload_too_large: 'The body is larger than 64 KiB.',
  unsupported_media_type: 'The body is not uncompressed UTF-8 `application/json`.',
  idempotency_mismatch: 'The `Idempotency-Key` was used with another path or body.',
  rate_limited: 'Too many requests: come back after `Retry-After` seconds.',
  internal_error: 'Our fault.',
  not_ready: 'Something we need is out of reach: come back after `Retry-After` seconds.',
};

export const errorCode = z.enum(ERROR_CODES).meta({ description: 'Every code there is.' });
export const errorMeta = z.object({ request_id: z.string(), timestamp: epochTime });
export const errorDetail = z
  .object({
    path: z.string().meta({ description: 'A query parameter, a body field (`events.0`), or where else to look.' }),
    message: z.string(),
  })
  .meta({ description: 'What is wrong with one part of the input.' });

/** The body of a failure with one of these codes. */
export function errorBody(codes: readonly ErrorCode[]) {
  return z.object({
    success: z.literal(false),
    error: z.object({ code: z.enum(codes), message: z.string(), details: z.array(errorDetail).optional() }),
    meta: errorMeta,
  });
}
