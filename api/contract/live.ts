import { z } from 'zod';
import {
  CHANNELS,
  EVENT_STALE_REASONS,
  FEED_GAP_PARTS,
  GAP_REASONS,
  STALE_REASONS,
} from '../../src/domain/live/change.ts';
import { ORDER_SIDES } from '../../src/domain/markets/market.ts';
import { decimalField, numberField } from '../../src/domain/values/api-json.ts';
import { MARKET_CHANGE, PRICE, RESOLUTION } from '../../src/domain/wire/market-data.ts';
import { listParam, param, replacing } from '../http/input.ts';
import { book } from './book.ts';
import { BROADCAST_LIST } from './events/broadcast-event.ts';
import {
  alertExpiredEvent,
  balanceChangeEvent,
  priceAlertEvent,
  transactionEvent,
  webhookFailingEvent,
  webhookPausedEvent,
} from './events/event.ts';
import { orderAmount, placedExecutable } from './executable.ts';
import { feedState } from './feed.ts';
import { categoryFilter } from './market.ts';
import { prices } from './price.ts';
import { candle } from './series.ts';
import { trade } from './trade.ts';
import { count, epochTime, isoTime, MARKET_ID_EXAMPLE, OUTCOME_ID_EXAMPLE, opaqueId, shapeOf } from './wire.ts';

const seq = count.meta({
  description:
    'The number of the change in the journal. You have every change of the subscription up to it, except a state that a later message replaces.',
});
const venue = z
  .string()
  .meta({ description: 'The venue. In messages about the stream: the venue of the request, which may be `all`.' });
const ofMarket = {
  seq,
  at: isoTime.meta({ description: 'When the change was published.' }),
  venue,
  market_id: opaqueId,
};
const ofOutcome = { ...ofMarket, outcome_id: opaqueId };
const ofStream = { seq, at: isoTime, venue };
const conflated = z.int().min(1).optional().meta({
  description: 'The number of earlier changes that this one replaced on this connection, because you read slowly.',
});
/** Only in messages of a WebSocket. */
const ofSocket = {
  subs: z
    .array(z.string())
    .optional()
    .meta({ description: 'WebSocket only: your ids of the subscriptions that get the message.' }),
  cursor: z.string().optional().meta({
    description: 'WebSocket only: a subscription with this cursor continues after the message. SSE has it in `id`.',
  }),
};

const priceMessage = z
  .object({
    type: z.literal('price'),
    ...ofOutcome,
    ...ofSocket,
    conflated,
    data: z.object(shapeOf(PRICE)),
  })
  .meta({ description: 'The price of an outcome changed.' });

const tradeMessage = z
  .object({ type: z.literal('trade'), ...ofOutcome, ...ofSocket, data: trade })
  .meta({ description: 'A trade. Every trade is sent, also to slow readers.' });

const bookMessage = z
  .object({ type: z.literal('book'), ...ofOutcome, ...ofSocket, conflated, data: book })
  .meta({ description: 'The best level of a book changed: `bids` and `asks` have one level at most.' });

const candleMessage = z
  .object({
    type: z.literal('candle'),
    ...ofOutcome,
    ...ofSocket,
    conflated,
    data: candle.extend({ market_id: opaqueId, outcome_id: opaqueId, interval: z.literal('1m') }),
  })
  .meta({ description: 'A candle of one minute changed, or ended (`closed`).' });

const marketMessage = z
  .object({
    type: z.literal('market'),
    ...ofMarket,
    ...ofSocket,
    conflated,
    data: z.object(shapeOf(MARKET_CHANGE)),
  })
  .meta({ description: 'A market appeared or changed. The message omits its long texts.' });

const resolutionMessage = z
  .object({ type: z.literal('resolution'), ...ofMarket, ...ofSocket, data: z.object(shapeOf(RESOLUTION)) })
  .meta({ description: 'A row of the timeline of the result of a market. Every row is sent, also to slow readers.' });

const executableMessage = z
  .object({ type: z.literal('executable'), ...ofOutcome, ...ofSocket, conflated, data: placedExecutable })
  .meta({
    description:
      'What an order of the subscription costs or pays, at the start and when it changed. `as_of` is the time of the book for which it was computed.',
  });

