import { alertExpiredBody, ruleBody } from '../../src/domain/alerts/rule-event.ts';
import { decimal } from '../../src/domain/values/decimal.ts';
import { balanceChangeBody, transactionBody } from '../../src/domain/wallets/event.ts';
import { webhookFailingBody, webhookPausedBody } from '../../src/domain/webhooks/account-event.ts';
import { feedGapData, marketStatusData, newMarketData, tradeData } from '../../src/domain/webhooks/broadcast.ts';
import type { EventType } from '../../src/domain/webhooks/event.ts';
import { eventBody } from '../../src/domain/webhooks/event-body.ts';

interface TestEvent {
  eventId: string;
  type: EventType;
  occurredAt: Date;
  webhookId: string;
}

const TOKEN = { tokenMint: 'sample-outcome-yes', tokenSymbol: 'Yes' };
const WALLET = { wallet: 'sample-wallet', venue: 'sample', marketId: 'sample-market' };

const TROUBLE = {
  webhookId: 'wh_sample',
  failingSince: new Date('2026-01-01T00:00:00.000Z'),
  lastError: 'http_status',
  lastStatusCode: 502,
};

const MARKET = {
  venue: WALLET.venue,
  marketId: WALLET.marketId,
  eventId: 'sample-event',
  title: 'Sample market',
  category: 'Sample',
};

/**
 * The delivery body of a test event: `{test:true, webhookId}`, or for an event type a sample with made-up values, so that users can
 * test a receiver before the first event.
 */
export function testEventBody({ eventId, type, occurredAt, webhookId }: TestEvent): string {
  switch (type) {
    case 'test':
      return eventBody(type, { eventId, occurredAt }, { test: true, webhookId });
    case 'price_alert':
      return ruleBody({
        eventId,
        occurredAt,
        alertId: 'alert_sample',
        ...TOKEN,
        condition: 'above',
        threshold: decimal('0.6'),
        firing: { price: decimal('0.62') },
        venue: WALLET.venue,
        marketId: WALLET.marketId,
      });
    case 'alert_expired':
      return alertExpiredBody({
        eventId,
        occurredAt,
        alertId: 'alert_sample',
        condition: 'above',
        tokenMint: TOKEN.tokenMint,
        expiresAt: occurredAt,
      });
    case 'transaction':
      return transactionBody({
        eventId,
        occurredAt,
        ...WALLET,
        transactionId: 'sample-transaction',
        type: 'trade',
        status: 'confirmed',
        atMs: occurredAt.getTime(),
        transfers: [{ ...TOKEN, change: decimal('25') }],
        side: 'buy',
        size: decimal('25'),
        price: decimal('0.62'),
        value: decimal('15.5'),
      });
    case 'webhook_failing':
      return webhookFailingBody({ eventId, occurredAt, ...TROUBLE });
    case 'webhook_paused':
      return webhookPausedBody({ eventId, occurredAt, ...TROUBLE, reason: 'failing' });
    case 'market_status':
      return eventBody(
        type,
        { eventId, occurredAt },
        marketStatusData({
          ...MARKET,
          status: 'resolved',
          previousStatus: 'closed',
          winningOutcomeId: TOKEN.tokenMint,
          resolution: 'outcome',
          observedAt: occurredAt,
        }),
      );
    case 'new_market':
      return eventBody(
        type,
        { eventId, occurredAt },
        newMarketData({ ...MARKET, status: 'open', createdAt: occurredAt, observedAt: occurredAt }),
      );
    case 'trade':
      return eventBody(
        type,
        { eventId, occurredAt },
        tradeData({
          ...MARKET,
          ...TOKEN,
          tradeId: 'sample-trade',
          price: decimal('0.62'),
          size: decimal('2500'),
          side: 'buy',
          currency: 'USD',
          tradedAt: occurredAt,
          observedAt: occurredAt,
        }),
      );
    case 'feed_gap':
      return eventBody(
        type,
        { eventId, occurredAt },
        feedGapData({
          venue: MARKET.venue,
          gapId: '01987f5e-6a3b-7c11-8b5e-0d2f6f1a9c03',
          affected: 'books',
          cause: 'disconnected',
          from: TROUBLE.failingSince,
          to: occurredAt,
          markets: 1,
          marketIds: [MARKET.marketId],
        }),
      );
    case 'balance_change':
      return balanceChangeBody({
        eventId,
        occurredAt,
        ...WALLET,
        ...TOKEN,
        previousBalance: decimal('100'),
        currentBalance: decimal('125'),
        transactionId: 'sample-transaction',
      });
  }
}
