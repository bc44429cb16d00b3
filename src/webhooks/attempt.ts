import type { AttemptErrorCode } from '../domain/webhooks/attempt-error.ts';
import type { EventType } from '../domain/webhooks/event.ts';
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
