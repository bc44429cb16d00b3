import { decimal, ONE, ZERO } from '../values/decimal.ts';
import { marketResolutionData, marketStatusData, newMarketData, tradeData } from '../webhooks/broadcast.ts';
import {
  isCorrection,
  joined,
  name,
  numberOf,
  resolutionFacts,
  resolutionFields,
  statusFacts,
  statusFields,
  textOf,
  tradeFacts,
  word,
} from '../webhooks/chat-values.ts';
import { eventBody } from '../webhooks/event-body.ts';
import { type EventDefinition, SAMPLE_MARKET, SAMPLE_TOKEN } from './definition.ts';

export const marketStatus: EventDefinition = {
  summary: 'A market halted, closed or got its result',
  text: (data) => ({
    facts: joined(statusFacts(data), data['resolution'] === undefined ? '' : `(${name(data['resolution'])})`),
  }),
  chat(data, facts) {
    const market = facts.title ?? textOf(data['title']) ?? 'Market';
    return {
      title: `${isCorrection(data) ? 'Correction: ' : ''}${market}: ${textOf(data['status']) ?? 'changed'}`,
      fields: statusFields(data, facts),
    };
  },
  sample: (stamp) =>
    eventBody(
      'market_status',
      stamp,
      marketStatusData({
        ...SAMPLE_MARKET,
        status: 'resolved',
        previousStatus: 'closed',
        winningOutcomeId: SAMPLE_TOKEN.tokenMint,
        resolution: 'outcome',
        observedAt: stamp.occurredAt,
      }),
    ),
};

export const marketResolution: EventDefinition = {
  summary: 'The result of a market was proposed, disputed, determined, corrected, paid or taken back',
  text: (data) => ({ facts: resolutionFacts(data) }),
  chat: (data, facts) => ({
    title: `${facts.title ?? textOf(data['title']) ?? 'Market'}: ${textOf(data['transition']) ?? 'changed'}`,
    fields: resolutionFields(data),
  }),
  sample: (stamp) =>
    eventBody(
      'market_resolution',
      stamp,
      marketResolutionData({
        ...SAMPLE_MARKET,
        transition: 'resolved',
        state: 'resolved',
        previousState: 'proposed',
        at: stamp.occurredAt,
        payouts: [
          { outcomeId: SAMPLE_TOKEN.tokenMint, payout: ONE },
          { outcomeId: 'sample-outcome-no', payout: ZERO },
        ],
        source: 'route',
        observedAt: stamp.occurredAt,
      }),
    ),
};

export const newMarket: EventDefinition = {
  summary: 'oddswire stored a market for the first time',
  text: (data) => ({ facts: word(data['status']) }),
  chat: (data, facts) => ({
    title: `New market: ${facts.title ?? textOf(data['title']) ?? ''}`,
    fields: [
      ['Venue', textOf(data['venue'])],
      ['Category', textOf(data['category'])],
      ['Status', textOf(data['status'])],
      ['Closes', textOf(data['closeAt'])],
    ],
  }),
  sample: (stamp) =>
    eventBody(
      'new_market',
      stamp,
      newMarketData({ ...SAMPLE_MARKET, status: 'open', createdAt: stamp.occurredAt, observedAt: stamp.occurredAt }),
    ),
};

export const trade: EventDefinition = {
  summary: 'A trade that a filter lets pass',
  text: (data) => ({ subject: name(data['tokenSymbol']), facts: tradeFacts(data) }),
  chat(data, facts) {
    const outcome = facts.outcome ?? textOf(data['tokenSymbol']);
    return {
      title: joined('Trade:', textOf(data['side']), outcome, 'at', numberOf(data['price'])),
      fields: [
        ['Size', numberOf(data['size'])],
        ['Price', numberOf(data['price'])],
        ['Value', joined(numberOf(data['notional']), textOf(data['currency']))],
      ],
    };
  },
  sample: (stamp) =>
    eventBody(
      'trade',
      stamp,
      tradeData({
        ...SAMPLE_MARKET,
        ...SAMPLE_TOKEN,
        tradeId: 'sample-trade',
        price: decimal('0.62'),
        size: decimal('2500'),
        side: 'buy',
        currency: 'USD',
        tradedAt: stamp.occurredAt,
        observedAt: stamp.occurredAt,
      }),
    ),
};
