import { z } from 'zod';
import { CHAT_FORMATS, chatUrlProblem, WEBHOOK_FORMATS } from '../../src/domain/chat/chat-url.ts';
import type { AddressRules } from '../../src/domain/webhooks/address-policy.ts';
import { tradeFilterProblem } from '../../src/domain/webhooks/broadcast.ts';
import { EVENT_TYPES, SUBSCRIBABLE_EVENTS } from '../../src/domain/webhooks/event.ts';
import { FIELD_PATTERN, MAX_CONDITIONS, MAX_LISTED, MAX_TEXT, OPERATORS } from '../../src/domain/webhooks/filter.ts';
import {
  HEADER_PATTERNS,
  headerProblems,
  MAX_HEADER_NAME,
  MAX_HEADER_VALUE,
  MAX_HEADERS,
} from '../../src/domain/webhooks/headers.ts';
import { ORDER_BY } from '../../src/domain/webhooks/order.ts';
import { secretProblem } from '../../src/domain/webhooks/signature.ts';
import { MAX_URL_LENGTH, webhookUrlProblem } from '../../src/domain/webhooks/url.ts';
import { count, deleted, isoTime, opaqueId } from './wire.ts';

const text = z.string().max(MAX_TEXT, `must have at most ${MAX_TEXT} characters`);
const value = z.union(
  [text, z.number(), z.boolean()],
  `must be a text of at most ${MAX_TEXT} characters, a number, true or false`,
);
const bound = z.number('must be a number of at most 15 digits').optional();

const condition = z
  .strictObject({
    field: z
      .string('must be a string')
      .regex(new RegExp(FIELD_PATTERN), 'must be "type", or a path such as "data.venue"')
      .meta({ description: '`type`, or a path of at most four names below `data`.' }),
    equal: value.optional().meta({ description: 'The value is the same.' }),
    in: z
      .array(value, 'must be an array')
      .min(1, 'must have at least one value')
      .max(MAX_LISTED, `must have at most ${MAX_LISTED} values`)
      .optional()
      .meta({ description: 'The value is one of these.' }),
    above: bound.meta({ description: 'The value is a number of at least this.' }),
    below: bound.meta({ description: 'The value is a number of at most this.' }),
    exists: z.boolean('must be true or false').optional().meta({ description: 'Whether the field is present.' }),
  })
  .superRefine((given, context) => {
    const operators = OPERATORS.filter((operator) => given[operator] !== undefined);
    if (operators.length !== 1) {
      context.addIssue({ code: 'custom', message: `must have exactly one of ${OPERATORS.join(', ')}` });
    }
  })
  .meta({ description: 'A field and exactly one operator.', override: { minProperties: 2, maxProperties: 2 } });

const filter = z
  .array(condition, 'must be an array')
  .min(1, 'must have at least one condition')
  .max(MAX_CONDITIONS, `must have at most ${MAX_CONDITIONS} conditions`)
  .meta({ description: 'Only events that match every condition make a delivery.' });

const headers = z
  .record(z.string(), z.string('must be a string'), 'must be an object of names and values')
  .superRefine((given, context) => {
    for (const { name, message } of headerProblems(given)) {
      context.addIssue({ code: 'custom', path: name === undefined ? [] : [name], message });
    }
  })
  .meta({
    description: 'Headers of every request, beside those of oddswire. No answer shows their values.',
    override: {
      maxProperties: MAX_HEADERS,
      propertyNames: { type: 'string', maxLength: MAX_HEADER_NAME, pattern: HEADER_PATTERNS.name },
      additionalProperties: { type: 'string', maxLength: MAX_HEADER_VALUE, pattern: HEADER_PATTERNS.value },
    },
  });

const LIMITS = { min: 0.1, max: 1_000 };
const OUT_OF_LIMITS = `must be a number from ${LIMITS.min} to ${LIMITS.max}`;
const maxPerSecond = z
  .number(OUT_OF_LIMITS)
  .min(LIMITS.min, OUT_OF_LIMITS)
  .max(LIMITS.max, OUT_OF_LIMITS)
  .meta({ description: 'Attempts per second, over all deliverers.' });

const description = z
  .string('must be a string')
  .max(500, 'must have at most 500 characters')
  .meta({ description: 'A note of the owner.' });

const format = z
  .enum(WEBHOOK_FORMATS, `must be one of ${WEBHOOK_FORMATS.join(', ')}`)
  .meta({ description: 'The event with signatures (`json`), or a message of a chat service. Default: `json`.' });

/** The options in an answer. */
const shownOptions = {
  ordered: z.literal(true).optional().meta({ description: 'Events of one key arrive in order.' }),
  orderBy: z.enum(ORDER_BY).optional().meta({ description: 'The key of the order.' }),
  filter: filter.optional(),
  maxPerSecond: maxPerSecond.optional(),
  headerNames: z.array(z.string()).optional().meta({ description: 'The names of the additional headers.' }),
  description: description.optional(),
  format: z.enum(CHAT_FORMATS).optional().meta({ description: 'The chat service. `url` then shows its host only.' }),
};

/** The options of a body; docs/webhook-options.md describes them. */
const options = {
  ordered: z
    .boolean('must be true or false')
    .optional()
    .meta({ description: 'Whether events of one key arrive one after another.' }),
  orderBy: z
    .enum(ORDER_BY, `must be one of ${ORDER_BY.join(', ')}`)
    .optional()
    .meta({ description: 'The key of the order, with `ordered: true`. Default: `market`.' }),
};
const createOptions = {
  ...options,
  filter: filter.optional(),
  maxPerSecond: maxPerSecond.optional(),
  headers: headers.optional(),
  description: description.optional(),
  format: format.optional(),
};
/** Null removes an option. */
const updateOptions = {
  ...options,
  filter: filter.nullable().optional(),
  maxPerSecond: maxPerSecond.nullable().optional(),
  headers: headers.nullable().optional(),
  description: description.nullable().optional(),
  format: format.optional(),
};

