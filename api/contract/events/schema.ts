import { z } from 'zod';
import type { EventType } from '../../../src/domain/webhooks/event.ts';
import { isoTime, opaqueId } from '../wire.ts';

/** The id and the time of the examples of events. */
export const EVENT_ID = 'evt_01987f5e-6a3b-7c11-8b5e-0d2f6f1a9c01';
export const EVENT_AT = '2026-01-02T03:04:05.678Z';

/** The body of an event with this data. */
export function event<Type extends EventType, Data extends z.ZodType>(type: Type, data: Data) {
  return z.object({
    id: opaqueId.meta({ description: 'Identical for every attempt and every webhook.' }),
    type: z.literal(type),
    timestamp: isoTime.meta({ description: 'Time of the event: ISO 8601, UTC, milliseconds.' }),
    data,
  });
}
