import { z } from 'zod';
import { ALERT_CONDITIONS, ALERT_STATUSES } from '../../src/domain/alerts/alert.ts';
import { numberField } from '../../src/domain/values/api-json.ts';
import { compareDecimals, MAX_DIGITS, parseDecimal, ZERO } from '../../src/domain/values/decimal.ts';
import { LongNumber } from '../../src/domain/values/exact-json.ts';
import { listParam, param } from '../http/input.ts';
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
    expiredAt: isoTime.optional().meta({ description: 'When the alert expired.' }),
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

const TOO_LONG = `must have at most ${MAX_DIGITS} characters when written without an exponent`;

export const createAlertBody = z.strictObject({
  tokenMint: z
    .string('must be a string')
    .min(1, 'must not be empty')
    .max(256, 'must have at most 256 characters')
    .regex(/^[^\s\p{Cc}]*$/u, 'must not contain spaces or control characters')
    .meta({
      description: 'An `outcome_id`, or any token.',
      // Not every reader of the document knows \p{Cc}.
      override: { pattern: '^[^\\s\\x00-\\x1f\\x7f-\\x9f]*$' },
    }),
  condition: z.enum(ALERT_CONDITIONS, 'must be above or below'),
  price: z
    .custom<number | LongNumber>(
      (price) => typeof price === 'number' || price instanceof LongNumber,
      'must be a number',
    )
    .meta({ override: { type: 'number' } })
    .transform((price, context) => {
      const target = parseDecimal(price instanceof LongNumber ? price.text : price);
      if (target !== null && compareDecimals(target, ZERO) > 0) return target;
      context.addIssue({ code: 'custom', message: target === null ? TOO_LONG : 'must be greater than 0' });
      return z.NEVER;
    })
    .meta({
      description: `The target, in the token's currency, kept digit for digit. At most ${MAX_DIGITS} characters without an exponent; at most 1 for an outcome of a market.`,
      override: { type: 'number', exclusiveMinimum: 0 },
    }),
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

/** The filters of the list. `venues` are the venues with markets. */
export function alertListQuery(venues: readonly string[]) {
  const id = z.string().min(1, 'must not be empty').max(256, 'must have at most 256 characters').optional();
  return z.object({
    status: listParam(ALERT_STATUSES, 'The state of the alerts.'),
    condition: z.enum(ALERT_CONDITIONS, 'must be above or below').optional(),
    tokenMint: id.meta({ description: 'The token of the alerts.' }),
    venue: z
      .string()
      .refine((venue) => venues.includes(venue), `must be one of ${venues.join(', ')}`)
      .optional()
      .meta({
        description: 'The venue of the outcomes. Other tokens have none.',
        ...(venues.length > 0 && { override: { type: 'string', enum: [...venues] } }),
      }),
    webhookId: id.meta({ description: 'The webhook that the alerts name.' }),
    limit: param.limit,
    cursor: param.cursor,
  });
}
