import { z } from 'zod';
import {
  ALERT_STATUSES,
  DEFAULT_COOLDOWN_SECONDS,
  DIRECTIONS,
  MAX_COOLDOWN_SECONDS,
  MAX_WINDOW_SECONDS,
  MIN_COOLDOWN_SECONDS,
  UNITS,
} from '../../src/domain/alerts/condition.ts';
import { CONDITIONS } from '../../src/domain/alerts/conditions.ts';
import { ORDER_SIDES } from '../../src/domain/markets/market.ts';
import { RESOLUTION_STATES } from '../../src/domain/markets/resolution.ts';
import { numberField } from '../../src/domain/values/api-json.ts';
import { compareDecimals, LongNumber, MAX_DIGITS, parseDecimal, ZERO } from '../../src/domain/values/decimal.ts';
import { listParam, param } from '../http/input.ts';
import { addFaults, conditionFaults, subjectFaults } from './alert-conditions.ts';
import { endTime, isoTime, numberValue, opaqueId } from './wire.ts';

const MAX_TEXT = 256;
const idText = z
  .string('must be a string')
  .min(1, 'must not be empty')
  .max(MAX_TEXT, `must have at most ${MAX_TEXT} characters`);
const wholeNumber = (min: number, max: number) => {
  const message = `must be a whole number from ${min} to ${max}`;
  return z.int(message).min(min, message).max(max, message);
};

/** The fields of a condition in an answer. */
const scope = z
  .object({
    market_id: z.string().optional(),
    event_id: z.string().optional(),
    venue: z.string().optional(),
    category: z.string().optional(),
    q: z.string().optional(),
  })
  .meta({ description: 'The markets of an alert without a token. All given fields must fit.' });

/** An alert (specification section 2.9, and docs/alerts.md). */
export const alert = z
  .object({
    id: opaqueId,
    tokenMint: z
      .string()
      .optional()
      .meta({ description: 'An `outcome_id`, or any token. Absent for an alert with a `scope`.' }),
    scope: scope.optional(),
    condition: z.enum(CONDITIONS).meta({ description: 'Touching the target counts.' }),
    price: numberValue.optional().meta({
      description: 'The target, the spread, the price with fee of an order, or the net per unit, in `currency`.',
      override: { type: 'number' },
    }),
    direction: z.enum(DIRECTIONS).optional(),
    change: numberValue.optional().meta({ override: { type: 'number' } }),
    unit: z.enum(UNITS).optional(),
    windowSeconds: z.int().optional(),
    notional: numberValue.optional().meta({ override: { type: 'number' } }),
    times: numberValue.optional().meta({ override: { type: 'number' } }),
    windows: z.int().optional(),
    states: z.array(z.enum(RESOLUTION_STATES)).optional(),
    side: z.enum(ORDER_SIDES).optional(),
    size: numberValue.optional().meta({ override: { type: 'number' } }),
    sellTokenMint: z
      .string()
      .optional()
      .meta({ description: 'The outcome that the condition `net_difference` sells.' }),
    repeat: z.literal(true).optional().meta({ description: 'Whether the alert fires again. Absent: it fires once.' }),
    cooldownSeconds: z.int().optional().meta({ description: 'The least time between two firings on one outcome.' }),
    expiresAt: isoTime.optional().meta({ description: 'Observations from this time on do not count.' }),
    name: z.string().optional(),
    note: z.string().optional(),
    status: z.enum(ALERT_STATUSES),
    webhookId: opaqueId.optional().meta({ description: 'Absent: the default webhook when the alert fires.' }),
    createdAt: isoTime,
    triggeredAt: isoTime.optional().meta({ description: 'The last firing.' }),
    triggeredPrice: numberValue
      .optional()
      .meta({ description: 'The price of the last firing.', override: { type: 'number' } }),
    expiredAt: isoTime.optional().meta({ description: 'When the alert expired.' }),
    eventId: opaqueId.optional().meta({ description: 'The event of the last firing.' }),
    tracked: z.boolean().meta({ description: 'Whether the token is an outcome or has a price.' }),
    currency: z.string().optional().meta({ description: "The token's own currency: USD, or MANA on Manifold." }),
  })
  .meta({ description: 'An alert. Without `repeat` it fires once; with a `scope` once for each outcome or market.' });
