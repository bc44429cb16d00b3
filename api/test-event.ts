import { type ApiJson, numberField, toJsonText } from '../src/domain/api-json.ts';
import { decimal } from '../src/domain/decimal.ts';
import type { EventType } from '../src/domain/event.ts';
import { priceAlertBody } from '../src/domain/price-alert-event.ts';

export interface TestEvent {
  eventId: string;
  type: EventType;
  occurredAt: Date;
  webhookId: string;
}

const SAMPLE_TOKEN = 'sample-outcome-yes';
const SAMPLE_WALLET = 'sample-wallet';

/**
 * The delivery body of a test event (DESIGN section 8): `{test:true, webhookId}`, or for a real kind a sample with made-up
 * values, so that a receiver can be tried before anything happens.
 */
export function testEventBody({ eventId, type, occurredAt, webhookId }: TestEvent): string {
  if (type === 'price_alert') {
    return priceAlertBody({
      eventId,
      occurredAt,
      alertId: 'alert_sample',
      tokenMint: SAMPLE_TOKEN,
      tokenSymbol: 'Yes',
      condition: 'above',
      targetPrice: decimal('0.6'),
      currentPrice: decimal('0.62'),
      venue: 'sample',
      marketId: 'sample-market',
    });
  }
  const timestamp = occurredAt.toISOString();
  return toJsonText({ id: eventId, type, timestamp, data: sampleData(type, webhookId, timestamp) }, 'number');
}

function sampleData(type: Exclude<EventType, 'price_alert'>, webhookId: string, timestamp: string): ApiJson {
  switch (type) {
    case 'test':
      return { test: true, webhookId };
    case 'transaction':
      return {
        wallet: SAMPLE_WALLET,
        venue: 'sample',
        transactionId: 'sample-transaction',
        type: 'trade',
        status: 'confirmed',
        timestamp,
        transfers: [{ tokenMint: SAMPLE_TOKEN, tokenSymbol: 'Yes', change: numberField('25') }],
        marketId: 'sample-market',
        side: 'buy',
        size: numberField('25'),
        price: numberField('0.62'),
        value: numberField('15.5'),
      };
    case 'balance_change':
      return {
        wallet: SAMPLE_WALLET,
        venue: 'sample',
        tokenMint: SAMPLE_TOKEN,
        tokenSymbol: 'Yes',
        marketId: 'sample-market',
        previousBalance: numberField('100'),
        currentBalance: numberField('125'),
        change: numberField('25'),
        transactionId: 'sample-transaction',
      };
  }
}
