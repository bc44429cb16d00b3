import { findCondition } from '../alerts/conditions.ts';
import { alertExpiredBody, ruleBody } from '../alerts/rule-event.ts';
import { decimal } from '../values/decimal.ts';
import { balanceChangeBody, transactionBody } from '../wallets/event.ts';
import {
  cut,
  type Data,
  type Field,
  joined,
  name,
  numberOf,
  observed,
  prefixed,
  shortened,
  signed,
  textOf,
  tradeFacts,
  word,
} from '../webhooks/chat-values.ts';
import type { EventType } from '../webhooks/event.ts';
import { eventBody, webhookFailingBody, webhookPausedBody } from '../webhooks/event-body.ts';
import { feedGap, marketResolution, marketRules, marketStatus, newMarket, trade } from './broadcasts.ts';
import { type EventDefinition, type EventText, SAMPLE_FAILURE, SAMPLE_MARKET, SAMPLE_TOKEN } from './definition.ts';

/** A long label must not hide the value behind it in a title. */
const MAX_SUBJECT = 60;

const priceAlert: EventDefinition = {
  summary: 'A price met the condition of an alert',
  text: (data) => ({ subject: name(data['tokenSymbol']), facts: alertFacts(data) }),
  chat(data, facts) {
    const title = facts.title ?? textOf(data['title']) ?? '';
    const subject = cut(facts.outcome ?? textOf(data['tokenSymbol']) ?? title, MAX_SUBJECT);
    const content = findCondition(textOf(data['condition']))?.chat({ subject, name: title, data, facts });
    return content && { ...content, fields: [['Alert', textOf(data['name'])], ...content.fields] };
  },
  sample: (stamp) =>
    ruleBody({
      ...stamp,
      alertId: 'alert_sample',
      ...SAMPLE_TOKEN,
      condition: 'above',
      threshold: decimal('0.6'),
      thresholdField: 'price',
      firing: { price: decimal('0.62') },
      venue: SAMPLE_MARKET.venue,
      marketId: SAMPLE_MARKET.marketId,
    }),
};

const alertExpired: EventDefinition = {
  summary: 'The time of an alert ended',
  text: (data) => ({
    facts: joined(word(data['condition']), name(data['name'] ?? data['tokenMint'] ?? data['alertId'])),
  }),
  chat(data, facts) {
    const condition = textOf(data['condition'])?.replaceAll('_', ' ');
    const subject = textOf(data['name']) ?? facts.outcome ?? facts.title;
    return {
      title: `Alert expired: ${joined(subject, condition)}`,
      fields: [
        ['Alert', textOf(data['name']) ?? textOf(data['alertId'])],
        ['Condition', condition],
        ['Expired', textOf(data['expiresAt'])],
      ],
    };
  },
  sample: (stamp) =>
    alertExpiredBody({
      ...stamp,
      alertId: 'alert_sample',
      condition: 'above',
      tokenMint: SAMPLE_TOKEN.tokenMint,
      expiresAt: stamp.occurredAt,
    }),
};

/** `<condition> <threshold>: <observation>`. */
function alertFacts(data: Data): string {
  const ownLine = findCondition(textOf(data['condition']))?.line;
  return (
    ownLine?.(data) ?? observed(joined(word(data['condition']), word(data['targetPrice'])), word(data['currentPrice']))
  );
}

const MAX_TRANSFERS = 4;
const SAMPLE_WALLET = { wallet: 'sample-wallet', venue: SAMPLE_MARKET.venue, marketId: SAMPLE_MARKET.marketId };

const transaction: EventDefinition = {
  summary: 'A watched wallet has a new transaction',
  text: (data) => ({
    subject: joined(word(data['venue']), name(data['wallet'])),
    facts: joined(name(data['type']), tradeFacts(data)),
  }),
  chat(data) {
    const transfers = Array.isArray(data['transfers']) ? (data['transfers'] as Data[]) : [];
    const shown = transfers.slice(0, MAX_TRANSFERS).map((each) => {
      return `${signed(numberOf(each['change']))} ${textOf(each['tokenSymbol']) ?? shortened(textOf(each['tokenMint']))}`;
    });
    if (transfers.length > shown.length) shown.push(`${transfers.length - shown.length} more`);
    return {
      title: `Wallet ${shortened(textOf(data['wallet']))}: ${textOf(data['side']) ?? textOf(data['type']) ?? 'transaction'}`,
      fields: [
        ['Venue', textOf(data['venue'])],
        ['Status', textOf(data['status'])],
        ['Size', numberOf(data['size'])],
        ['Price', numberOf(data['price'])],
        ['Value', numberOf(data['value'])],
        ['Transfers', shown.join(', ')],
      ],
    };
  },
  sample: (stamp) =>
    transactionBody({
      ...stamp,
      ...SAMPLE_WALLET,
      transactionId: 'sample-transaction',
      type: 'trade',
      status: 'confirmed',
      atMs: stamp.occurredAt.getTime(),
      transfers: [{ ...SAMPLE_TOKEN, change: decimal('25') }],
      side: 'buy',
      size: decimal('25'),
      price: decimal('0.62'),
      value: decimal('15.5'),
    }),
};

