import { z } from 'zod';
import { SUBSCRIBABLE_EVENTS } from '../../../src/domain/webhooks/event.ts';
import { param, replacing } from '../../http/input.ts';
import { deliveryWithLogExample } from '../delivery.ts';
import { count, isoTime, opaqueId, storedEvent } from '../wire.ts';

/** An event with the state of its deliveries. */
export const accountEvent = z
  .object({
    id: opaqueId,
    type: z.enum(SUBSCRIBABLE_EVENTS),
    createdAt: isoTime,
    webhookId: opaqueId
      .optional()
      .meta({ description: 'The webhook that its alert names, while this webhook exists.' }),
    deliveries: count.meta({ description: 'Deliveries of this event, to existing and deleted webhooks.' }),
    undelivered: z.boolean().meta({ description: 'Whether none of its deliveries is pending or was successful.' }),
    payload: storedEvent,
  })
  .meta({ description: 'An event of the account, delivered or not.' });
export type AccountEventBody = z.output<typeof accountEvent>;

export const accountEventExample: AccountEventBody = {
  id: 'evt_01987f5e-6a3b-7c11-8b5e-0d2f6f1a9c01',
  type: 'price_alert',
  createdAt: '2026-01-02T03:04:05.678Z',
  deliveries: 0,
  undelivered: true,
  payload: deliveryWithLogExample.payload,
};

export const accountEventQuery = z.object({
  limit: param.limit,
  cursor: param.cursor,
  type: z.enum(SUBSCRIBABLE_EVENTS, `must be one of ${SUBSCRIBABLE_EVENTS.join(', ')}`).optional(),
  undelivered: z
    .enum(['true', 'false'], 'must be true or false')
    .transform((text) => text === 'true')
    .optional()
    .meta({
      description: 'Only events without a pending or successful delivery, or only the others.',
      override: replacing({ type: 'boolean', enum: undefined }),
    }),
});
