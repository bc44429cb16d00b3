import { findCondition } from '../alerts/conditions.ts';
import { alertExpiredBody, ruleBody } from '../alerts/rule-event.ts';
import { decimal } from '../values/decimal.ts';
import { cut, type Data, joined, name, observed, textOf, word } from '../webhooks/chat-values.ts';
import { type EventDefinition, SAMPLE_MARKET, SAMPLE_TOKEN } from './definition.ts';

/** A long label must not hide the value behind it in a title. */
const MAX_SUBJECT = 60;

export const priceAlert: EventDefinition = {
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
      firing: { price: decimal('0.62') },
      venue: SAMPLE_MARKET.venue,
      marketId: SAMPLE_MARKET.marketId,
    }),
};

export const alertExpired: EventDefinition = {
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
