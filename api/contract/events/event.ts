import { z } from 'zod';
import { DIRECTIONS, UNITS } from '../../../src/domain/alerts/condition.ts';
import {
  ALERT_CONDITIONS,
  BOOK_CONDITION_NAMES,
  CONDITIONS,
  MARKET_CONDITION_NAMES,
  OUTCOME_CONDITION_NAMES,
} from '../../../src/domain/alerts/conditions.ts';
import { ORDER_SIDES } from '../../../src/domain/markets/market.ts';
import { RESOLUTION_STATES } from '../../../src/domain/markets/resolution.ts';
import { numberField } from '../../../src/domain/values/api-json.ts';
import type { EventType } from '../../../src/domain/webhooks/event.ts';
import { isoTime, numberValue, opaqueId } from '../wire.ts';
import { BROADCAST_EXAMPLES, BROADCAST_LIST, BROADCAST_SCHEMAS } from './broadcast-event.ts';
import { EVENT_AT as AT, correctionExample, correctionShape, EVENT_ID, event } from './schema.ts';

const tokenSymbol = z.string().optional();
const marketId = z.string().optional();

const alertOnToken = {
  alertId: opaqueId,
  tokenMint: z.string(),
  tokenSymbol: z.string(),
};
const ofMarket = {
  name: z.string().optional().meta({ description: 'The name of the alert.' }),
  venue: z.string().optional(),
  marketId,
  title: z.string().optional().meta({ description: 'The title of the market.' }),
};
const observedAt = isoTime.meta({ description: 'When the observation was received.' });
const optionalNumber = () => numberValue.optional().meta({ override: { type: 'number' } });

const targetAlert = z.object({
  ...alertOnToken,
  condition: z.enum(ALERT_CONDITIONS),
  targetPrice: numberValue,
  currentPrice: numberValue.meta({ description: 'The observation that met the condition.' }),
  observedAt: observedAt.optional(),
  ...ofMarket,
});

const ruleAlert = z.object({
  ...alertOnToken,
  condition: z.enum(OUTCOME_CONDITION_NAMES).exclude(ALERT_CONDITIONS),
  targetPrice: optionalNumber(),
  change: optionalNumber(),
  notional: optionalNumber(),
  times: optionalNumber(),
  currentPrice: numberValue,
  fromPrice: optionalNumber().meta({ description: 'The price that a crossing or a change started from.' }),
  value: optionalNumber().meta({ description: 'The spread, or the notional of the trade or the window.' }),
  direction: z.enum(DIRECTIONS).optional(),
  unit: z.enum(UNITS).optional(),
  windowSeconds: z.int().optional(),
  windows: z.int().optional(),
  observedAt,
  ...ofMarket,
});

const marketAlert = z.object({
  alertId: opaqueId,
  condition: z.enum(MARKET_CONDITION_NAMES),
  tokenMint: z.string().optional(),
  status: z.string(),
  previousStatus: z.string().optional(),
  winningOutcomeId: z.string().optional(),
  resolutionState: z
    .enum(RESOLUTION_STATES)
    .optional()
    .meta({ description: 'Of the condition `resolution`: the state that it reports.' }),
  ...correctionShape,
  observedAt,
  ...ofMarket,
});

const fillShape = {
  priceWithFee: optionalNumber().meta({ description: 'Per unit, with the fee of a taker.' }),
  averagePrice: optionalNumber().meta({ description: 'Per unit, without the fee.' }),
  fee: optionalNumber(),
  bookAgeMs: z.int().optional().meta({ description: 'How long the book was unchanged then, milliseconds.' }),
} as const;

const bookAlert = z.object({
  ...alertOnToken,
  sellTokenMint: z.string().optional(),
  sellTokenSymbol: z.string().optional(),
  condition: z.enum(BOOK_CONDITION_NAMES),
  side: z.enum(ORDER_SIDES).optional(),
  size: optionalNumber(),
  notional: optionalNumber(),
  targetPrice: numberValue,
  direction: z.enum(DIRECTIONS).optional(),
  ...fillShape,
  net: optionalNumber().meta({ description: 'Of `net_difference`: the difference per unit, with both fees.' }),
  buy: z.object(fillShape).optional(),
  sell: z.object(fillShape).optional(),
  observedAt,
  ...ofMarket,
  sellVenue: z.string().optional(),
  sellMarketId: z.string().optional(),
  sellTitle: z.string().optional(),
});

/** The bodies of deliveries (specification section 6.2). src/domain builds their text; a test compares the two. */
export const priceAlertEvent = event('price_alert', z.union([targetAlert, ruleAlert, bookAlert, marketAlert])).meta({
  description: 'An observation met the condition of an alert. `condition` states which fields the data has.',
});

