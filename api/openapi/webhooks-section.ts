import type { ZodOpenApiPathItemObject, ZodOpenApiPathsObject } from 'zod-openapi';
import { EVENTS } from '../../src/domain/events/events.ts';
import { type ApiJson, toJsonText } from '../../src/domain/values/api-json.ts';
import { EVENT_TYPES, type EventType } from '../../src/domain/webhooks/event.ts';
import { EVENT_EXAMPLES, EVENT_SCHEMAS, PRICE_ALERT_EXAMPLES } from '../contract/events/event.ts';

/** The headers of a delivery. */
const DELIVERY_HEADERS: Readonly<Record<string, { description: string; pattern?: string; type?: 'integer' }>> = {
  'X-Webhook-Signature': {
    description:
      '`sha256=` and the lower-case hex HMAC-SHA256 of the raw body, keyed with the UTF-8 bytes of the whole secret.',
    pattern: '^sha256=[0-9a-f]{64}$',
  },
  'X-Webhook-Id': { description: 'The id of the webhook.' },
  'X-Webhook-Event': { description: 'The type of the event.' },
  'X-Webhook-Delivery': { description: 'The id of the delivery, identical for every attempt.' },
  'X-Webhook-Attempt': { description: 'The number of the attempt, from 1.', type: 'integer' },
  'webhook-id': { description: 'The id of the event, identical for every attempt and every webhook.' },
  'webhook-timestamp': { description: 'Epoch seconds of this attempt.', type: 'integer' },
  'webhook-signature': {
    description:
      'Standard Webhooks: `v1,` and the base64 HMAC-SHA256 of `<webhook-id>.<webhook-timestamp>.<body>`. The key is the decoded ' +
      'base64 after `whsec_`, or the UTF-8 bytes of any other secret. During a rotation the header has two signatures, separated ' +
      'by a space, the new one first.',
    pattern: '^v1,[A-Za-z0-9+/]{43}=( v1,[A-Za-z0-9+/]{43}=)*$',
  },
};

/** The `webhooks` section: the request that a receiver gets for each event. */
export function webhooksSection(): ZodOpenApiPathsObject {
  return Object.fromEntries(
    EVENT_TYPES.map((type): [string, ZodOpenApiPathItemObject] => [type, { post: receive(type) }]),
  );
}

/** The alerts of different conditions have different data. */
function examplesOf(type: EventType): { example: unknown } | { examples: Record<string, { value: unknown }> } {
  const shown = (event: ApiJson) => JSON.parse(toJsonText(event, 'number')) as unknown;
  if (type !== 'price_alert') return { example: shown(EVENT_EXAMPLES[type]) };
  const examples = Object.entries(PRICE_ALERT_EXAMPLES).map(([name, event]) => [name, { value: shown(event) }]);
  return { examples: Object.fromEntries(examples) as Record<string, { value: unknown }> };
}

function receive(type: EventType): NonNullable<ZodOpenApiPathItemObject['post']> {
  return {
    operationId: `receive_${type}`,
    tags: ['events'],
    summary: EVENTS[type].summary,
    // A delivery carries signatures instead of a credential.
    security: [],
    description: 'Verify the signature over the raw body, store `webhook-id`, and answer 2xx within 15 seconds.',
    parameters: Object.entries(DELIVERY_HEADERS).map(([name, { description, pattern, type = 'string' as const }]) => ({
      name,
      in: 'header',
      required: true,
      description,
      schema: { type, ...(pattern !== undefined && { pattern }) },
    })),
    requestBody: {
      required: true,
      content: {
        'application/json': {
          schema: EVENT_SCHEMAS[type],
          ...examplesOf(type),
        },
      },
    },
    responses: {
      '2XX': { description: 'The event is delivered. The body has no meaning.' },
      '410': { description: 'The delivery fails at once and oddswire pauses the webhook.' },
      '429': { description: 'oddswire retries, not before `Retry-After` within bounds.' },
      '503': { description: 'oddswire retries, not before `Retry-After` within bounds.' },
      default: { description: 'oddswire retries on the schedule. It does not follow redirects.' },
    },
  };
}
