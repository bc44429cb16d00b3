import { z } from 'zod';
import {
  PAYOUT_REASONS,
  RESOLUTION_FACTS,
  RESOLUTION_SOURCES,
  RESOLUTION_STATES,
  RESOLUTION_TRANSITIONS,
} from '../../../src/domain/markets/resolution.ts';
import { numberField } from '../../../src/domain/values/api-json.ts';
import { MAX_GAP_MARKETS } from '../../../src/domain/webhooks/broadcast.ts';
import type { BroadcastEvent } from '../../../src/domain/webhooks/event.ts';
import { count, isoTime, numberValue } from '../wire.ts';
import { correctionShape, EVENT_AT, EVENT_ID, event, payoutList } from './schema.ts';

const ofMarket = {
  venue: z.string(),
  marketId: z.string(),
  eventId: z.string().optional().meta({ description: "The venue's event, which groups markets." }),
  title: z.string(),
  category: z.string().optional(),
};
const observedAt = isoTime.meta({ description: 'When oddswire stored the fact.' });

const marketStatusEvent = event(
  'market_status',
  z.object({
    ...ofMarket,
    status: z.string().meta({ description: '`halted`, `closed`, `resolved` or `settled`.' }),
    previousStatus: z.string(),
    winningOutcomeId: z.string().optional(),
    resolution: z.string().optional().meta({ description: '`outcome`, or `void` without a winner.' }),
    ...correctionShape,
    observedAt,
  }),
).meta({ description: 'A market halted, closed or got its result, or its reported result changed.' });

const newMarketEvent = event(
  'new_market',
  z.object({
    ...ofMarket,
    status: z.string(),
    createdAt: isoTime.optional().meta({ description: 'The creation at the venue.' }),
    closeAt: isoTime.optional(),
    url: z.string().optional(),
    observedAt,
  }),
).meta({ description: 'oddswire stored a market for the first time.' });

const tradeEvent = event(
  'trade',
  z.object({
    ...ofMarket,
    tokenMint: z.string(),
    tokenSymbol: z.string().meta({ description: 'The label of the outcome.' }),
    tradeId: z.string(),
    price: numberValue,
    size: numberValue,
    notional: numberValue.meta({ description: 'Price times size, in `currency`.' }),
    currency: z.string(),
    side: z.enum(['buy', 'sell']).optional(),
    tradedAt: isoTime.meta({ description: 'The time of the trade at the venue.' }),
    observedAt,
  }),
).meta({ description: 'A new trade, at most ten minutes old when oddswire stored it.' });

const feedGapEvent = event(
  'feed_gap',
  z.object({
    venue: z.string(),
    gapId: z.string().meta({ description: 'The same in the event of the start and in the event of the end.' }),
    affected: z.string().meta({ description: '`books`, `trades` or `markets`.' }),
    cause: z.string(),
    from: isoTime,
    to: isoTime.optional().meta({ description: 'The recovery of the last market. Absent while the gap lasts.' }),
    markets: count.meta({ description: 'The number of affected markets.' }),
    marketIds: z
      .array(z.string())
      .optional()
      .meta({ description: `Absent when more than ${MAX_GAP_MARKETS} markets are affected.` }),
  }),
).meta({ description: 'The feed of a venue may have lost messages.' });

const state = z.enum(RESOLUTION_STATES);
const marketResolutionEvent = event(
  'market_resolution',
  z.object({
    ...ofMarket,
    transition: z.enum(RESOLUTION_TRANSITIONS),
    resolutionState: state.meta({ description: 'The state after it.' }),
    previousResolutionState: state,
    round: count.optional().meta({ description: 'The number of the proposal, from 1, if the venue counts them.' }),
    at: isoTime.optional().meta({ description: "The venue's time, if it sends one." }),
    payouts: payoutList.nullable().meta({ description: 'Null: not stated. Of a proposal: the proposed ones.' }),
    reason: z.enum(PAYOUT_REASONS).optional(),
    source: z.enum(RESOLUTION_SOURCES),
    ...Object.fromEntries(RESOLUTION_FACTS.map((name) => [name, z.string().optional()])),
    observedAt,
  }),
).meta({ description: 'The result of a market was proposed, disputed, determined, corrected, paid or taken back.' });
const hash = z.string().meta({ description: 'sha256 in hexadecimal; the route of the rules defines it.' });
const marketRulesEvent = event(
  'market_rules',
  z.object({
    ...ofMarket,
    version: z.int().min(2).meta({ description: 'The number of the new version of the rules.' }),
    hash,
    previousHash: hash,
    observedAt,
  }),
).meta({ description: 'The rules of a market changed in more than white space.' });