const balanceChange: EventDefinition = {
  summary: 'A balance of a watched wallet changed',
  text: (data) => ({
    subject: joined(word(data['venue']), name(data['wallet']), name(data['tokenSymbol'] ?? data['tokenMint'])),
    facts: joined(signed(numberOf(data['change'])), prefixed('to', word(data['currentBalance']))),
  }),
  chat(data) {
    const [before, after] = [numberOf(data['previousBalance']), numberOf(data['currentBalance'])];
    return {
      title: `Wallet ${shortened(textOf(data['wallet']))}: balance changed`,
      fields: [
        ['Venue', textOf(data['venue'])],
        ['Balance', after],
        ['Move', before === undefined ? undefined : `${signed(numberOf(data['change']))} from ${before}`],
      ],
    };
  },
  sample: (stamp) =>
    balanceChangeBody({
      ...stamp,
      ...SAMPLE_WALLET,
      ...SAMPLE_TOKEN,
      previousBalance: decimal('100'),
      currentBalance: decimal('125'),
      transactionId: 'sample-transaction',
    }),
};

const SAMPLE_TROUBLE = {
  webhookId: 'wh_sample',
  failingSince: SAMPLE_FAILURE,
  lastError: 'http_status',
  lastStatusCode: 502,
};

const webhookFailing: EventDefinition = {
  summary: 'Another webhook of the account fails',
  text: (data) => ({ facts: joined(word(data['lastError']), word(data['webhookId'])) }),
  chat: (data) => ({ title: 'A webhook fails', fields: troubleFields(data) }),
  sample: (stamp) => webhookFailingBody({ ...stamp, ...SAMPLE_TROUBLE }),
};

const webhookPaused: EventDefinition = {
  summary: 'oddswire paused another webhook of the account',
  text: (data) => ({ facts: joined(word(data['reason']), word(data['webhookId'])) }),
  chat: (data) => ({
    title: 'A webhook is paused',
    fields: [['Reason', textOf(data['reason'])], ...troubleFields(data)],
  }),
  sample: (stamp) => webhookPausedBody({ ...stamp, ...SAMPLE_TROUBLE, reason: 'failing' }),
};

/** Sent on request only. Its data are `{test: true, webhookId}`. */
const testEvent: EventDefinition = {
  summary: 'A client requested a test event',
  text: (data) => ({ facts: word(data['webhookId']) }),
  chat: () => ({ title: 'Test message of oddswire', fields: [['Result', 'This webhook works.']] }),
  sample: (stamp, webhookId) => eventBody('test', stamp, { test: true, webhookId }),
};

function troubleFields(data: Data): Field[] {
  return [
    ['Webhook', textOf(data['webhookId'])],
    ['Failing since', textOf(data['failingSince'])],
    ['Last error', joined(textOf(data['lastError'])?.replaceAll('_', ' '), numberOf(data['lastStatusCode']))],
  ];
}

/** Every event type. */
export const EVENTS: Readonly<Record<EventType, EventDefinition>> = {
  price_alert: priceAlert,
  transaction,
  balance_change: balanceChange,
  alert_expired: alertExpired,
  webhook_failing: webhookFailing,
  webhook_paused: webhookPaused,
  market_status: marketStatus,
  new_market: newMarket,
  trade,
  feed_gap: feedGap,
  market_resolution: marketResolution,
  market_rules: marketRules,
  test: testEvent,
};

/** The definition of a type; undefined for a type of another release. */
export function findEvent(type: string): EventDefinition | undefined {
  return Object.hasOwn(EVENTS, type) ? EVENTS[type as EventType] : undefined;
}

/** The facts of an event in words, for a line on a terminal. */
export function eventText(type: string, data: Data): EventText {
  const { subject = '', facts = '' } = findEvent(type)?.text(data) ?? {};
  return {
    subject,
    facts,
    market: data['marketId'] === undefined ? '' : joined(word(data['venue']), name(data['marketId'])),
  };
}