export const transactionEvent = event(
  'transaction',
  z.object({
    wallet: z.string().meta({ description: 'The address of the wallet.' }),
    venue: z.string(),
    transactionId: z.string(),
    type: z.string(),
    status: z.string(),
    timestamp: isoTime,
    transfers: z
      .array(z.object({ tokenMint: z.string(), tokenSymbol, change: numberValue }))
      .meta({ description: 'Incoming (`change` above zero) and outgoing (below zero) transfers.' }),
    marketId,
    side: z.string().optional(),
    size: numberValue.optional(),
    price: numberValue.optional(),
    value: numberValue.optional(),
  }),
).meta({ description: 'A watched wallet has a new transaction.' });

export const balanceChangeEvent = event(
  'balance_change',
  z.object({
    wallet: z.string().meta({ description: 'The address of the wallet.' }),
    venue: z.string(),
    tokenMint: z.string(),
    tokenSymbol,
    marketId,
    previousBalance: numberValue,
    currentBalance: numberValue,
    change: numberValue,
    transactionId: z.string().optional(),
  }),
).meta({ description: 'The balance of a token in a watched wallet changed since the previous poll.' });

const trouble = {
  webhookId: opaqueId.meta({ description: 'The failing webhook.' }),
  failingSince: isoTime.meta({ description: 'The first failure since the last success.' }),
  lastError: z.string().optional().meta({ description: 'Error code of the latest attempt.' }),
  lastStatusCode: z.int().optional().meta({ description: 'HTTP status of the latest attempt.' }),
};

export const webhookFailingEvent = event('webhook_failing', z.object(trouble)).meta({
  description:
    'A delivery to another webhook of the account used up its attempts, for the first time since its last success.',
});

export const webhookPausedEvent = event(
  'webhook_paused',
  z.object({ ...trouble, reason: z.string().meta({ description: '`failing` or `gone`.' }) }),
).meta({ description: 'oddswire paused another webhook of the account.' });

export const testEvent = event('test', z.object({ test: z.literal(true), webhookId: opaqueId })).meta({
  description: 'A test event, sent on request.',
});

export const alertExpiredEvent = event(
  'alert_expired',
  z.object({
    alertId: opaqueId,
    condition: z.enum(CONDITIONS),
    tokenMint: z.string().optional(),
    name: z.string().optional(),
    expiresAt: isoTime,
  }),
).meta({ description: 'The `expiresAt` of an alert has passed.' });

export const EVENT_SCHEMAS = {
  price_alert: priceAlertEvent,
  transaction: transactionEvent,
  balance_change: balanceChangeEvent,
  alert_expired: alertExpiredEvent,
  webhook_failing: webhookFailingEvent,
  webhook_paused: webhookPausedEvent,
  ...BROADCAST_SCHEMAS,
  test: testEvent,
} as const satisfies Record<EventType, z.ZodType>;

export const anyEvent = z
  .discriminatedUnion('type', [
    priceAlertEvent,
    transactionEvent,
    balanceChangeEvent,
    alertExpiredEvent,
    webhookFailingEvent,
    webhookPausedEvent,
    ...BROADCAST_LIST,
    testEvent,
  ])
  .meta({ description: 'The body of a delivery.' });

const TROUBLE = { webhookId: 'wh_01987f5e-6a3b-7c11-8b5e-0d2f6f1a9c02', failingSince: '2026-01-01T00:00:00.000Z' };

const ALERT_MARKET = {
  venue: 'polymarket',
  marketId: '0x5f65177b394277fd294cd75650044e32ba009a95022d88a0c1d565897d72f8f1',
};
const ALERT_TOKEN = '71321045679252212594626385532706912750332728571942532289631379312455583992563';
const OTHER_TOKEN = '52114319501245915516055106046884209969926127482827954674443846427813813222426';
const ALERT_NAMES = { name: 'Rain in May', ...ALERT_MARKET, title: 'Will it rain on 1 May?' };
const STATUS_ALERT = {
  alertId: 'alert_01987f5e-6a3b-7c11-8b5e-0d2f6f1a9c05',
  condition: 'status',
  status: 'resolved',
} as const;