export type AlertBody = z.output<typeof alert>;

/** A firing, of an alert or of a backtest. */
export const firingFields = z.object({
  at: isoTime.meta({ description: 'When the observation was received.' }),
  tokenMint: z.string().optional(),
  venue: z.string().optional(),
  marketId: z.string().optional(),
  price: numberValue.optional().meta({ override: { type: 'number' } }),
  fromPrice: numberValue.optional().meta({ override: { type: 'number' } }),
  value: numberValue.optional().meta({ override: { type: 'number' } }),
});

const firing = firingFields.extend({ eventId: opaqueId }).meta({ description: 'A firing of an alert.' });

/** One alert. An alert of the specification has its only firing in its own fields. */
export const alertWithFirings = alert
  .extend({ firings: z.array(firing).optional().meta({ description: 'The newest 100 firings, newest first.' }) })
  .meta({ description: 'An alert with its firings.' });
export type AlertWithFiringsBody = z.output<typeof alertWithFirings>;

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

/** A decimal that is greater than zero, or with `orZero` not less. */
function threshold(description: string, { orZero = false } = {}) {
  return z
    .custom<number | LongNumber>(
      (value) => typeof value === 'number' || value instanceof LongNumber,
      'must be a number',
    )
    .meta({ override: { type: 'number' } })
    .transform((value, context) => {
      const parsed = parseDecimal(value instanceof LongNumber ? value.text : value);
      if (parsed !== null && compareDecimals(parsed, ZERO) >= (orZero ? 0 : 1)) return parsed;
      context.addIssue({ code: 'custom', message: parsed === null ? TOO_LONG : 'must be greater than 0' });
      return z.NEVER;
    })
    .optional()
    .meta({ description, override: { type: 'number', exclusiveMinimum: 0 } });
}

/** The name of one of these venues, the ones with markets. */
function venueName(venues: readonly string[], description?: string) {
  const reason = venues.length === 0 ? 'no enabled venue has markets' : `must be one of ${venues.join(', ')}`;
  return z
    .string('must be a string')
    .refine((venue) => venues.includes(venue), reason)
    .optional()
    .meta({
      ...(description !== undefined && { description }),
      ...(venues.length > 0 && { override: { type: 'string', enum: [...venues] } }),
    });
}

function scopeBody(venues: readonly string[]) {
  return z
    .strictObject(
      {
        market_id: idText.optional(),
        event_id: idText.optional(),
        venue: venueName(venues),
        category: idText.optional(),
        q: z
          .string('must be a string')
          .min(1, 'must not be empty')
          .max(200, 'must have at most 200 characters')
          .optional()
          .meta({ description: 'Every word must be in the title of the market or of its event.' }),
      },
      'must be an object',
    )
    .meta({
      description:
        'The markets of the alert, instead of `tokenMint`. At least one field; all given ones must fit. Alerts without `market_id` and `event_id` are limited to 50 active ones per account.',
      override: { minProperties: 1 },
    });
}

const mint = z
  .string('must be a string')
  .min(1, 'must not be empty')
  .max(256, 'must have at most 256 characters')
  .regex(/^[^\s\p{Cc}]*$/u, 'must not contain spaces or control characters')
  .optional();
// Not every reader of the document knows \p{Cc}.
const MINT_PATTERN = { pattern: '^[^\\s\\x00-\\x1f\\x7f-\\x9f]*$' };
const tokenMint = mint.meta({
  description: 'An `outcome_id`, or any token. Required without a `scope`.',
  override: MINT_PATTERN,
});

