import { type ApiJson, toJsonText } from '../values/api-json.ts';
import type { EventType } from './event.ts';

/** The event of a body and its time of creation. */
export interface EventStamp {
  eventId: string;
  occurredAt: Date;
}

/** The body of a delivery (specification section 6.2), as text because numbers keep their exact digits. */
export function eventBody(type: EventType, { eventId, occurredAt }: EventStamp, data: ApiJson): string {
  return toJsonText({ id: eventId, type, timestamp: occurredAt.toISOString(), data }, 'number');
}

/** The data of an event about a webhook of the account. It never contains the URL, which may contain a secret. */
interface WebhookTrouble extends EventStamp {
  webhookId: string;
  /** The first failure since the last success. */
  failingSince: Date;
  /** Of the latest attempt. */
  lastError?: string;
  lastStatusCode?: number;
}

/** The body of `webhook_failing`: a delivery used up its attempts, for the first time since the last success. */
export function webhookFailingBody(event: WebhookTrouble): string {
  return eventBody('webhook_failing', event, troubleOf(event));
}

/** The body of `webhook_paused`: oddswire paused the webhook. */
export function webhookPausedBody(event: WebhookTrouble & { reason: string }): string {
  return eventBody('webhook_paused', event, { ...troubleOf(event), reason: event.reason });
}

function troubleOf({ webhookId, failingSince, lastError, lastStatusCode }: WebhookTrouble) {
  return { webhookId, failingSince: failingSince.toISOString(), lastError, lastStatusCode };
}