const heartbeatMessage = z
  .object({
    type: z.literal('heartbeat'),
    ...ofStream,
    ...ofSocket,
    data: z.object({
      checked_at: isoTime.meta({
        description: 'You have every change of the subscription that was stored by this time.',
      }),
      interval_seconds: z.number().min(0).meta({ description: 'The next heartbeat comes within this time.' }),
      venues: z
        .array(
          z.object({
            venue: z.string(),
            healthy: z.boolean(),
            last_success_at: epochTime.optional(),
            feed: feedState.optional().meta({ description: 'The state of its feed.' }),
            open_gaps: count.optional().meta({ description: 'Gaps of its feed that have not ended.' }),
          }),
        )
        .meta({ description: 'Whether each venue of the subscription answers, as in `/v1/venues`.' }),
    }),
  })
  .meta({
    description: 'The stream is complete. No heartbeat is sent while this is unknown, so its absence is a signal.',
  });

const gapData = z.object({
  reason: z.enum(GAP_REASONS).meta({
    description:
      '`expired`: the journal does not store the changes any more. `epoch`: the database was restored, and the numbers begin anew. ' +
      '`backfill`: older trades or candles were added, corrected or removed; read this range again. `feed`: the feed of the venue may have lost changes; polls continue.',
  }),
  from: count
    .optional()
    .meta({ description: 'The first missing number. With `epoch`, a number of the earlier epoch.' }),
  to: count.optional().meta({ description: 'The last missing number.' }),
  series: z.enum(['trades', 'candles']).optional().meta({ description: 'Only `backfill`: the series to read again.' }),
  start: epochTime.optional().meta({ description: 'Only `backfill` and `feed`: the start of the range.' }),
  end: epochTime.nullish().meta({
    description:
      'Only `backfill` and `feed`: the end of the range, exclusive. `null`: the gap of a feed lasts, and another message with the same `gap_id` follows at its end.',
  }),
  gap_id: opaqueId.optional().meta({ description: 'Only `feed`: the same for all markets of the gap.' }),
  affected: z.enum(FEED_GAP_PARTS).optional().meta({
    description:
      'Only `feed`: `books` stands for books and prices, `trades` for trades, `markets` for the life cycle of markets.',
  }),
  cause: z.string().optional().meta({ description: 'Only `feed`: why changes may be missing, in a fixed word.' }),
});

const gapMessage = z
  .object({
    type: z.literal('gap'),
    ...ofStream,
    market_id: opaqueId.optional(),
    outcome_id: opaqueId.optional(),
    ...ofSocket,
    data: gapData,
  })
  .meta({ description: 'The stream lacks changes. It continues after `seq`.' });

const laggedMessage = z
  .object({
    type: z.literal('lagged'),
    ...ofStream,
    ...ofSocket,
    data: z.object({ reason: z.literal('slow_reader'), cursor: z.string().meta({ description: 'Resume here.' }) }),
  })
  .meta({ description: 'You read too slowly, and the stream ends. You have everything up to `seq`.' });

const snapshotMessage = z
  .object({ type: z.literal('snapshot'), ...ofMarket, ...ofSocket, data: prices })
  .meta({ description: 'The prices of a market at the start of the stream, which include every change up to `seq`.' });

const staleMessage = z
  .object({
    type: z.literal('stale'),
    ...ofStream,
    ...ofSocket,
    data: z.object({
      reason: z.enum(STALE_REASONS).meta({
        description:
          '`publisher_stalled`: the publisher runs, but does not confirm the journal. `publisher_gone`: no publisher runs. ' +
          '`database_unreachable`: the server has no answer of its database.',
      }),
      checked_at: isoTime.optional().meta({ description: 'The stream was complete at this time.' }),
    }),
  })
  .meta({ description: 'No heartbeat is sent for this reason: changes may exist that you do not have yet.' });