/** The fields of a new alert beside its subject. */
const createFields = {
  condition: z.enum(CONDITIONS, `must be one of ${CONDITIONS.join(', ')}`).optional(),
  price: threshold(
    `The target, the spread, the price of an order with its fee, or the net per unit, in the token's currency, kept digit for digit. At most ${MAX_DIGITS} characters without an exponent; at most 1 for an outcome of a market.`,
  ),
  direction: z
    .enum(DIRECTIONS, `must be one of ${DIRECTIONS.join(', ')}`)
    .optional()
    .meta({
      description: '`at_most` or `at_least` of a spread or of the price of an order; `up` or `down` of a change.',
    }),
  change: threshold('The least move, in the unit, within the window.'),
  unit: z.enum(UNITS, `must be one of ${UNITS.join(', ')}`).optional(),
  windowSeconds: wholeNumber(1, MAX_WINDOW_SECONDS).optional(),
  notional: threshold(
    "The least price times size of a trade, or of a window's trades; of an order, its cost without the fee.",
  ),
  times: threshold('The least multiple of the mean notional of the windows before.'),
  windows: wholeNumber(1, 1_000).optional().meta({ description: 'The number of windows for the mean.' }),
  states: z
    .array(z.enum(RESOLUTION_STATES, `must be one of ${RESOLUTION_STATES.join(', ')}`), 'must be an array')
    .min(1, 'must have at least one item')
    .transform((states) => RESOLUTION_STATES.filter((state) => states.includes(state)))
    .optional()
    .meta({ description: 'The states of the result of a market that fire the alert. Duplicates count once.' }),
  side: z
    .enum(ORDER_SIDES, `must be ${ORDER_SIDES.join(' or ')}`)
    .optional()
    .meta({ description: 'Of an order: `buy` takes asks, `sell` takes bids.' }),
  size: threshold('Of an order: units of the outcome, with at most the digits that the venue accepts.'),
  sellTokenMint: mint.meta({
    description: 'The outcome that the condition `net_difference` sells; it buys `tokenMint`.',
    override: MINT_PATTERN,
  }),
  repeat: z
    .boolean('must be true or false')
    .optional()
    .meta({ description: 'Whether the alert fires again. Default: false.' }),
  cooldownSeconds: wholeNumber(MIN_COOLDOWN_SECONDS, MAX_COOLDOWN_SECONDS)
    .optional()
    .meta({ description: `The least time between two firings on one outcome. Default: ${DEFAULT_COOLDOWN_SECONDS}.` }),
  expiresAt: endTime.optional().meta({ description: 'The alert expires at this time, in the future.' }),
  name: z
    .string('must be a string')
    .min(1, 'must not be empty')
    .max(100, 'must have at most 100 characters')
    .optional(),
  note: z.string('must be a string').max(1_000, 'must have at most 1000 characters').optional(),
  webhookId: idText.optional().meta({
    description: "One of the account's webhooks that lists `price_alert`. Default: the oldest active one of these.",
  }),
} as const;
const FIELD_ORDER = ['tokenMint', 'scope', ...Object.keys(createFields)];

/** The body of a new alert. `venues` are the venues with markets. */
export function createAlertBody(venues: readonly string[]) {
  return z
    .strictObject({ tokenMint, scope: scopeBody(venues).optional(), ...createFields })
    .check((payload) => {
      const given = payload.value as Readonly<Record<string, unknown>>;
      const { condition } = payload.value;
      const missing = condition === undefined ? [{ path: ['condition'], message: 'is required' }] : [];
      const faults = [...missing, ...conditionFaults(given, condition ?? 'above'), ...subjectFaults(given, condition)];
      addFaults(payload, faults, FIELD_ORDER);
    })
    .meta({ override: { required: ['condition'] } });
}
export type CreateAlertBody = z.output<ReturnType<typeof createAlertBody>>;

