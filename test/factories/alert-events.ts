import { CONDITIONS, type Condition, type MarketConditionName } from '../../src/domain/alerts/conditions.ts';
import { marketRuleBody, ruleBody } from '../../src/domain/alerts/rule-event.ts';
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

const RULES: Readonly<Record<Exclude<Condition, MarketConditionName>, RuleFields>> = {
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

/** The body of the event of an alert with this condition, as the alerter makes it. */
export function alertBody(condition: Condition, fields: Partial<RuleFields> = {}): string {
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
  return ruleBody({ ...STAMP, ...MARKET, ...TOKEN, condition, ...rule, firing: { ...AT, ...firing } as never });
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
      firing: { price: decimal('201.5') },
    }),
  ],
];