/** The options of a body, after its check. */
export type OptionsBody = z.output<z.ZodObject<typeof updateOptions>> & { url?: string | undefined };

/** Rules over several options. */
function checkOptions({ ordered, orderBy, format, url }: OptionsBody, context: z.RefinementCtx): void {
  if (orderBy !== undefined && ordered !== true) {
    context.addIssue({ code: 'custom', path: ['orderBy'], message: 'needs "ordered": true' });
  }
  if (format === undefined) return;
  // The URL of another service would be of no use, and one of a chat service is hidden.
  const problem = url === undefined ? 'is needed for another format' : format !== 'json' && chatUrlProblem(format, url);
  if (problem) context.addIssue({ code: 'custom', path: ['url'], message: problem });
}

const STATUSES = ['active', 'paused'] as const;
const subscribed = z.array(z.enum(SUBSCRIBABLE_EVENTS));

/** The fields of a subscription in lists: the four of the specification. */
export const webhookItem = z.object({
  id: opaqueId,
  url: z.string(),
  events: subscribed,
  status: z.enum(STATUSES),
});
export const webhook = webhookItem.extend({
  createdAt: isoTime,
  pauseReason: z.string().optional().meta({ description: 'Why oddswire paused the webhook: `failing` or `gone`.' }),
  ...shownOptions,
});
/** The only answers that hold a secret. */
export const webhookWithSecret = webhook.extend({
  secret: z.string().meta({ description: 'Signs deliveries. Shown in this answer only.' }),
});
export const rotatedWebhook = webhookWithSecret.extend({
  previousSecretUntil: isoTime
    .optional()
    .meta({ description: 'Until this time `webhook-signature` also carries a signature with the previous secret.' }),
});
type WebhookItem = z.output<typeof webhookItem>;
export type WebhookBody = z.output<typeof webhook>;

export const webhookItemExample: WebhookItem = {
  id: 'wh_01987f5e-6a3b-7c11-8b5e-0d2f6f1a9c02',
  url: 'https://hooks.example.com/oddswire',
  events: ['price_alert', 'transaction'],
  status: 'active',
};
export const webhookExample: WebhookBody = { ...webhookItemExample, createdAt: '2026-01-02T03:04:05.678Z' };
export const webhookWithSecretExample: z.output<typeof webhookWithSecret> = {
  ...webhookItemExample,
  secret: 'whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=',
  createdAt: '2026-01-02T03:04:05.678Z',
};
export const rotatedWebhookExample: z.output<typeof rotatedWebhook> = {
  ...webhookWithSecretExample,
  previousSecretUntil: '2026-01-03T03:04:05.678Z',
};

export const deletedWebhook = deleted.extend({
  alertsChanged: count.meta({
    description: 'Active alerts that named this webhook. They go to the default webhook, as without `webhookId`.',
  }),
});

const events = z
  .array(z.enum(SUBSCRIBABLE_EVENTS, `must be one of ${SUBSCRIBABLE_EVENTS.join(', ')}`), 'must be an array')
  .min(1, 'must name at least one event')
  .max(20, 'must name at most 20 events')
  .transform((names) => [...new Set(names)])
  .meta({
    description:
      'The events to receive. Duplicates count once. `trade` needs a `filter` on `data.marketId`, `data.eventId` or `data.notional`.',
  });
const secret = z
  .string('must be a string')
  .superRefine((text, context) => {
    const problem = secretProblem(text);
    if (problem !== null) context.addIssue({ code: 'custom', message: problem });
  })
  .meta({
    description:
      '16 to 256 printable ASCII characters; `whsec_` only at the beginning, and after it the canonical base64 of 24 to 64 bytes. oddswire creates one when absent.',
    override: { minLength: 16, maxLength: 256, pattern: '^[\\x20-\\x7e]*$' },
  });
const status = z.enum(STATUSES, 'must be active or paused');

/** Bodies that name a receiver. */
export function webhookBodies(rules: AddressRules) {
  const url = z
    .string('must be a string')
    .superRefine((text, context) => {
      const problem = webhookUrlProblem(text, rules);
      if (problem !== null) context.addIssue({ code: 'custom', message: problem });
    })
    .meta({
      description: 'https, port 443 or 1024 and up, no user name, not a private address in any spelling.',
      override: {
        maxLength: MAX_URL_LENGTH,
        pattern: '^[Hh][Tt][Tt][Pp][Ss]://(?!/)[^\\s\\\\\\x00-\\x1f\\x7f-\\x9f]+$',
      },
    });
  return {
    create: z
      .strictObject({ url, events, secret: secret.optional(), ...createOptions })
      .superRefine(checkOptions)
      .superRefine((body, context) => {
        const problem = tradeFilterProblem(body.events, body.filter ?? null);
        if (problem !== null) context.addIssue({ code: 'custom', path: ['filter'], message: problem });
      }),
    update: z
      .strictObject({ url: url.optional(), events: events.optional(), status: status.optional(), ...updateOptions })
      .superRefine(checkOptions),
  };
}
export const createWebhookExample: z.input<ReturnType<typeof webhookBodies>['create']> = {
  url: 'https://hooks.example.com/oddswire',
  events: ['price_alert', 'transaction'],
};

export const rotateBody = z.strictObject({ secret: secret.optional() });
export const testBody = z.strictObject({
  eventType: z
    .enum(EVENT_TYPES, `must be one of ${EVENT_TYPES.join(', ')}`)
    .default('test')
    .meta({ description: '`test`, or an event type, of which oddswire sends a sample.' }),
});
