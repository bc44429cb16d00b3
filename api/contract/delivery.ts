import { z } from 'zod';
import { JsonText } from '../../src/domain/values/api-json.ts';
import { DAY_MS } from '../../src/domain/values/durations.ts';
import { DELIVERY_STATUSES, EVENT_TYPES } from '../../src/domain/webhooks/event.ts';
import { invalidRequest } from '../errors.ts';
import { param } from '../http/input.ts';
import { count, isoTime, opaqueId, storableMs, storedEvent } from './wire.ts';

/** A delivery in lists. */
export const delivery = z
  .object({
    id: opaqueId,
    eventId: opaqueId,
    eventType: z.enum(EVENT_TYPES),
    status: z.enum(DELIVERY_STATUSES),
    attempts: count,
    createdAt: isoTime,
    nextAttemptAt: isoTime.optional().meta({
      description:
        'Present while the delivery is pending and does not wait for an earlier delivery of its key of order.',
    }),
    deliveredAt: isoTime.optional().meta({ description: 'When the receiver first accepted it.' }),
    lastStatusCode: z.int().optional().meta({ description: 'HTTP status of the latest attempt.' }),
    lastError: z.string().optional().meta({ description: 'Error code of the latest attempt.' }),
    skipped: z.literal(true).optional().meta({
      description: 'The webhook is ordered, and continued without this event after its last attempt.',
    }),
  })
  .meta({ description: 'One event on its way to one webhook.' });
export type DeliveryBody = z.output<typeof delivery>;

export const attempt = z.object({
  attempt: z.int().min(1),
  startedAt: isoTime,
  durationMs: count,
  outcome: z.enum(['delivered', 'failed']),
  statusCode: z.int().optional(),
  errorCode: z.string().optional(),
  responseBody: z.string().optional().meta({ description: 'The beginning of the response, at most 4 KiB.' }),
  responseEncoding: z.literal('base64').optional().meta({ description: 'Present when the response is not text.' }),
  responseHeaders: z
    .array(z.object({ name: z.string(), value: z.string() }))
    .optional()
    .meta({
      description:
        'The headers of the response, at most 4 KiB, names in lower case. Absent without a response, and for attempts of a release that did not ' +
        'store them. Addresses lack their query.',
    }),
  responseHeadersRemoved: z.int().min(1).optional().meta({
    description:
      'Headers that are not stored because they may hold a secret: cookies, credentials, challenges, signatures.',
  }),
  responseHeadersOmitted: z.int().min(1).optional().meta({ description: 'Headers behind the limit of 4 KiB.' }),
});
export type AttemptBody = z.output<typeof attempt>;

export const deliveryWithLog = delivery.extend({
  attemptLog: z.array(attempt).meta({ description: 'Oldest attempt first.' }),
  payload: storedEvent,
});
export type DeliveryWithLogBody = z.output<typeof deliveryWithLog>;

/** A delivery in the list of an account. */
export const accountDelivery = delivery.extend({
  webhookId: opaqueId,
  alertId: opaqueId.optional().meta({ description: 'The alert that fired the event. It may be deleted.' }),
  lastDurationMs: count
    .optional()
    .meta({ description: 'Milliseconds of the latest attempt, while its log is stored.' }),
});
export type AccountDeliveryBody = z.output<typeof accountDelivery>;

export const deliveryExample: DeliveryBody = {
  id: 'dlv_01987f5e-6a3b-7c11-8b5e-0d2f6f1a9c03',
  eventId: 'evt_01987f5e-6a3b-7c11-8b5e-0d2f6f1a9c01',
  eventType: 'price_alert',
  status: 'pending',
  attempts: 1,
  createdAt: '2026-01-02T03:04:05.678Z',
  nextAttemptAt: '2026-01-02T03:04:11.002Z',
  lastStatusCode: 502,
  lastError: 'http_status',
};
export const deliveryWithLogExample: DeliveryWithLogBody = {
  ...deliveryExample,
  attemptLog: [
    {
      attempt: 1,
      startedAt: '2026-01-02T03:04:05.702Z',
      durationMs: 84,
      outcome: 'failed',
      statusCode: 502,
      errorCode: 'http_status',
      responseBody: 'Bad Gateway',
      responseHeaders: [{ name: 'content-type', value: 'text/plain' }],
      responseHeadersRemoved: 1,
    },
  ],
  payload: new JsonText(
    '{"id":"evt_01987f5e-6a3b-7c11-8b5e-0d2f6f1a9c01","type":"price_alert","timestamp":"2026-01-02T03:04:05.678Z",' +
      '"data":{"alertId":"alert_01987f5e-6a3b-7c11-8b5e-0d2f6f1a9c01","tokenMint":"sample-outcome-yes",' +
      '"tokenSymbol":"Yes","condition":"above","targetPrice":0.6,"currentPrice":0.62}}',
  ),
};

export const accountDeliveryExample: AccountDeliveryBody = {
  ...deliveryExample,
  webhookId: 'wh_01987f5e-6a3b-7c11-8b5e-0d2f6f1a9c02',
  alertId: 'alert_01987f5e-6a3b-7c11-8b5e-0d2f6f1a9c01',
  lastDurationMs: 84,
};

const WRONG_MOMENT = 'must be an ISO 8601 time with an offset, such as 2026-01-31T12:00:00.000Z, or a date';
/** A time with an offset, or a date, which means its midnight in UTC. */
const moment = z
  .union([z.iso.datetime({ offset: true }), z.iso.date()], WRONG_MOMENT)
  .transform((text) => new Date(storableMs(text)))
  .meta({
    description: 'An ISO 8601 time with an offset, or a date: its midnight in UTC.',
    override: { anyOf: ['date-time', 'date'].map((format) => ({ type: 'string', format })) },
  });

export const deliveryQuery = z.object({
  limit: param.limit,
  cursor: param.cursor,
  status: z.enum(DELIVERY_STATUSES, `must be one of ${DELIVERY_STATUSES.join(', ')}`).optional(),
  eventType: z.enum(EVENT_TYPES, `must be one of ${EVENT_TYPES.join(', ')}`).optional(),
  since: moment.optional().meta({ description: 'Created at or after this time. A time with an offset, or a date.' }),
});
export const accountDeliveryQuery = deliveryQuery.extend({
  webhookId: opaqueId.optional().meta({ description: 'Only deliveries to this webhook.' }),
  eventId: opaqueId.optional().meta({ description: 'Only deliveries of this event.' }),
});
export const retryBody = z.strictObject({});
export const recoverBody = z.strictObject({ since: moment });
export const recoverExample: z.input<typeof recoverBody> = { since: '2026-01-01T00:00:00.000Z' };
export const recovered = z.object({ recovered: count.meta({ description: 'Deliveries that are due again.' }) });

/** The maximum age of a recovery. */
export const MAX_RECOVERY_DAYS = 14;

/** @throws ApiError `invalid_request` on `since` when it is too old or in the future. */
export function checkReach(since: Date, nowMs: number): void {
  const ageMs = nowMs - since.getTime();
  if (ageMs < 0) throw invalidRequest([{ path: 'since', message: 'must not be in the future' }]);
  if (ageMs > MAX_RECOVERY_DAYS * DAY_MS) {
    throw invalidRequest([{ path: 'since', message: `must not be more than ${MAX_RECOVERY_DAYS} days ago` }]);
  }
}
