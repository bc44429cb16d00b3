import { type ApiJson, toJsonText } from '../values/api-json.ts';
import type { EventType } from './event.ts';

/** Which event a body tells of, and when it came about. */
export interface EventStamp {
  eventId: string;
  occurredAt: Date;
}

/** The body of a delivery (spec section 6.2). Numbers are written with their exact digits, so this is text, not an object. */
export function eventBody(type: EventType, { eventId, occurredAt }: EventStamp, data: ApiJson): string {
  return toJsonText({ id: eventId, type, timestamp: occurredAt.toISOString(), data }, 'number');
}