/** An event of each form of an alert: on a target, by another rule on observations, on the state of a market, and a correction. */
export const PRICE_ALERT_EXAMPLES = {
  above: {
    id: EVENT_ID,
    type: 'price_alert',
    timestamp: AT,
    data: {
      alertId: 'alert_01987f5e-6a3b-7c11-8b5e-0d2f6f1a9c01',
      tokenMint: ALERT_TOKEN,
      tokenSymbol: 'Yes',
      condition: 'above',
      targetPrice: numberField('0.6'),
      currentPrice: numberField('0.62'),
      ...ALERT_MARKET,
    },
  },
  change: {
    id: EVENT_ID,
    type: 'price_alert',
    timestamp: AT,
    data: {
      alertId: 'alert_01987f5e-6a3b-7c11-8b5e-0d2f6f1a9c04',
      tokenMint: ALERT_TOKEN,
      tokenSymbol: 'Yes',
      condition: 'change',
      change: numberField('10'),
      currentPrice: numberField('0.62'),
      fromPrice: numberField('0.5'),
      direction: 'up',
      unit: 'percent',
      windowSeconds: 3_600,
      observedAt: AT,
      ...ALERT_NAMES,
    },
  },
  executable: {
    id: EVENT_ID,
    type: 'price_alert',
    timestamp: AT,
    data: {
      alertId: 'alert_01987f5e-6a3b-7c11-8b5e-0d2f6f1a9c08',
      tokenMint: ALERT_TOKEN,
      tokenSymbol: 'Yes',
      condition: 'executable',
      side: 'buy',
      size: numberField('500'),
      targetPrice: numberField('0.64'),
      direction: 'at_most',
      priceWithFee: numberField('0.639324'),
      averagePrice: numberField('0.63'),
      fee: numberField('4.662'),
      bookAgeMs: 250,
      observedAt: AT,
      ...ALERT_NAMES,
    },
  },
  status: {
    id: EVENT_ID,
    type: 'price_alert',
    timestamp: AT,
    data: {
      ...STATUS_ALERT,
      previousStatus: 'closed',
      winningOutcomeId: ALERT_TOKEN,
      observedAt: AT,
      ...ALERT_NAMES,
    },
  },
  correction: {
    id: EVENT_ID,
    type: 'price_alert',
    timestamp: AT,
    data: {
      ...STATUS_ALERT,
      previousStatus: 'resolved',
      winningOutcomeId: ALERT_TOKEN,
      ...correctionExample(ALERT_TOKEN, OTHER_TOKEN),
      observedAt: AT,
      ...ALERT_NAMES,
    },
  },
} as const satisfies Readonly<Record<string, z.output<typeof priceAlertEvent>>>;

export const EVENT_EXAMPLES: { readonly [Type in EventType]: z.output<(typeof EVENT_SCHEMAS)[Type]> } = {
  price_alert: PRICE_ALERT_EXAMPLES.above,
  transaction: {
    id: EVENT_ID,
    type: 'transaction',
    timestamp: AT,
    data: {
      wallet: '0x56687bf447db6ffa42ffe2204a05edaa20f55839',
      venue: 'polymarket',
      transactionId: '0x9a5e7b0a4c1d7be5a7f10a8b35c6c14b3b6b2a44c90d5bd3b1cf4ef2a4d1c0e7:0',
      type: 'trade',
      status: 'confirmed',
      timestamp: '2026-01-02T03:04:05.000Z',
      transfers: [
        {
          tokenMint: '71321045679252212594626385532706912750332728571942532289631379312455583992563',
          tokenSymbol: 'Yes',
          change: numberField('25'),
        },
        { tokenMint: 'pUSD', tokenSymbol: 'pUSD', change: numberField('-15.5') },
      ],
      marketId: '0x5f65177b394277fd294cd75650044e32ba009a95022d88a0c1d565897d72f8f1',
      side: 'buy',
      size: numberField('25'),
      price: numberField('0.62'),
      value: numberField('15.5'),
    },
  },
  balance_change: {
    id: EVENT_ID,
    type: 'balance_change',
    timestamp: AT,
    data: {
      wallet: '0x56687bf447db6ffa42ffe2204a05edaa20f55839',
      venue: 'polymarket',
      tokenMint: '71321045679252212594626385532706912750332728571942532289631379312455583992563',
      tokenSymbol: 'Yes',
      marketId: '0x5f65177b394277fd294cd75650044e32ba009a95022d88a0c1d565897d72f8f1',
      previousBalance: numberField('100'),
      currentBalance: numberField('125'),
      change: numberField('25'),
    },
  },
  webhook_failing: {
    id: EVENT_ID,
    type: 'webhook_failing',
    timestamp: AT,
    data: { ...TROUBLE, lastError: 'http_status', lastStatusCode: 502 },
  },
  webhook_paused: {
    id: EVENT_ID,
    type: 'webhook_paused',
    timestamp: AT,
    data: { ...TROUBLE, lastError: 'http_status', lastStatusCode: 410, reason: 'gone' },
  },
  alert_expired: {
    id: EVENT_ID,
    type: 'alert_expired',
    timestamp: AT,
    data: {
      alertId: 'alert_01987f5e-6a3b-7c11-8b5e-0d2f6f1a9c01',
      condition: 'crosses_above',
      tokenMint: '71321045679252212594626385532706912750332728571942532289631379312455583992563',
      expiresAt: '2026-01-02T03:04:00.000Z',
    },
  },
  ...BROADCAST_EXAMPLES,
  test: {
    id: EVENT_ID,
    type: 'test',
    timestamp: AT,
    data: { test: true, webhookId: 'wh_01987f5e-6a3b-7c11-8b5e-0d2f6f1a9c02' },
  },
};