export const updateAlertBody = z
  .strictObject({
    status: z.enum(['active', 'paused'], 'must be active or paused').optional(),
    price: createFields.price,
    change: createFields.change,
    notional: createFields.notional,
    times: createFields.times,
    direction: createFields.direction
      .unwrap()
      .nullable()
      .optional()
      .meta({ description: 'Null: a change counts in both directions.' }),
    unit: createFields.unit,
    windowSeconds: createFields.windowSeconds,
    windows: createFields.windows,
    states: createFields.states,
    side: createFields.side,
    size: createFields.size.meta({ description: 'Replaces the notional of an order.' }),
    repeat: createFields.repeat.meta({
      description: 'False: the alert has fired for the last time on each outcome on which it has fired.',
    }),
    cooldownSeconds: createFields.cooldownSeconds,
    webhookId: createFields.webhookId
      .unwrap()
      .nullable()
      .optional()
      .meta({ description: 'Null: the default webhook.' }),
    expiresAt: createFields.expiresAt
      .unwrap()
      .nullable()
      .optional()
      .meta({ description: 'Null: the alert has no end.' }),
    name: createFields.name.unwrap().nullable().optional(),
    note: createFields.note.unwrap().nullable().optional(),
  })
  .meta({ description: 'At least one field.', override: { minProperties: 1 } });
export type UpdateAlertBody = z.output<typeof updateAlertBody>;

const MAX_BULK = 100;
const tooMany = `must have 1 to ${MAX_BULK} items`;

/** Each item is checked on its own, so that one wrong item has one wrong result. */
export const createAlertsBody = z.strictObject({
  alerts: z
    .array(z.looseObject({}, 'must be an object'), 'must be an array')
    .min(1, tooMany)
    .max(MAX_BULK, tooMany)
    .meta({ description: 'Bodies of `POST /v1/alerts`.' }),
});
export const deleteAlertsBody = z.strictObject({
  ids: z.array(idText, 'must be an array').min(1, tooMany).max(MAX_BULK, tooMany),
});

const itemError = z.object({
  code: z.string(),
  message: z.string(),
  details: z.array(z.object({ path: z.string(), message: z.string() })).optional(),
});
export const createdItem = z
  .object({ index: z.int().min(0), alert: alert.optional(), error: itemError.optional() })
  .meta({ description: 'The result of one item: its alert or its error.' });
export type CreatedItem = z.output<typeof createdItem>;
export const deletedItem = z
  .object({ id: z.string(), deleted: z.boolean() })
  .meta({ description: 'Whether the account had this alert.' });

export const createAlertExample: z.input<ReturnType<typeof createAlertBody>> = {
  tokenMint: '71321045679252212594626385532706912750332728571942532289631379312455583992563',
  condition: 'above',
  price: 0.6,
};

/** The filters of the list. `venues` are the venues with markets. */
export function alertListQuery(venues: readonly string[]) {
  const id = z.string().min(1, 'must not be empty').max(256, 'must have at most 256 characters').optional();
  return z.object({
    status: listParam(ALERT_STATUSES, 'The state of the alerts.'),
    condition: z.enum(CONDITIONS, `must be one of ${CONDITIONS.join(', ')}`).optional(),
    tokenMint: id.meta({ description: 'The token of the alerts.' }),
    venue: venueName(venues, 'The venue of the outcomes, or of the `scope`. Other tokens have none.'),
    market_id: id.meta({ description: 'The market of the outcomes, or of the `scope`.' }),
    event_id: id.meta({ description: 'The event of the markets of the outcomes, or of the `scope`.' }),
    category: id.meta({ description: 'The category of the markets of the outcomes, or of the `scope`.' }),
    name: id.meta({ description: 'The whole name of the alerts.' }),
    webhookId: id.meta({ description: 'The webhook that the alerts name.' }),
    limit: param.limit,
    cursor: param.cursor,
  });
}