/** The messages of a market stream. */
export const MARKET_MESSAGES = {
  PriceMessage: priceMessage,
  TradeMessage: tradeMessage,
  BookMessage: bookMessage,
  CandleMessage: candleMessage,
  MarketMessage: marketMessage,
  ResolutionMessage: resolutionMessage,
  ExecutableMessage: executableMessage,
  HeartbeatMessage: heartbeatMessage,
  GapMessage: gapMessage,
  LaggedMessage: laggedMessage,
  SnapshotMessage: snapshotMessage,
  StaleMessage: staleMessage,
} as const;

export const streamMessage = z
  .discriminatedUnion('type', [
    priceMessage,
    tradeMessage,
    bookMessage,
    candleMessage,
    marketMessage,
    resolutionMessage,
    executableMessage,
    heartbeatMessage,
    gapMessage,
    laggedMessage,
    snapshotMessage,
    staleMessage,
  ])
  .meta({ description: 'The `data` of an event of a market stream.' });

const ofEvents = { at: isoTime };
const eventHeartbeat = z
  .object({
    type: z.literal('heartbeat'),
    ...ofEvents,
    data: z.object({ checked_at: isoTime, interval_seconds: z.number().min(0) }),
  })
  .meta({ description: 'You have every event that was stored by `checked_at`.' });
const eventGap = z
  .object({ type: z.literal('gap'), ...ofEvents, data: z.object({ reason: z.enum(['expired', 'epoch']) }) })
  .meta({ description: 'Events after your cursor may be missing. `GET /v1/events` lists the stored ones.' });
const eventLagged = z
  .object({
    type: z.literal('lagged'),
    ...ofEvents,
    data: z.object({ reason: z.literal('slow_reader'), cursor: z.string() }),
  })
  .meta({ description: 'You read too slowly, and the stream ends.' });
const eventStale = z
  .object({ type: z.literal('stale'), ...ofEvents, data: z.object({ reason: z.enum(EVENT_STALE_REASONS) }) })
  .meta({ description: 'The server has no answer of its database.' });

export const EVENT_STREAM_MESSAGES = {
  EventStreamHeartbeat: eventHeartbeat,
  EventStreamGap: eventGap,
  EventStreamLagged: eventLagged,
  EventStreamStale: eventStale,
} as const;

export const eventStreamMessage = z
  .discriminatedUnion('type', [
    priceAlertEvent,
    transactionEvent,
    balanceChangeEvent,
    webhookFailingEvent,
    webhookPausedEvent,
    alertExpiredEvent,
    ...BROADCAST_LIST,
    eventHeartbeat,
    eventGap,
    eventLagged,
    eventStale,
  ])
  .meta({ description: 'The `data` of an event of the stream of account events.' });

const MAX_IDS = 100;
const MAX_ID_LENGTH = 256;
const IDS_RULE = `must be a comma list of 1 to ${MAX_IDS} ids of 1 to ${MAX_ID_LENGTH} characters`;
const ids = (all: string) =>
  z
    .string(IDS_RULE)
    .transform((list) => [...new Set(list.split(','))])
    .refine((each) => each.length <= MAX_IDS && each.every((id) => id !== '' && id.length <= MAX_ID_LENGTH), IDS_RULE)
    .optional()
    .meta({
      description: `A comma list of 1 to ${MAX_IDS} ids. Default: all ${all}.`,
      override: { type: 'string', minLength: 1 },
    });

const MAX_SIZES = 5;
const SIZES = z.array(orderAmount).min(1).max(MAX_SIZES);
const SIZES_RULE = `must be a comma list of 1 to ${MAX_SIZES} decimals greater than 0 such as 100,500`;
const sizes = z
  .string(SIZES_RULE)
  .transform((list, context) => {
    const parsed = SIZES.safeParse(list.split(','));
    if (parsed.success) return [...new Set(parsed.data)];
    context.addIssue({ code: 'custom', message: SIZES_RULE });
    return z.NEVER;
  })
  .optional()
  .meta({
    description: `Of the channel \`executable\`, which needs it: a comma list of 1 to ${MAX_SIZES} sizes in units of the outcome, with at most the digits after the point that the venue accepts.`,
    override: replacing({ type: 'string', minLength: 1 }),
    example: '100,500',
  });
const SIDE = 'Of the channel `executable`: a `buy` takes asks, a `sell` takes bids. Default: both.';
const side = z
  .enum(ORDER_SIDES, `must be ${ORDER_SIDES.join(' or ')}`)
  .optional()
  .meta({ description: SIDE });

