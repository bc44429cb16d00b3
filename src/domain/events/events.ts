import { type Data, joined, name, word } from '../webhooks/chat-values.ts';
import type { EventType } from '../webhooks/event.ts';
import { testEvent, webhookFailing, webhookPaused } from './account.ts';
import { alertExpired, priceAlert } from './alert.ts';
import type { EventDefinition, EventText } from './definition.ts';
import { feedGap } from './feed-gap.ts';
import { marketResolution, marketRules, marketStatus, newMarket, trade } from './market.ts';
import { balanceChange, transaction } from './wallet.ts';

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
