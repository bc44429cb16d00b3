import { describe, expect, it } from 'vitest';
import { EVENTS } from '../../../../src/domain/events/events.ts';
import { EVENT_TYPES, type EventType } from '../../../../src/domain/webhooks/event.ts';
import { ORDER_BY, orderKeyOf } from '../../../../src/domain/webhooks/order.ts';

const sample = (type: EventType) =>
  EVENTS[type].sample({ eventId: 'evt_1', occurredAt: new Date('2026-01-01T00:00:00.000Z') }, 'wh_1');

/** The kinds of events with a key, by the order. */
const KEYED: Record<(typeof ORDER_BY)[number], readonly EventType[]> = {
  market: [
    'price_alert',
    'transaction',
    'balance_change',
    'market_status',
    'market_resolution',
    'new_market',
    'trade',
    'market_rules',
  ],
  alert: ['price_alert', 'alert_expired'],
  wallet: ['transaction', 'balance_change'],
};

describe.each(ORDER_BY)('the key of an event in the order by %s', (orderBy) => {
  it.each(EVENT_TYPES)('exists for %s exactly when the documentation states it', (type) => {
    expect(orderKeyOf({ orderBy, body: sample(type) }) !== null).toBe(KEYED[orderBy].includes(type));
  });

  it('is the same for each kind of event of one market, alert or wallet', () => {
    expect(new Set(KEYED[orderBy].map((type) => orderKeyOf({ orderBy, body: sample(type) }))).size).toBe(1);
  });
});
