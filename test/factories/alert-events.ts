import {
  type BookConditionName,
  CONDITIONS,
  type Condition,
  isBookCondition,
  type MarketConditionName,
  thresholdField,
} from '../../src/domain/alerts/conditions.ts';
import { bookRuleBody, marketRuleBody, ruleBody } from '../../src/domain/alerts/rule-event.ts';
import { executable } from '../../src/domain/markets/executable.ts';
import { decimal } from '../../src/domain/values/decimal.ts';

type RuleEvent = Parameters<typeof ruleBody>[0];

const MARKET = { venue: 'polymarket', marketId: 'rain', title: 'Will it rain?' };
const STAMP = {
  eventId: 'evt_1',
  occurredAt: new Date('2026-01-02T03:04:05.678Z'),
  alertId: 'alert_1',
  name: 'My alert',
};
const TOKEN = { tokenMint: 'rain-yes', tokenSymbol: 'Yes' };
const AT = { atMs: STAMP.occurredAt.getTime() };

type RuleFields = Omit<Partial<RuleEvent>, 'firing'> & { firing: Partial<RuleEvent['firing']> };

const RULES: Readonly<Record<Exclude<Condition, MarketConditionName | BookConditionName>, RuleFields>> = {
  above: { threshold: decimal('0.6'), firing: { price: decimal('0.62') } },
  below: { threshold: decimal('0.3'), firing: { price: decimal('0.25') } },
  crosses_above: { threshold: decimal('0.5'), firing: { price: decimal('0.6'), fromPrice: decimal('0.3') } },
  crosses_below: { threshold: decimal('0.5'), firing: { price: decimal('0.4'), fromPrice: decimal('0.8') } },
  change: {
    threshold: decimal('10'),
    unit: 'percent',
    direction: 'up',
    windowSeconds: 3_600,
    firing: { price: decimal('0.6'), fromPrice: decimal('0.5') },
  },
  spread: {
    threshold: decimal('0.02'),
    direction: 'at_most',
    firing: { price: decimal('0.62'), value: decimal('0.015') },
  },
  trade: { threshold: decimal('1000'), firing: { price: decimal('0.62'), value: decimal('1550') } },
  volume: {
    threshold: decimal('5000'),
    windowSeconds: 900,
    firing: { price: decimal('0.62'), value: decimal('5230.5') },
  },
};

const YES = { ...TOKEN, ...MARKET };
const OTHER = { tokenMint: 'wet-yes', tokenSymbol: 'Yes', venue: 'kalshi', marketId: 'wet', title: 'Rain tomorrow?' };
const TERMS = {
  fee: { model: 'price_curve', takerRate: decimal('0.07'), exponent: 1, digits: 4, rounding: 'up' },
  sizeDigits: 2,
} as const;
const SIDE = { price: decimal('0.4'), size: decimal('900') };
const BOUGHT = executable({ bids: [], asks: [SIDE] }, { side: 'buy', by: 'size', amount: decimal('500') }, TERMS);
const SOLD = executable(
  { bids: [{ ...SIDE, price: decimal('0.5') }], asks: [] },
  { side: 'sell', by: 'size', amount: decimal('500') },
  TERMS,
);

function bookBody(condition: BookConditionName): string {
  const rule = { ...STAMP, condition, size: decimal('500') };
  if (condition === 'executable') {
    const firing = { ...AT, fills: [BOUGHT], agesMs: [0] };
    return bookRuleBody({
      ...rule,
      outcomes: [YES],
      side: 'buy',
      threshold: decimal('0.45'),
      direction: 'at_most',
      firing,
    });
  }
  const firing = { ...AT, value: decimal('0.0657'), fills: [BOUGHT, SOLD], agesMs: [0, 1_500] };
  return bookRuleBody({ ...rule, outcomes: [YES, OTHER], threshold: decimal('0.02'), firing });
}

/** The body of the event of an alert with this condition, as the alerter makes it. */
export function alertBody(condition: Condition, fields: Partial<RuleFields> = {}): string {
  if (isBookCondition(condition)) return bookBody(condition);
  if (condition === 'status') {
    const changed = { status: 'resolved', previousStatus: 'closed', winningOutcomeId: 'rain-yes' };
    return marketRuleBody({ ...STAMP, ...MARKET, ...AT, condition, ...changed });
  }
  if (condition === 'resolution') {
    const changed = { status: 'closed', previousStatus: 'open', resolutionState: 'proposed' } as const;
    return marketRuleBody({ ...STAMP, ...MARKET, ...AT, condition, ...changed });
  }
  if (condition === 'new_market') return marketRuleBody({ ...STAMP, ...MARKET, ...AT, condition, status: 'open' });
  const { firing, ...rule } = { ...RULES[condition], ...fields };
  const field = thresholdField({ condition, windows: rule.windows });
  return ruleBody({
    ...STAMP,
    ...MARKET,
    ...TOKEN,
    condition,
    thresholdField: field,
    ...rule,
    firing: { ...AT, ...firing } as never,
  });
}

/** A body of each condition, and of each other form of the event. */
export const ALERT_BODIES: readonly (readonly [name: string, body: string])[] = [
  ...CONDITIONS.map((condition) => [condition, alertBody(condition)] as const),
  ['volume of windows', alertBody('volume', { threshold: decimal('3'), windows: 24 })],
  [
    'change in both directions',
    alertBody('change', { threshold: decimal('0.05'), unit: 'absolute', direction: undefined }),
  ],
  [
    'a token without a market',
    ruleBody({
      ...STAMP,
      tokenMint: 'So11111111111111111111111111111111111111112',
      tokenSymbol: 'SOL',
      condition: 'above',
      threshold: decimal('200'),
      thresholdField: 'price',
      firing: { price: decimal('201.5') },
    }),
  ],
];
