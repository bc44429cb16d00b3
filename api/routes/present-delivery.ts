import { JsonText } from '../../src/domain/values/api-json.ts';
import { isStorableText } from '../../src/domain/values/text.ts';
import { EXCERPT_BYTES, type ResponseHeaders } from '../../src/domain/webhooks/response-headers.ts';
import type { Delivery, DeliveryWithLog, LoggedAttempt } from '../../src/store/deliveries/reads.ts';
import type { FoundDelivery } from '../../src/store/deliveries/search.ts';
import type { DeliveryItem } from '../../src/store/deliveries/test-events.ts';
import type { AccountDeliveryBody, AttemptBody, DeliveryBody, DeliveryWithLogBody } from '../contract/delivery.ts';

type Presentable = DeliveryItem & Partial<Pick<Delivery, 'deliveredAt' | 'lastStatusCode' | 'lastError' | 'isSkipped'>>;

/** A delivery in lists. */
export function presentDelivery(delivery: Presentable): DeliveryBody {
  return {
    id: delivery.id,
    eventId: delivery.eventId,
    eventType: delivery.eventType,
    status: delivery.status,
    attempts: delivery.attempts,
    createdAt: delivery.createdAt.toISOString(),
    nextAttemptAt: delivery.status === 'pending' ? delivery.nextAttemptAt?.toISOString() : undefined,
    deliveredAt: delivery.deliveredAt?.toISOString(),
    lastStatusCode: delivery.lastStatusCode ?? undefined,
    lastError: delivery.lastError ?? undefined,
    skipped: delivery.isSkipped || undefined,
  };
}

/** A delivery in the list of an account. */
export function presentAccountDelivery(delivery: FoundDelivery): AccountDeliveryBody {
  return {
    ...presentDelivery(delivery),
    webhookId: delivery.webhookId,
    alertId: delivery.alertId ?? undefined,
    lastDurationMs: delivery.lastDurationMs ?? undefined,
  };
}

/** One delivery with its attempts and its payload. The payload keeps the digits of the sent body. */
export function presentDeliveryWithLog(delivery: DeliveryWithLog): DeliveryWithLogBody {
  return {
    ...presentDelivery(delivery),
    attemptLog: delivery.attemptLog.map(presentAttempt),
    payload: new JsonText(delivery.body),
  };
}

function presentAttempt(attempt: LoggedAttempt): AttemptBody {
  return {
    attempt: attempt.attempt,
    startedAt: attempt.startedAt.toISOString(),
    durationMs: attempt.durationMs,
    outcome: attempt.outcome,
    statusCode: attempt.statusCode ?? undefined,
    errorCode: attempt.errorCode ?? undefined,
    ...(attempt.responseExcerpt !== null && presentExcerpt(attempt.responseExcerpt)),
    ...(attempt.responseHeaders !== null && presentHeaders(attempt.responseHeaders)),
  };
}

function presentHeaders({ headers, removed, omitted }: ResponseHeaders) {
  return {
    responseHeaders: headers.map(([name, value]) => ({ name, value })),
    responseHeadersRemoved: removed || undefined,
    responseHeadersOmitted: omitted || undefined,
  };
}

/** Text if the bytes are UTF-8 text, otherwise base64 with `responseEncoding`. */
function presentExcerpt(bytes: Uint8Array): { responseBody: string; responseEncoding?: 'base64' } {
  const text = utf8Text(bytes);
  if (text !== undefined && isStorableText(text)) return { responseBody: text };
  return { responseBody: Buffer.from(bytes).toString('base64'), responseEncoding: 'base64' };
}

function utf8Text(bytes: Uint8Array): string | undefined {
  try {
    // `stream` accepts a truncated excerpt that ends inside a character.
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes, {
      stream: bytes.length >= EXCERPT_BYTES,
    });
  } catch (error) {
    if (error instanceof TypeError) return undefined;
    throw error;
  }
}
