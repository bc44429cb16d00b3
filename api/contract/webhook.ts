import { z } from 'zod';
import type { AddressRules } from '../../src/domain/webhooks/address-policy.ts';
import { tradeFilterProblem } from '../../src/domain/webhooks/broadcast.ts';
import { EVENT_TYPES, SUBSCRIBABLE_EVENTS } from '../../src/domain/webhooks/event.ts';
import { secretProblem } from '../../src/domain/webhooks/signature.ts';
import { MAX_URL_LENGTH, webhookUrlProblem } from '../../src/domain/webhooks/url.ts';
import { deleted } from './envelope.ts';
import { checkOptions, createOptions, shownOptions, updateOptions } from './webhook-options.ts';
import { count, isoTime, opaqueId } from './wire.ts';

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
