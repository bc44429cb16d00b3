import { decimal, ONE, ZERO } from '../values/decimal.ts';
import {
  feedGapData,
  marketResolutionData,
  marketRulesData,
  marketStatusData,
  newMarketData,
  tradeData,
} from '../webhooks/broadcast.ts';
import {
  counted,
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
import { type EventDefinition, SAMPLE_FAILURE, SAMPLE_MARKET, SAMPLE_TOKEN } from './definition.ts';

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

export const marketRules: EventDefinition = {
  summary: 'The rules of a market changed',
  text: (data) => ({ facts: joined('version', word(data['version'])) }),
  chat: (data, facts) => ({
    title: `Rules changed: ${facts.title ?? textOf(data['title']) ?? ''}`,
    fields: [
      ['Venue', textOf(data['venue'])],
      ['Version', numberOf(data['version'])],
    ],
  }),
  sample: (stamp) =>
    eventBody(
      'market_rules',
      stamp,
      marketRulesData({
        ...SAMPLE_MARKET,
        version: 2,
        hash: '48c9159833b042f710425dd086d1a8d466dc4a883e57aaf80b5ea9947fd51431',
        previousHash: '2c0397d41d74428a034c38d8b85ff2598b254500c4ef0763a6c64b7c6726a923',
        observedAt: stamp.occurredAt,
      }),
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

export const feedGap: EventDefinition = {
  summary: 'The feed of a venue may have lost messages',
  text(data) {
    const markets = word(data['markets']);
    const size = markets === '' ? '' : counted(markets, 'market');
    return {
      subject: word(data['venue']),
      facts: `${[word(data['cause']), size].filter(Boolean).join(', ')}, ${data['to'] === undefined ? 'lasts' : 'ended'}`,
    };
  },
  chat(data) {
    const markets = numberOf(data['markets']);
    return {
      title: `Feed of ${textOf(data['venue']) ?? 'a venue'}: ${textOf(data['to']) === undefined ? 'gap' : 'gap ended'}`,
      fields: [
        ['Cause', textOf(data['cause'])],
        ['Affected', joined(textOf(data['affected']), 'of', markets && counted(markets, 'market'))],
        ['From', textOf(data['from'])],
        ['To', textOf(data['to'])],
      ],
    };
  },
  sample: (stamp) =>
    eventBody(
      'feed_gap',
      stamp,
      feedGapData({
        venue: SAMPLE_MARKET.venue,
        gapId: '01987f5e-6a3b-7c11-8b5e-0d2f6f1a9c03',
        affected: 'books',
        cause: 'disconnected',
        from: SAMPLE_FAILURE,
        to: stamp.occurredAt,
        markets: 1,
        marketIds: [SAMPLE_MARKET.marketId],
      }),
    ),
};