const resume = {
  cursor: z.string().optional().meta({
    description: 'The `id` of the last event that you have. The header `Last-Event-ID` replaces it.',
  }),
};

export const streamQuery = z.object({
  channels: listParam(CHANNELS, 'Default: `prices`.'),
  market_ids: ids('markets'),
  outcome_ids: ids('outcomes'),
  category: categoryFilter,
  sizes,
  side,
  snapshot: z
    .enum(['true', 'false'], 'must be true or false')
    .transform((text) => text === 'true')
    .optional()
    .meta({
      description:
        'Send the prices of `market_ids` first, also after a gap at the start. Needs the channel `prices` and `market_ids`.',
      override: replacing({ type: 'boolean', enum: undefined }),
    }),
  ...resume,
});

export const eventStreamQuery = z.object(resume);

const idList = z.array(z.string().min(1).max(MAX_ID_LENGTH)).min(1).max(MAX_IDS);
const MAX_SUBSCRIPTION_ID = 64;
const subscriptionId = z
  .string()
  .min(1)
  .max(MAX_SUBSCRIPTION_ID)
  .meta({ description: 'Your name of the subscription.' });

const authFrame = z
  .strictObject({ type: z.literal('auth'), key: z.string().min(1).max(256) })
  .meta({ description: 'The API key, as the first frame of a browser, which cannot set headers.' });
const subscribeFrame = z
  .strictObject({
    type: z.literal('subscribe'),
    id: subscriptionId,
    venue: z.string().min(1).max(64).meta({ description: 'A venue, or `all`.' }),
    channels: z.array(z.enum(CHANNELS)).min(1),
    market_ids: idList.optional(),
    outcome_ids: idList.optional(),
    category: z.string().min(1).max(200).optional(),
    sizes: SIZES.optional().meta({
      description: 'Of the channel `executable`, which needs it: texts of decimals, as in `["100","0.25"]`.',
    }),
    side,
    snapshot: z.boolean().optional(),
    cursor: param.cursor.meta({ description: 'Continue after the message with this cursor.' }),
  })
  .meta({ description: 'Begins a subscription.' });
const unsubscribeFrame = z
  .strictObject({ type: z.literal('unsubscribe'), id: subscriptionId })
  .meta({ description: 'Ends a subscription.' });
export const clientFrame = z.discriminatedUnion('type', [authFrame, subscribeFrame, unsubscribeFrame]);
export type ClientFrame = z.output<typeof clientFrame>;

const subscribedFrame = z
  .object({ type: z.literal('subscribed'), id: z.string(), seq })
  .meta({ description: 'The subscription began: you have everything up to `seq`.' });
const unsubscribedFrame = z
  .object({ type: z.literal('unsubscribed'), id: z.string() })
  .meta({ description: 'The subscription ended. No message names it any more.' });
const errorFrame = z
  .object({ type: z.literal('error'), code: z.string(), message: z.string(), id: z.string().optional() })
  .meta({ description: 'A frame of yours was rejected. The connection stays open unless a close code follows.' });

export const CLIENT_FRAMES = {
  AuthFrame: authFrame,
  SubscribeFrame: subscribeFrame,
  UnsubscribeFrame: unsubscribeFrame,
};
export const SERVER_FRAMES = {
  SubscribedFrame: subscribedFrame,
  UnsubscribedFrame: unsubscribedFrame,
  ErrorFrame: errorFrame,
};

export const streamMessageExample: z.output<typeof priceMessage> = {
  type: 'price',
  seq: 184_467,
  at: '2026-01-02T03:04:05.678Z',
  venue: 'polymarket',
  market_id: MARKET_ID_EXAMPLE,
  outcome_id: OUTCOME_ID_EXAMPLE,
  data: {
    market_id: MARKET_ID_EXAMPLE,
    outcome_id: OUTCOME_ID_EXAMPLE,
    as_of: 1767323045,
    price: decimalField('0.62'),
    probability: numberField('0.62'),
    best_bid: decimalField('0.61'),
    best_ask: decimalField('0.63'),
  },
};
