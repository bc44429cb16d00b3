import type { OrderSide } from '../markets/market.ts';
import type { ResolutionState } from '../markets/resolution.ts';
import { type ApiJson, numberField } from '../values/api-json.ts';
import type { Decimal } from '../values/decimal.ts';
import { type CorrectedResult, correctionFields } from '../webhooks/broadcast.ts';
import { type EventStamp, eventBody } from '../webhooks/event-body.ts';
import type { BookFiring } from './book-rule.ts';
import type { Direction, RuleShape, ThresholdField } from './condition.ts';
import type { BookConditionName, Condition, MarketConditionName } from './conditions.ts';
import type { Firing } from './rule.ts';

/** The fields that define a condition, besides token and scope. */
interface ConditionFields extends RuleShape {
  condition: Condition;
  /** Price, change, notional or multiple. */
  threshold?: Decimal | undefined;
  /** The API's field that holds the threshold; null without one. */
  thresholdField: ThresholdField | null;
}

/** The data of the event of an alert on an outcome. */
interface RuleEvent extends EventStamp, ConditionFields {
  alertId: string;
  name?: string | undefined;
  tokenMint: string;
  tokenSymbol: string;
  venue?: string | undefined;
  marketId?: string | undefined;
  /** Absent, like the time of the firing, for an alert of the specification: its event has neither. */
  title?: string | undefined;
  firing: Pick<Firing, 'price' | 'fromPrice' | 'value'> & { atMs?: number | undefined };
}

/** The delivery body of an alert on an outcome. Conditions of the specification keep its six fields. */
export function ruleBody(event: RuleEvent): string {
  const { condition, threshold, thresholdField: field, direction, unit, windowSeconds, windows, firing } = event;
  const isPrice = field === 'price';
  const data: { [key: string]: ApiJson | undefined } = {
    alertId: event.alertId,
    tokenMint: event.tokenMint,
    tokenSymbol: event.tokenSymbol,
    condition,
    ...(threshold !== undefined && field !== null && { [isPrice ? 'targetPrice' : field]: numberField(threshold) }),
    currentPrice: numberField(firing.price),
    fromPrice: firing.fromPrice === undefined ? undefined : numberField(firing.fromPrice),
    value: firing.value === undefined ? undefined : numberField(firing.value),
    direction,
    unit,
    windowSeconds,
    windows,
    observedAt: firing.atMs === undefined ? undefined : new Date(firing.atMs).toISOString(),
    name: event.name,
    venue: event.venue,
    marketId: event.marketId,
    title: event.title,
  };
  return eventBody('price_alert', event, data);
}

/** An outcome in the event of a rule on books. */
interface EventOutcome {
  tokenMint: string;
  tokenSymbol: string;
  venue: string;
  marketId: string;
  title: string;
}

/** The data of the event of a rule on books. */
interface BookRuleEvent extends EventStamp {
  alertId: string;
  name?: string | undefined;
  condition: BookConditionName;
  outcomes: readonly EventOutcome[];
  side?: OrderSide | undefined;
  size?: Decimal | undefined;
  notional?: Decimal | undefined;
  threshold: Decimal;
  direction?: Direction | undefined;
  firing: Pick<BookFiring, 'atMs' | 'value' | 'fills' | 'agesMs'>;
}

/** The delivery body of an alert on books: an order with its price, or a purchase and a sale with theirs. */
export function bookRuleBody(event: BookRuleEvent): string {
  const { outcomes, firing, condition, size, notional } = event;
  const [first, second] = outcomes;
  const prices = firing.fills.map(({ priceWithFee, averagePrice, fee }, place) => ({
    priceWithFee: optionalNumber(priceWithFee),
    averagePrice: optionalNumber(averagePrice),
    fee: optionalNumber(fee),
    bookAgeMs: firing.agesMs[place],
  }));
  const order = { side: event.side, size: optionalNumber(size), notional: optionalNumber(notional) };
  return eventBody('price_alert', event, {
    alertId: event.alertId,
    tokenMint: first?.tokenMint,
    tokenSymbol: first?.tokenSymbol,
    ...(second && { sellTokenMint: second.tokenMint, sellTokenSymbol: second.tokenSymbol }),
    condition,
    ...order,
    targetPrice: numberField(event.threshold),
    direction: event.direction,
    ...(second ? { net: optionalNumber(firing.value), buy: prices[0], sell: prices[1] } : prices[0]),
    observedAt: new Date(firing.atMs).toISOString(),
    name: event.name,
    venue: first?.venue,
    marketId: first?.marketId,
    title: first?.title,
    ...(second && { sellVenue: second.venue, sellMarketId: second.marketId, sellTitle: second.title }),
  });
}

const optionalNumber = (value: Decimal | null | undefined) =>
  value === null || value === undefined ? undefined : numberField(value);

/** The data of the event of a rule on the state of a market. */
export interface MarketRuleEvent extends EventStamp {
  alertId: string;
  name?: string | undefined;
  condition: MarketConditionName;
  tokenMint?: string | undefined;
  venue: string;
  marketId: string;
  title: string;
  status: string;
  previousStatus?: string | undefined;
  winningOutcomeId?: string | undefined;
  /** Of a rule on the resolution: the state that it reports. */
  resolutionState?: ResolutionState | undefined;
  atMs: number;
  corrected?: CorrectedResult | undefined;
}

export function marketRuleBody(event: MarketRuleEvent): string {
  return eventBody('price_alert', event, {
    alertId: event.alertId,
    condition: event.condition,
    tokenMint: event.tokenMint,
    status: event.status,
    previousStatus: event.previousStatus,
    winningOutcomeId: event.winningOutcomeId,
    resolutionState: event.resolutionState,
    ...(event.corrected && correctionFields(event.corrected)),
    observedAt: new Date(event.atMs).toISOString(),
    name: event.name,
    venue: event.venue,
    marketId: event.marketId,
    title: event.title,
  });
}

/** The data of the event of an alert whose time has ended. */
interface AlertExpired extends EventStamp {
  alertId: string;
  condition: Condition;
  tokenMint?: string | undefined;
  name?: string | undefined;
  expiresAt: Date;
}

export function alertExpiredBody({ eventId, occurredAt, expiresAt, ...data }: AlertExpired): string {
  const { alertId, condition, tokenMint, name } = data;
  const fields = { alertId, condition, tokenMint, name, expiresAt: expiresAt.toISOString() };
  return eventBody('alert_expired', { eventId, occurredAt }, fields);
}
