import { z } from 'zod';
import { ALERT_CONDITIONS, ALERT_STATUSES } from '../../src/domain/alerts/alert.ts';
import { numberField } from '../../src/domain/values/api-json.ts';
import { compareDecimals, decimal, ZERO } from '../../src/domain/values/decimal.ts';
import { isoTime, numberValue, opaqueId } from './wire.ts';

/** A price alert (specification section 2.9). */
export const alert = z
  .object({
    id: opaqueId,
    tokenMint: z.string().meta({ description: 'An `outcome_id`, or any token.' }),
    condition: z.enum(ALERT_CONDITIONS).meta({ description: 'Touching the target counts.' }),
    price: numberValue.meta({ description: 'The target, in `currency`.' }),
    status: z.enum(ALERT_STATUSES),
    webhookId: opaqueId.optional().meta({ description: 'Absent: the default webhook when the alert fires.' }),
    createdAt: isoTime,
    triggeredAt: isoTime.optional(),
    eventId: opaqueId.optional().meta({ description: 'The event of the alert, after it fired.' }),
    tracked: z.boolean().meta({ description: 'Whether the token is an outcome or has a price.' }),
    currency: z.string().meta({ description: "The token's own currency: USD, or MANA on Manifold." }),
  })
  .meta({ description: 'A price alert. It fires once, at the first observation that meets its condition.' });
export type AlertBody = z.output<typeof alert>;

export const alertExample: AlertBody = {
  id: 'alert_01987f5e-6a3b-7c11-8b5e-0d2f6f1a9c01',
  tokenMint: '71321045679252212594626385532706912750332728571942532289631379312455583992563',
  condition: 'above',
  price: numberField('0.6'),
  status: 'active',
  createdAt: '2026-01-02T03:04:05.678Z',
  tracked: true,
  currency: 'USD',
};

export const createAlertBody = z.strictObject({
  tokenMint: z
    .string('must be a string')
    .min(1, 'must not be empty')
    .max(256, 'must have at most 256 characters')
    .regex(/^[^\s\p{Cc}]*$/u, 'must not contain spaces or control characters')
    .meta({ description: 'An `outcome_id`, or any token.' }),
  condition: z.enum(ALERT_CONDITIONS, 'must be above or below'),
  price: z
    .number('must be a number')
    .transform((price) => decimal(price))
    .refine((price) => compareDecimals(price, ZERO) > 0, 'must be greater than 0')
    .meta({ description: "The target, in the token's currency.", override: { type: 'number', exclusiveMinimum: 0 } }),
  webhookId: z
    .string('must be a string')
    .min(1, 'must not be empty')
    .max(256, 'must have at most 256 characters')
    .optional()
    .meta({
      description: "One of the account's webhooks that lists `price_alert`. Default: the oldest active one of these.",
    }),
});
export const createAlertExample: z.input<typeof createAlertBody> = {
  tokenMint: '71321045679252212594626385532706912750332728571942532289631379312455583992563',
  condition: 'above',
  price: 0.6,
};
