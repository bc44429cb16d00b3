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