export const BROADCAST_SCHEMAS = {
  market_status: marketStatusEvent,
  new_market: newMarketEvent,
  trade: tradeEvent,
  feed_gap: feedGapEvent,
  market_resolution: marketResolutionEvent,
  market_rules: marketRulesEvent,
} as const satisfies Record<BroadcastEvent, z.ZodType>;

/** The same by the names that generated clients use. */
export const NAMED_BROADCASTS = {
  MarketStatusEvent: marketStatusEvent,
  NewMarketEvent: newMarketEvent,
  TradeEvent: tradeEvent,
  FeedGapEvent: feedGapEvent,
  MarketResolutionEvent: marketResolutionEvent,
  MarketRulesEvent: marketRulesEvent,
} as const;

/** For unions of events. */
export const BROADCAST_LIST = [
  marketStatusEvent,
  newMarketEvent,
  tradeEvent,
  feedGapEvent,
  marketResolutionEvent,
  marketRulesEvent,
] as const;

const MARKET = {
  venue: 'polymarket',
  marketId: '0x5f65177b394277fd294cd75650044e32ba009a95022d88a0c1d565897d72f8f1',
  eventId: '16093',
  title: 'Will Bitcoin reach $150,000 in 2026?',
  category: 'Crypto',
};
const STAMP = { id: EVENT_ID, timestamp: EVENT_AT } as const;
const TOKEN = '71321045679252212594626385532706912750332728571942532289631379312455583992563';

export const BROADCAST_EXAMPLES: {
  readonly [Type in BroadcastEvent]: z.output<(typeof BROADCAST_SCHEMAS)[Type]>;
} = {
  market_status: {
    ...STAMP,
    type: 'market_status',
    data: {
      ...MARKET,
      status: 'resolved',
      previousStatus: 'closed',
      winningOutcomeId: TOKEN,
      resolution: 'outcome',
      observedAt: EVENT_AT,
    },
  },
  new_market: {
    ...STAMP,
    type: 'new_market',
    data: { ...MARKET, status: 'open', createdAt: '2026-01-02T03:00:00.000Z', observedAt: EVENT_AT },
  },
  trade: {
    ...STAMP,
    type: 'trade',
    data: {
      ...MARKET,
      tokenMint: TOKEN,
      tokenSymbol: 'Yes',
      tradeId: '0x9a5e7b0a4c1d7be5a7f10a8b35c6c14b3b6b2a44c90d5bd3b1cf4ef2a4d1c0e7:0',
      price: numberField('0.62'),
      size: numberField('2500'),
      notional: numberField('1550'),
      currency: 'USD',
      side: 'buy',
      tradedAt: '2026-01-02T03:04:04.000Z',
      observedAt: EVENT_AT,
    },
  },
  feed_gap: {
    ...STAMP,
    type: 'feed_gap',
    data: {
      venue: 'polymarket',
      gapId: '01987f5e-6a3b-7c11-8b5e-0d2f6f1a9c03',
      affected: 'books',
      cause: 'disconnected',
      from: '2026-01-02T03:03:58.000Z',
      to: EVENT_AT,
      markets: 1,
      marketIds: [MARKET.marketId],
    },
  },
  market_resolution: {
    ...STAMP,
    type: 'market_resolution',
    data: {
      ...MARKET,
      transition: 'disputed',
      resolutionState: 'disputed',
      previousResolutionState: 'proposed',
      round: 1,
      payouts: null,
      source: 'route',
      observedAt: EVENT_AT,
    },
  },
  market_rules: {
    ...STAMP,
    type: 'market_rules',
    data: {
      ...MARKET,
      version: 2,
      hash: '4fec67d12b3194e826972c32cdf8ab630df0f45733e436740a270a52273fb348',
      previousHash: '3a15b80f92689faaa0adec91f4b753b08cf7c8b6137185a2d15bc6be64710ed2',
      observedAt: EVENT_AT,
    },
  },
};
